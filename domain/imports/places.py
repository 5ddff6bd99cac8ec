"""Which blobs an import message may name.

Documents of every pipeline share a container: what docflow keeps there for itself, a message must
not read, move or delete.
"""

from collections.abc import Sequence
from typing import Final

from contracts.blobs import OWN_PLACES
from contracts.imports import FileMessage, ImportMessage, ScheduleUploadMessage, encoded

UPLOADS: Final = "uploads/"
"""Where commands and pages put documents, each below its project and task."""


def uploads_of(project_id: str, task_id: str) -> str:
    """Where the documents of one import are that commands and pages have put there."""
    return f"{UPLOADS}{encoded(project_id)}/{encoded(task_id)}/"


def named_blobs(message: ImportMessage) -> dict[str, str]:
    """Field to the blob that it names."""
    if isinstance(message, ScheduleUploadMessage):
        named = {
            name: getattr(message, name)
            for name in ("temp_blob_name", "blob_name", "target_blob_name")
        }
        return {name: blob for name, blob in named.items() if blob is not None}
    return {"blob_name": message.blob_name} if isinstance(message, FileMessage) else {}


def foreign_blob(message: ImportMessage, prefixes: Sequence[str]) -> str | None:
    """Why a message may not name a blob that it names; None: it may name all of them.

    Args:
        message: The message.
        prefixes: Where the documents of its queue are, each ending with a slash; none: anywhere
            but where docflow keeps its own.

    A document that docflow itself has stored for the import is always one of them: what a person
    submits, or gives a parked import.
    """
    allowed = (*prefixes, uploads_of(message.project_id, message.task_id))
    for field, blob in named_blobs(message).items():
        if blob.startswith(OWN_PLACES):
            return f"{field}: {blob.partition('/')[0]}/ is docflow's own place"
        if prefixes and not blob.startswith(allowed):
            return f"{field}: must be below {', '.join(prefixes)}"
    return None
