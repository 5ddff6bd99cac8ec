"""Heartbeats of long activities."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from temporalio import activity

from activities.handover import chunk_committed
from contracts.base import Contract
from domain.errors import WorkersLost

LONGEST_PAUSE: Final = 1.0
"""Seconds between heartbeats, whatever the timeout: that fresh a person sees the progress, and
that soon a cancellation request, which comes with the answer, stops the work."""
LOST_WORKERS: Final = 20
"""So often the same work may lose its worker, in a row."""
LOST_SILENTLY: Final = 200
"""The same without a heartbeat that counts: attempts of an earlier release may have failed."""


class Heartbeater:
    """Reports to the server at regular intervals that the activity lives, and its progress.

    A context manager. Silent in local activities and where no heartbeat timeout is set. Until
    the first `beat` it repeats the last details of the previous attempt, so nothing is lost. A
    first attempt that ends within its first pause sends none: it has nothing to repeat, and each
    costs the server as much as a step of the history.
    """

    def __init__(self) -> None:
        info = activity.info()
        self._newest: Sequence[Any] = info.heartbeat_details
        self._is_first = info.attempt == 1 and not info.heartbeat_details
        timeout = None if info.is_local else info.heartbeat_timeout
        self._pause = (
            min(timeout.total_seconds() / 2, LONGEST_PAUSE) if timeout is not None else None
        )
        self._task: asyncio.Task[None] | None = None

    def beat(self, details: Contract) -> None:
        """Remember how far the work is; the next heartbeat carries it.

        Call it when something is committed: a local step that is due hands over here.
        """
        self._newest = (details,)
        chunk_committed()

    async def __aenter__(self) -> Self:
        if self._pause:
            self._task = asyncio.create_task(self._send(self._pause))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if error is not None:
            # What this attempt reached goes with its failure.
            activity.heartbeat(*self._newest)

    async def _send(self, pause: float) -> None:
        if self._is_first:
            await asyncio.sleep(pause)
        while True:
            activity.heartbeat(*self._newest)
            await asyncio.sleep(pause)


class Attempts(Contract):
    """What every heartbeat of bounded work begins with."""

    ended: int = 0
    """The newest attempt that ended by itself; those after it lost their workers."""


class BoundedHeartbeater(Heartbeater):
    """One for work that may take its worker along, as code of others may: by memory, by a crash.

    The server would repeat it for ever without a reason that anyone sees. Its heartbeats count the
    attempts, before what `beat` is given.

    Args:
        work: What is done, for the reason, as in "they planned the stage".

    Raises:
        WorkersLost: On entering it: too many attempts in a row lost their workers.
    """

    def __init__(self, work: str) -> None:
        super().__init__()
        self._work = work
        info = activity.info()
        counted, self._progress = info.heartbeat_details[:1], info.heartbeat_details[1:]
        # An earlier release sent the progress of some steps alone.
        known = [Attempts.model_validate(each) for each in counted if "ended" in each]
        self._ended = known[0].ended if known else 0
        self._lost = info.attempt - 1 - self._ended
        self._most = LOST_WORKERS if known else LOST_SILENTLY

    def beat(self, details: Contract) -> None:
        """Remember how far the work is; the next heartbeat carries it, behind the attempts."""
        self._progress = (details,)
        self._remember(self._ended)

    def _remember(self, ended: int) -> None:
        self._newest = (Attempts(ended=ended), *self._progress)
        chunk_committed()

    async def __aenter__(self) -> Self:
        if self._lost >= self._most:
            raise WorkersLost(
                f"{self._lost} workers in a row were lost, or did not answer, while they "
                f"{self._work}: it crashes them, needs more memory than they have, or blocks "
                "their event loop"
            )
        self._remember(self._ended)
        entered = await super().__aenter__()
        # A repeated attempt has its first heartbeat on its way before the work begins.
        await asyncio.sleep(0)
        return entered

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._remember(activity.info().attempt)
        await super().__aexit__(kind, error, traceback)
