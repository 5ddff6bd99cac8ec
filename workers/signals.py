"""The operator's request to stop."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals() -> Generator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set, instead of what they do otherwise."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
