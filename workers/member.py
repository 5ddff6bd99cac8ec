"""One of the processes of a worker, as it sees itself and reports to the one that started it."""

import asyncio
import json
import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NoReturn

from workers.capacity import Share
from workers.health import Health

logger = logging.getLogger(__name__)

SECONDS: Final = 0.25
"""Between two reports."""
_GRACE: Final = 30.0
"""Seconds that a process has to end in when the one that started it is gone."""


@dataclass(frozen=True)
class Report:
    """What a process says of itself."""

    ready: bool = False
    problems: Sequence[str] = ()
    metrics: str | None = None
    """Address of its metrics, as `127.0.0.1:9091`; None: it has none."""
    failure: str | None = None
    """Why it ends, in one sentence."""

    def packed(self) -> bytes:
        """As one message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unpacked(cls, message: bytes) -> "Report":
        """The report that a message holds."""
        held: dict[str, Any] = json.loads(message)
        return cls(**held)


@dataclass(frozen=True)
class Member:
    """One of several processes of a worker.

    What a worker does once, for all of them, the first one does.
    """

    number: int
    """From 1."""
    share: Share
    """What it has."""
    channel: socket.socket
    """Reports go here, a message each; it ends when the process that started this one is gone."""

    @property
    def is_first(self) -> bool:
        """Whether it does what is done once."""
        return self.number == 1

    def fail(self, reason: str) -> None:
        """Report why this process ends."""
        self._send(Report(failure=reason))

    async def report(self, health: Health, metrics: str | None) -> NoReturn:
        """Report until this is cancelled.

        Args:
            health: Of this process.
            metrics: Address of its metrics.
        """
        while True:
            self._send(Report(health.ready, health.problems, metrics))
            await asyncio.sleep(SECONDS)

    def _send(self, report: Report) -> None:
        try:
            self.channel.send(report.packed(), socket.MSG_DONTWAIT)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            # It no longer reads, or will later: what counts is the newest report.
            return


def channel() -> tuple[socket.socket, socket.socket]:
    """Both ends of a channel for reports: that of the reader, and that of the process."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def end_with(channel: socket.socket, grace: float = _GRACE) -> None:
    """Let this process end when the one that started it is gone: as by SIGTERM, or at last at once.

    Args:
        channel: Nothing is ever sent to this process.
        grace: Seconds between the two.
    """
    threading.Thread(target=_wait_for_end, args=(channel, grace), daemon=True).start()


def _wait_for_end(channel: socket.socket, grace: float) -> None:
    select.select([channel], [], [])
    logger.error("the parent of this process is gone, so it ends too")
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(grace)
    logger.error("it has not ended within %g s, and ends at once", grace)
    os._exit(1)
