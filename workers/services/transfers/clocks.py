"""What people do with watches and expected files: list them, run them now, pause them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports.watches import ExpectedStore, WatchStore
from contracts.transfers.watches import (
    EXPECTED_PREFIX,
    WATCH_PREFIX,
    Expectation,
    ExpectedDay,
    SeenFile,
    Watch,
    WatchState,
)
from domain.transfers.expectations import Clocks
from workers.pipelines.schedules import Declared
from workers.schedules import ScheduleView, look
from workers.services.errors import NotFound, TemporalUnavailable


@dataclass(frozen=True)
class WatchView:
    """A watch, its schedule, and what its last look came to."""

    watch: Watch
    schedule: ScheduleView
    state: WatchState | None


@dataclass(frozen=True)
class ExpectedView:
    """An expectation, its schedule, and its newest day."""

    expectation: Expectation
    schedule: ScheduleView
    day: ExpectedDay | None


class ClockService:
    """Operations on what the file of watches declares; a refusal is a `ServiceError`.

    Args:
        client: Of Temporal, which keeps the schedules.
        clocks: What is declared.
        schedules: The same, as schedules, by id.
        watches: What looks have seen.
        expected: What was recorded of days.
    """

    def __init__(
        self,
        client: Client,
        clocks: Clocks,
        schedules: Mapping[str, Declared],
        watches: WatchStore,
        expected: ExpectedStore,
    ) -> None:
        self._client, self._clocks, self._schedules = client, clocks, schedules
        self._watches, self._expected = watches, expected

    async def watches(self) -> Sequence[WatchView]:
        """All watches."""
        views = await self._views(WATCH_PREFIX)
        return [
            WatchView(each, views[name], await self._watches.state(name))
            for name, each in self._clocks.watches.items()
        ]

    async def expected(self) -> Sequence[ExpectedView]:
        """Everything that is expected."""
        views = await self._views(EXPECTED_PREFIX)
        found: list[ExpectedView] = []
        for name, each in self._clocks.expected.items():
            days = await self._expected.days(name, 1)
            found.append(ExpectedView(each, views[name], days[0] if days else None))
        return found

    async def days(self, name: str, limit: int) -> Sequence[ExpectedDay]:
        """What was recorded of an expectation, the newest day first."""
        self._schedule_of(EXPECTED_PREFIX, name)
        return await self._expected.days(name, limit)

    async def files(self, name: str, limit: int, *, unsent: bool) -> Sequence[SeenFile]:
        """What a watch has seen, the newest first."""
        self._schedule_of(WATCH_PREFIX, name)
        return await self._watches.files(name, limit, unsent=unsent)

    async def run(self, prefix: str, name: str) -> None:
        """Look, or check, now; while one is under way it is the one that counts."""
        handle = self._client.get_schedule_handle(self._schedule_of(prefix, name))
        try:
            await handle.trigger()
        except RPCError as error:
            raise _refused(name, error) from error

    async def pause(self, prefix: str, name: str, note: str, *, paused: bool) -> None:
        """Stop a schedule, or let it go on; a restart of workers changes neither."""
        handle = self._client.get_schedule_handle(self._schedule_of(prefix, name))
        try:
            await (handle.pause(note=note) if paused else handle.unpause(note=note))
        except RPCError as error:
            raise _refused(name, error) from error

    def _schedule_of(self, prefix: str, name: str) -> str:
        id = f"{prefix}{name}"
        if id not in self._schedules:
            declared = self._clocks.watches if prefix == WATCH_PREFIX else self._clocks.expected
            known = ", ".join(declared) or "none"
            raise NotFound(f"{name} is not declared; declared are {known}")
        return id

    async def _views(self, prefix: str) -> Mapping[str, ScheduleView]:
        own = {id: row for id, row in self._schedules.items() if id.startswith(prefix)}
        return {view.id.removeprefix(prefix): view for view in await look(self._client, own)}


def _refused(name: str, error: RPCError) -> NotFound | TemporalUnavailable:
    if error.status is RPCStatusCode.NOT_FOUND:
        return NotFound(
            f"{name} has no schedule yet: `docflow schedules reconcile`, or a worker, makes it"
        )
    return TemporalUnavailable(f"Temporal does not answer: {error.message}")
