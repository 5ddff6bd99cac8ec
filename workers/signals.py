"""The operator's request to stop."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_CLOSED = signal.SIGHUP
"""The terminal, or the connection to it, was closed."""


@contextmanager
def stop_on_signals() -> Generator[asyncio.Event]:
    """An event that SIGTERM, SIGINT and SIGHUP set, instead of what they do otherwise."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    # What was started with nohup is to outlive its terminal.
    outlives = signal.getsignal(_CLOSED) is signal.SIG_IGN
    numbers = _SIGNALS if outlives else (*_SIGNALS, _CLOSED)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
