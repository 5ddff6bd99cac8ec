"""From the body of an import message to one that may be trusted, and where its documents stand."""

import re
import unicodedata
from typing import Final

from pydantic import ValidationError

from workers.shared.services.bodies import (
    UNKNOWN_DOCUMENT_TYPE,
    invalid,
    kind_of,
    object_of,
    text_of,
)
from workflows.imports.findings import uploads_of
from workflows.imports.messages import IMPORT_MESSAGE, MESSAGE_BYTES, DocumentType, ImportMessage


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


def read_message(raw: bytes) -> ImportMessage:
    """Check a body from outside and turn it into a message.

    Raises:
        RefusedMessage: It is not one; reason and description explain why.
    """
    text = text_of(raw, MESSAGE_BYTES)
    kind_of(object_of(text), "document_type", _KNOWN, UNKNOWN_DOCUMENT_TYPE)
    try:
        return IMPORT_MESSAGE.validate_json(text)
    except ValidationError as error:
        raise invalid(error) from error
