"""The `docflow` command."""

import gc
import logging
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Final, NoReturn

from workers.shared.cli.standard_output import OutputLost, watch_standard_output

_INTERRUPTED: Final = 130
_YOUNG_OBJECTS: Final = 1_000_000
"""New containers between two collections: modules are not garbage, and a command loads hundreds. A
process collects earlier, as soon as it starts its log."""


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
    gc.set_threshold(_YOUNG_OBJECTS, 10, 10)
    # Unless configured otherwise, pydantic looks for plugins in every installed distribution.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from workers.shared.cli.app import app

    signal.signal(signal.SIGINT, interrupt)
    try:
        watch_standard_output()
        app(prog_name="docflow")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except OutputLost as lost:
        code = lost.report()
    except BaseException:
        _show_defect()
        code = 1
    _leave(code)


def _show_defect() -> None:
    """In the log of a process, which hides secrets; else as the interpreter would show it."""
    if logging.getLogger().handlers:
        logging.getLogger(__name__).critical("ended by a defect", exc_info=True)
    else:
        traceback.print_exc()


def _leave(code: int) -> NoReturn:
    """The only way out: write what is buffered and end, 0 only when all of it was written."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]
                stream.flush()
        except OutputLost as lost:
            code = code or lost.report()
        except OSError:
            code = code or 1
    os._exit(code)
