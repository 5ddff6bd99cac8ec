"""Standard output that cannot be written: a closed pipe, or a disk that is full."""

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CLOSED_PIPE: Final = 141
"""Exit code when the reader of a pipe has ended: that of a program ended by SIGPIPE, 128 + 13."""
NOT_WRITTEN: Final = 5
"""Exit code when the output cannot be written for another reason."""


class OutputLost(Exception):
    """Standard output cannot be written.

    No `OSError`: libraries would take it for an end of their own, or hide it.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write to standard output: {error.strerror or error}")
        self._is_closed_pipe = error.errno == errno.EPIPE

    def report(self) -> int:
        """Report it on stderr, unless the reader has ended; the exit code."""
        if self._is_closed_pipe:
            return CLOSED_PIPE
        # Where stderr is lost too, the exit code is all that is left.
        with contextlib.suppress(OSError):
            print(f"docflow: {self}", file=sys.stderr, flush=True)
        return NOT_WRITTEN


class _Output(io.FileIO):
    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputLost(error) from error


def watch_standard_output() -> None:
    """Have every write to `sys.stdout` that fails raise `OutputLost`."""
    stdout = sys.stdout
    if not isinstance(stdout, io.TextIOWrapper):
        return
    stdout.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(stdout.fileno(), "wb", closefd=False)),
        encoding=stdout.encoding,
        errors=stdout.errors,
        line_buffering=stdout.line_buffering,
    )


def require_standard_output() -> None:
    """Write an empty line, before something is done whose result could not be shown.

    Raises:
        OutputLost: It cannot be written.
    """
    print(end=os.linesep, flush=True)
