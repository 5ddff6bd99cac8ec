"""Parts that are started again whenever they end."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn

from stack.children import StackError
from stack.parts import Part

PAUSES: Final = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each of the first attempts."""
LONG_PAUSE: Final = 30.0
"""Seconds before each later one."""
_STEADY_SECONDS: Final = 60.0
"""Once it has been up for so long, its earlier failures no longer count."""
_LAST_LINES: Final = 10
_LAST_BYTES: Final = 8192


class Keeper:
    """Keeps one part running until it is stopped.

    A part that fails at each start, five times in a row, is reported with the last lines of its
    log and tried again with long pauses.

    Args:
        part: What to run.
        announce: Gets what people should know: a line, or several.
        patient: Continue with a part that has never been up and fails at each start.
        pauses: Seconds before the first attempts; another failure is one at each start.
        long_pause: Seconds before each later attempt.
    """

    def __init__(
        self,
        part: Part,
        announce: Callable[[str], None],
        *,
        patient: bool,
        pauses: Sequence[float] = PAUSES,
        long_pause: float = LONG_PAUSE,
    ) -> None:
        self._part = part
        self._announce = announce
        self._patient = patient
        self._pauses = pauses
        self._long_pause = long_pause
        self._failures = 0
        self._been_up = False
        self._settled = asyncio.Event()
        """Set once it has been up, or when its task has ended."""
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(lambda _: self._settled.set())

    async def until_up(self) -> None:
        """Wait until the part has been up once.

        Raises:
            StackError: It fails at each start, and is not waited for.
        """
        await self._settled.wait()
        if self.task.done():
            self.task.result()

    async def stop(self) -> None:
        """End the part, whatever it is doing."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _run(self) -> NoReturn:
        while True:
            reason = await self._run_once()
            self._failures += 1
            if self._failures <= len(self._pauses):
                pause = self._pauses[self._failures - 1]
                self._announce(f"{reason}; starting it again")
            else:
                pause = self._long_pause
                self._report(f"{reason}; it fails at each start")
            await asyncio.sleep(pause)

    async def _run_once(self) -> str:
        """Run it until it ends; why it has ended."""
        try:
            async with self._part.ready(self._announce) as process:
                began = time.monotonic()
                self._note_up()
                code = await process.wait()
                if time.monotonic() - began >= _STEADY_SECONDS:
                    self._failures = 0
        except StackError as error:
            return str(error)
        except OSError as error:
            return f"{self._part.name} cannot be started: {error}"
        return f"{self._part.name} ended with {code}"

    def _note_up(self) -> None:
        if self._failures:
            self._announce(f"{self._part.name} is up{' again' if self._been_up else ''}")
        self._been_up = True
        self._settled.set()

    def _report(self, reason: str) -> None:
        """Say that it fails at each start; the first time with the end of its log.

        Raises:
            StackError: It has never been up, and is not waited for.
        """
        if self._failures == len(self._pauses) + 1:
            log = self._part.log
            reason = "\n".join([f"{reason}; the last lines of {log}:", *_last_lines(log)])
        if not (self._patient or self._been_up):
            raise StackError(reason)
        self._announce(f"{reason}\ntrying {self._part.name} again every {self._long_pause:g} s")


@asynccontextmanager
async def supervised(
    part: Part, announce: Callable[[str], None], *, patient: bool = True
) -> AsyncGenerator[Keeper]:
    """Keep a part running until the block ends; see `Keeper`."""
    keeper = Keeper(part, announce, patient=patient)
    try:
        yield keeper
    finally:
        await keeper.stop()


def _last_lines(log: Path) -> Sequence[str]:
    try:
        end = log.read_bytes()[-_LAST_BYTES:]
    except FileNotFoundError:
        return []
    return [f"  {line}" for line in end.decode(errors="replace").splitlines()[-_LAST_LINES:]]
