"""What processes of a worker do under test; a new process imports it from here."""

import asyncio
import os
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path

from workers.shared.health import Health, stop_on_signals
from workers.shared.machine import Share
from workers.shared.process import Member, Report
from workers.shared.supervisor import Supervisor

SHARE = Share(processes=2, memory_bytes=1 << 30, connections=None)


def works(folder: Path, number: int, channel: socket.socket) -> None:
    """Leave the process id in the folder, report, and end by a signal."""
    asyncio.run(_work(folder, number, channel))


async def _work(folder: Path, number: int, channel: socket.socket) -> None:
    with stop_on_signals() as stop:
        (folder / f"{number}-{os.getpid()}").touch()
        health = Health(ready=True)
        member = Member(number, SHARE, channel)
        reporting = asyncio.create_task(member.report(health, f"127.0.0.1:{number}"))
        await stop.wait()
        reporting.cancel()
    (folder / f"ended-{number}-{os.getpid()}").touch()


def waits_for_the_database(number: int, channel: socket.socket) -> None:
    """Report what is missing, the second one more than the first."""
    asyncio.run(_wait(number, channel))


async def _wait(number: int, channel: socket.socket) -> None:
    with stop_on_signals() as stop:
        missing = ["the database is not available", *["no memory"][: number - 1]]
        member = Member(number, SHARE, channel)
        reporting = asyncio.create_task(member.report(Health(missing=missing), None))
        await stop.wait()
        reporting.cancel()


def fails(folder: Path, number: int, channel: socket.socket) -> None:
    """Say why, and end; the second one works."""
    if number == 2:
        works(folder, number, channel)
    (folder / f"start-{time.monotonic_ns()}").touch()
    Member(number, SHARE, channel).fail("Temporal refuses its schedules")
    sys.exit(1)


def fails_after_a_report(number: int, channel: socket.socket) -> None:
    """Report once, as a process that is up does, and end."""
    channel.send(Report(ready=True).packed())
    sys.exit(1)


def never_reports(number: int, channel: socket.socket) -> None:
    """Wait for the request to end, as one that hangs while it starts."""
    signal.pause()


def hangs(number: int, channel: socket.socket) -> None:
    """Ignore the request to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Member(number, SHARE, channel).fail(str(os.getpid()))
    time.sleep(600)


async def main(folder: Path) -> None:
    """A parent with two processes."""
    with stop_on_signals() as stop:
        await Supervisor(partial(works, folder), 2, Health()).run(stop)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
