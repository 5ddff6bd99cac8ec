"""What tests put into blob stores."""

from collections.abc import AsyncIterator
from pathlib import Path

from adapters.files.blobs import FolderBlobs

SMALL = b"code,quantity\nA,1\n"


def folder_blobs(tmp_path: Path) -> FolderBlobs:
    """An empty container in a folder."""
    (tmp_path / "container").mkdir()
    return FolderBlobs(tmp_path / "container")


def make_file(tmp_path: Path, content: bytes) -> Path:
    """A file to upload."""
    path = tmp_path / "source"
    path.write_bytes(content)
    return path


async def arriving(content: bytes, piece: int) -> AsyncIterator[bytes]:
    """Content in pieces of so many bytes."""
    for start in range(0, len(content), piece):
        yield content[start : start + piece]
