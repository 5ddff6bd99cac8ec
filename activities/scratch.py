"""Blobs as files of this machine, for as long as an activity needs them."""

import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from adapters.ports import Blobs
from contracts.blobs import BlobRef
from domain.errors import RuleViolation

PREFIX: Final = "docflow-"
LEFTOVER_SECONDS: Final = 48 * 3600.0
"""No activity runs this long; an older folder belonged to a worker that was killed."""


@contextmanager
def scratch_folder(scratch: Path) -> Generator[Path]:
    """A folder of one's own below `scratch`, removed with all it holds."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=scratch, ignore_cleanup_errors=True) as own:
        yield Path(own)


@asynccontextmanager
async def fetched(
    blobs: Blobs, name: str, scratch: Path, *, expected: BlobRef | None = None
) -> AsyncGenerator[Path]:
    """Download a blob for the length of the block.

    Args:
        blobs: Where it is.
        name: Blob name.
        scratch: Folder for temporary files; made when it is missing.
        expected: The blob as the run first saw it.

    Yields:
        The file, in a folder of its own that is removed afterwards.

    Raises:
        BlobNotFound: There is no such blob.
        RuleViolation: The blob is not the one that was expected.
    """
    with scratch_folder(scratch) as folder:
        path = folder / "document"
        found = await blobs.download(name, path)
        if expected is not None and expected.etag and found.etag and expected.etag != found.etag:
            raise RuleViolation(
                f"{name} was replaced while its import was running; "
                "send the new file with a new message"
            )
        yield path


def sweep(scratch: Path, older_than: float = LEFTOVER_SECONDS) -> int:
    """Remove what killed workers left behind.

    Args:
        scratch: Folder for temporary files.
        older_than: Age in seconds.

    Returns:
        Folders removed.
    """
    if not scratch.is_dir():
        return 0
    limit = time.time() - older_than
    leftovers = [
        folder
        for folder in scratch.glob(f"{PREFIX}*")
        if folder.is_dir() and not folder.is_symlink() and folder.stat().st_mtime < limit
    ]
    for folder in leftovers:
        shutil.rmtree(folder, ignore_errors=True)
    return len(leftovers)
