"""Files of a folder, in calls that block."""

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_CREATED: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


def created(path: Path) -> io.FileIO:
    """A file to be written; what was there is replaced."""
    return io.FileIO(os.open(path, _CREATED, 0o644), "w")


def begun(path: Path, offset: int, size: int) -> tuple[bytes, io.FileIO | None]:
    """The first block of a file, and the file where there may be more: of most it is all.

    Args:
        path: The file.
        offset: Where it begins.
        size: Of the block.
    """
    file = io.FileIO(path)
    try:
        file.seek(offset)
        block = file.read(size)
        while len(block) < size and (more := file.read(size - len(block))):
            block += more
    except BaseException:
        file.close()
        raise
    if len(block) == size:
        return block, file
    file.close()
    return block, None


def write_all(file: io.FileIO, block: bytes) -> None:
    """Write a block, in as many calls as it takes."""
    view = memoryview(block)
    while view:
        view = view[file.write(view) or 0 :]


def remove_same(path: Path, file: io.FileIO) -> None:
    """Remove a file, unless another attempt has made one of that name meanwhile."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(path), os.fstat(file.fileno())):
            os.unlink(path)
