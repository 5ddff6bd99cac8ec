"""Whether everything that a process needs is there, when it starts and as long as it works."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from workers.shared.health import Health
from workers.shared.services.errors import ServiceUnavailable
from workers.shared.services.requirements import Requirement, Result

logger = logging.getLogger(__name__)

PROBE_SECONDS: Final = 1.0
"""That soon a probe is answered: orchestrators wait no longer, and would see no reason."""
SETTLED_SECONDS: Final = 5.0
"""Between two looks while everything is there."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 5.0


class NotReady(ServiceUnavailable):
    """Something is missing, and the process is not to wait for it; the message says what."""


@dataclass(frozen=True)
class Pauses:
    """Seconds between two looks."""

    first: float = _FIRST_PAUSE
    longest: float = _LONGEST_PAUSE
    """While something is missing."""
    settled: float = SETTLED_SECONDS


class Readiness:
    """Checks the requirements of a process repeatedly.

    What is missing stands in the health of the process, and in its log once, and again when it
    changes.

    Args:
        requirements: Of the process.
        health: Where it is shown; bridges receive nothing meanwhile.
        pauses: Between two looks.
    """

    def __init__(
        self,
        requirements: Sequence[Requirement],
        health: Health | None = None,
        pauses: Pauses | None = None,
    ) -> None:
        self._requirements = requirements
        self._pauses = pauses or Pauses()
        self.health = health or Health()
        self._looking: asyncio.Task[Sequence[str]] | None = None

    async def check(self) -> Sequence[str]:
        """Look closely at everything; what is in the way of work, a sentence each."""
        return self._noted(await _gathered(each.found for each in self._requirements))

    async def watched(self) -> Sequence[str]:
        """Look again at what may fail while the process works."""
        return self._noted(await _gathered(each.watched for each in self._requirements))

    async def probed(self, seconds: float = PROBE_SECONDS) -> None:
        """Look again, and answer a probe in time: what does not answer so soon is missing.

        Probes that come meanwhile share the check, which is not cut short.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.watched())
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._looking)
        except TimeoutError:
            slow = f"what this process depends on does not answer within {seconds:g} s"
            self.health.missing = self.health.missing or (slow,)

    async def until_met(self, stop: asyncio.Event) -> bool:
        """Wait until everything is there; False: the stop was first.

        Raises:
            SettingsError: A setting cannot be used, which waiting does not repair.
        """
        pause = self._pauses.first
        while await self.check():
            if await _stopped(stop, pause):
                return False
            pause = min(2 * pause, self._pauses.longest)
        return not stop.is_set()

    async def require(self) -> None:
        """Look closely, once.

        Raises:
            NotReady: Something is missing.
        """
        if problems := await self.check():
            raise NotReady("; ".join(problems))

    async def watch(self, stop: asyncio.Event) -> None:
        """Look again until the stop."""
        pauses = self._pauses
        pause = pauses.settled
        while not await _stopped(stop, pause):
            is_missing = bool(await self.watched())
            grown = min(2 * pause, pauses.longest) if pause < pauses.settled else pauses.first
            pause = grown if is_missing else pauses.settled

    def _noted(self, results: Iterable[Result]) -> Sequence[str]:
        problems = tuple(result.problem for result in results if result.problem is not None)
        if problems != self.health.missing:
            for problem in problems:
                logger.warning("not ready: %s", problem)
            if not problems:
                logger.info("everything is there again")
        self.health.missing = problems
        return problems


async def _gathered(asked: Iterable[Callable[[], Awaitable[Result | None]]]) -> list[Result]:
    found = await asyncio.gather(*(ask() for ask in asked))
    return [result for result in found if result is not None]


async def _stopped(stop: asyncio.Event, seconds: float) -> bool:
    """Wait, but not beyond a stop; True: it is set."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True
