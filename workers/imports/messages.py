"""From the body of an import message to one that may be trusted, and where its documents stand."""

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from pydantic import ValidationError

from workers.shared.services.bodies import (
    UNKNOWN_DOCUMENT_TYPE,
    RefusedMessage,
    invalid,
    kind_of,
    object_of,
    text_of,
)
from workflows.imports.findings import uploads_of
from workflows.imports.messages import (
    DECLARED_MESSAGE,
    MESSAGE_BYTES,
    OWN_MESSAGE,
    DocumentType,
    ImportMessage,
    checked,
)


def upload_name(project_id: str, task_id: str, filename: str, part: str = "") -> str:
    """Blob name of a document: plain ASCII, whatever the user's file is called.

    Args:
        project_id: Project of the import.
        task_id: Its task.
        filename: As the user knows the file.
        part: Folder below the task, where it has several documents.
    """
    ascii_name = unicodedata.normalize("NFKD", filename).encode("ascii", "ignore").decode("ascii")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", ascii_name).strip("._")[-100:]
    return uploads_of(project_id, task_id) + "/".join(filter(None, (part, safe or "file")))


_KNOWN: Final = tuple(DocumentType)


def read_message(raw: bytes, declared: Collection[str] | None = ()) -> ImportMessage:
    """Check a body from outside and turn it into a message.

    Args:
        raw: The body.
        declared: Names of the declared types; None: any name is one, as the step that prepares the
            import looks it up.

    Raises:
        RefusedMessage: It is not one; reason and description explain why.
    """
    text = text_of(raw, MESSAGE_BYTES)
    body = object_of(text)
    is_declared = declared is None and is_of_another_type(raw)
    if not is_declared:
        known = (*_KNOWN, *sorted(declared or ()))
        is_declared = kind_of(body, "document_type", known, UNKNOWN_DOCUMENT_TYPE) not in _KNOWN
    try:
        if is_declared:
            return checked(text, DECLARED_MESSAGE)
        return checked(text, OWN_MESSAGE)
    except ValidationError as error:
        raise invalid(error, within=int(not is_declared)) from error


def is_of_another_type(raw: bytes) -> bool:
    """Whether a body may be a message about a declared type, which has to be looked up."""
    try:
        kind = object_of(text_of(raw, MESSAGE_BYTES)).get("document_type")
    except RefusedMessage:
        return False
    return isinstance(kind, str) and kind not in _KNOWN
