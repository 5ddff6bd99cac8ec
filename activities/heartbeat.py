"""Heartbeats of long activities."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from temporalio import activity

from activities.handover import chunk_committed
from contracts.base import Contract

LONGEST_PAUSE: Final = 1.0
"""Seconds between heartbeats, whatever the timeout: that fresh a person sees the progress, and
that soon a cancellation request, which comes with the answer, stops the work."""


class Heartbeater:
    """Reports to the server at regular intervals that the activity lives, and its progress.

    A context manager. Silent in local activities and where no heartbeat timeout is set. Until
    the first `beat` it repeats the last details of the previous attempt, so nothing is lost.
    """

    def __init__(self) -> None:
        info = activity.info()
        self._newest: Sequence[Any] = info.heartbeat_details
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
        while True:
            activity.heartbeat(*self._newest)
            await asyncio.sleep(pause)
