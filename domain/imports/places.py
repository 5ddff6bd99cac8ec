"""Which blobs an import message may name.

Documents of every pipeline share a container: what docflow keeps there for itself, a message must
not read, move or delete.
"""

from collections.abc import Sequence
from typing import Final

from contracts.imports import FileMessage, ImportMessage, ScheduleUploadMessage

OWN: Final = ("reports/", "spreadsheets/")
"""Where reports lie, and the uploads of spreadsheets."""


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
    """
    for field, blob in named_blobs(message).items():
        if blob.startswith(OWN):
            return f"{field}: {blob.partition('/')[0]}/ is docflow's own place"
        if prefixes and not blob.startswith(tuple(prefixes)):
            return f"{field}: must be below {', '.join(prefixes)}"
    return None
