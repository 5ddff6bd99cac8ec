"""The `docflow` command."""

import logging
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Final, NoReturn

_INTERRUPTED: Final = 130


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(_INTERRUPTED)


def main() -> NoReturn:
    """Entry point of the `docflow` program.

    Threads of Temporal's core may abort an interpreter that is being finalised, which would turn a
    command that has succeeded into exit code 134 or 139. So the process ends without finalising,
    once its output is written.
    """
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        # Python drops exceptions that a signal raises at some points of an import.
        signal.signal(signal.SIGINT, _end)
    from workers.cli.app import app

    signal.signal(signal.SIGINT, interrupt)
    try:
        app(prog_name="docflow")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BaseException:
        # A defect: shown as the interpreter would show it.
        traceback.print_exc()
        code = 1
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            code = code or 1
    os._exit(code)
