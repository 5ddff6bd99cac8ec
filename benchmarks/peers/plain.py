"""`python -m benchmarks.peers.plain`: documents of standard input, with asyncio alone."""

import asyncio
import sys

from benchmarks.peers.steps import AT_ONCE, open_steps


async def main() -> None:
    """Import until the input ends; what is accepted is in memory alone."""
    waiting: asyncio.Queue[str] = asyncio.Queue()
    async with open_steps() as steps, asyncio.TaskGroup() as group:

        async def work() -> None:
            while body := await waiting.get():
                path = await steps.prepare(body)
                await steps.load(body, path)
                await steps.finish(body)

        for _ in range(AT_ONCE):
            group.create_task(work())
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            waiting.put_nowait(line.strip())
        for _ in range(AT_ONCE):
            waiting.put_nowait("")


if __name__ == "__main__":
    asyncio.run(main())
