"""The C library's allocator, set for processes that move large blocks between threads."""

import ctypes
from typing import Final

# Source: mallopt(3).
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
ARENAS: Final = 2
"""Python runs one thread at a time: further arenas only keep what was freed in them."""
LARGE_BYTES: Final = 4 << 20
"""Blocks of this size go back to the system at once. By default the threshold grows with what is
freed, to 32 MB, and freed blocks stay with the process."""


def tune_allocator() -> bool:
    """Let memory go back to the system; call it before there are threads.

    Returns:
        Whether the C library knows how: others than glibc do not.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = (
        (_ARENA_MAX, ARENAS),
        (_MMAP_THRESHOLD, LARGE_BYTES),
        (_TRIM_THRESHOLD, 2 * LARGE_BYTES),
    )
    return all(mallopt(name, value) for name, value in settings)
