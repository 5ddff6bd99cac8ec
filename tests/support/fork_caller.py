"""A process with a fork at work that never ends by itself; it prints the id of the fork."""

import asyncio
import sys
from contextlib import aclosing

from adapters.files.forks import Bounds, ForkRequest, Forks


async def main(module: str) -> None:
    """Wait for an answer without an end."""
    async with (
        Forks(module, 1) as forks,
        aclosing(forks.answer(ForkRequest(body="pid", bounds=Bounds()))) as pieces,
    ):
        async for piece in pieces:
            print(piece.decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
