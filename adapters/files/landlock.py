"""Landlock: rights that a process of Linux gives up for good.

Source: `linux/landlock.h` and https://docs.kernel.org/userspace-api/landlock.html.
"""

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from adapters.files import sandbox

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38

_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_EXECUTE: Final = 1 << 0
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_ACCESS_BITS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Version of the interface to how many kinds of access it knows; later ones know 16."""
_TCP: Final = 0b11
"""To bind and to connect; from version 4."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))


def confine(readable: Iterable[Path], writable: Iterable[Path]) -> bool:
    """Take all files from this process but those below some folders, and TCP.

    Args:
        readable: Folders and files that it may read and load libraries from; missing ones are
            passed over.
        writable: Folders in which it may do anything.

    Returns:
        Whether the kernel could do it; False: it has no Landlock, and nothing has changed.

    Raises:
        OSError: The kernel refuses although it has Landlock, or a writable folder is missing.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < 1:
        return False
    every = (1 << _ACCESS_BITS.get(version, 16)) - 1
    rules = _Ruleset(every, _TCP)
    size = ctypes.sizeof(rules) if version >= 4 else ctypes.sizeof(ctypes.c_uint64)
    ruleset = _checked(libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0))
    for path in readable:
        if path.exists():
            access = _READ if path.is_dir() else _READ & ~_READ_DIR
            _allow(libc, ruleset, path, access)
    for path in writable:
        _allow(libc, ruleset, path, every)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    return True


def system_folders() -> tuple[Path, ...]:
    """Return what a process of ours reads to run: our packages, Python, the system's libraries."""
    ours = [sandbox.ROOT / name for name in ("contracts", "domain", "adapters")]
    others = (each for each in sys.path if each and Path(each) != sandbox.ROOT)
    found = (*others, sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/dev/urandom")
    return (*ours, *(Path(each).resolve() for each in found))


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, access: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(access, folder)
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(folder)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
