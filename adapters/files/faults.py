"""What an exception in a reader means: a damaged file, our disk, or a fault of the reader."""

import errno
import json
import lzma
import os
import struct
import traceback
import zipfile
import zlib
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Self
from xml.parsers import expat

from adapters.ports.errors import Unavailable

NO_MEMORY: Final = os.EX_OSERR
"""Exit code of a process that was refused more memory."""
_DAMAGE: Final = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, UnicodeError),
    expat.ExpatError,
)
DAMAGE: Final = (*_DAMAGE, NotImplementedError, ValueError, OSError)
"""What libraries raise about packed content that is damaged; see `is_of_disk` for the last one."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_OURS: Final = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.EBADF})
_DISK: Final = frozenset(
    {
        *(errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EROFS, errno.EMFILE, errno.ENFILE),
        *(errno.ENOMEM, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.ENODEV, errno.ENXIO),
    }
)
_TEXT: Final = 300
"""Characters that are kept of what an exception says."""


class FaultKind(StrEnum):
    """Whose fault it is."""

    DAMAGE = "damage"
    TOO_LARGE = "too large"
    """It was to write a larger file than it may."""
    DISK_FULL = "disk full"
    DISK = "disk"
    READER = "reader"
    """No rule explains it."""


class Fault(NamedTuple):
    """An exception, as it crosses the pipe of a process that reads."""

    kind: FaultKind
    type: str
    place: str
    said: str

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return what is known of an exception, without the names of folders of this machine."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join(word for word in str(error.__cause__ or error).split() if "/" not in word)
        where = f"{Path(place.filename).name}:{place.lineno}"
        own = type(error)
        name = own.__name__ if own.__module__ == "builtins" else f"{own.__module__}.{own.__name__}"
        return cls(_kind(error), name, where, said[:_TEXT])

    @classmethod
    def parsed(cls, sent: bytes) -> Self:
        """Return a fault that a process has sent, which a file may have taken over.

        Raises:
            ValueError: It is none.
        """
        try:
            kind, *words = json.loads(sent)
            return cls(FaultKind(kind), *(str(word)[:_TEXT] for word in words))
        except (TypeError, RecursionError) as error:
            raise ValueError("it is no fault") from error

    def __str__(self) -> str:
        return f"{self.type} at {self.place}: {self.said or 'without a text'}"


def ended_by(error: BaseException) -> tuple[int, bytes]:
    """Return with which code an exception ends a process, and the fault that it sends before."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return NO_MEMORY, b""
    return os.EX_SOFTWARE, json.dumps(Fault.of(error)).encode()


def is_of_disk(error: BaseException) -> bool:
    """Return whether an error is one of our disk, and not of damaged content.

    A damaged file makes libraries seek to places that do not exist, which is an `OSError` as well.
    """
    return isinstance(error, OSError) and error.errno in _FULL | _OURS | _DISK


def _kind(error: BaseException) -> FaultKind:
    if isinstance(error, Unavailable):
        return FaultKind.DISK
    if not isinstance(error, OSError):
        return FaultKind.DAMAGE if isinstance(error, _DAMAGE) else FaultKind.READER
    if error.errno == errno.EFBIG:
        return FaultKind.TOO_LARGE
    if error.errno in _FULL:
        return FaultKind.DISK_FULL
    if error.errno in _DISK:
        return FaultKind.DISK
    return FaultKind.READER if error.errno in _OURS else FaultKind.DAMAGE
