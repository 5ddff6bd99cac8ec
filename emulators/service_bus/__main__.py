"""`python -m emulators.service_bus`: the emulator by itself, until SIGTERM or Ctrl-C."""

import argparse
import asyncio
import os
import sqlite3
import sys
from pathlib import Path

from emulators.service_bus import DEFAULT_PORT, parse_queue, serve


def main() -> None:
    """Read the command line and run; the connection string to use is printed."""
    parser = argparse.ArgumentParser(prog="python -m emulators.service_bus", description=__doc__)
    parser.add_argument(
        "--queue",
        action="append",
        metavar="NAME[:lock=SECONDS,max=COUNT]",
        help="may be repeated [import-queue]",
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 for a free one [5672]")
    parser.add_argument(
        "--messages", type=Path, metavar="FILE", help="keeps the messages [they live in memory]"
    )
    options = parser.parse_args()
    try:
        queues = [parse_queue(each) for each in options.queue or ["import-queue"]]
    except ValueError as error:
        parser.error(f"--queue: {error}")
    names = [queue.name for queue in queues]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        parser.error(f"--queue: {', '.join(twice)} is named twice")
    try:
        asyncio.run(serve(queues, port=options.port, announce=_announce, messages=options.messages))
    except OSError as error:
        sys.exit(
            f"cannot listen on port {options.port}: {os.strerror(error.errno or 0)}; "
            "choose another with --port"
        )
    except sqlite3.DatabaseError as error:
        sys.exit(f"--messages: cannot use {options.messages}: {error}")


def _announce(connection_string: str) -> None:
    print(f"AZURE_SERVICE_BUS_CONNECTION_STRING='{connection_string}'", flush=True)


if __name__ == "__main__":
    main()
