"""References to bytes that live in a blob store."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from contracts.base import Contract


def _check_blob_name(name: str) -> str:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError("must not hold empty, '.' or '..' segments")
    if any(character < " " or character in "\\\x7f" for character in name):
        raise ValueError("must not hold backslashes or control characters")
    return name


BlobName = Annotated[
    str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_check_blob_name)
]
"""Name of a blob within the container, segments joined by '/'; safe as a relative path."""


OWN_PLACES: Final = (
    *("batches/", "jobs/", "kept/", "quarantine/"),
    *("receipts/", "reports/", "spreadsheets/", "staging/"),
)
"""What the names of blobs begin with that docflow keeps for itself among the documents."""


class BlobRef(Contract):
    """Points to one version of a blob; history carries this and never the bytes."""

    name: BlobName
    size: int
    """Bytes."""
    sha256: str | None = Field(default=None, max_length=64)
    """Lower-case hex; known once the bytes have passed through docflow."""
    etag: str | None = Field(default=None, max_length=256)
