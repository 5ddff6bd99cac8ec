"""What people do with watches and expected files: list them, run them now, pause them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.transfers.operators_files import Clocks
from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
from workers.shared.schedules import pause, trigger
from workers.shared.services.errors import NotFound, TemporalUnavailable
from workflows.transfers.events import transfer_id_of
from workflows.transfers.watches import (
    EXPECTED_PREFIX,
    WATCH_PREFIX,
    Expectation,
    ExpectedDay,
    SeenFile,
    Watch,
    WatchState,
)


@dataclass(frozen=True)
class ClockView:
    """A schedule, as Temporal has it."""

    state: str
    """`missing`, `paused` or `active`; `docflow schedule list` says whether it is as declared."""
    next_run: datetime | None = None


@dataclass(frozen=True)
class WatchView:
    """A watch, its schedule, and what its last look came to."""

    watch: Watch
    schedule: ClockView
    state: WatchState | None


@dataclass(frozen=True)
class ExpectedView:
    """An expectation, its schedule, and its newest day."""

    expectation: Expectation
    schedule: ClockView
    day: ExpectedDay | None


class ClockService:
    """Operations on what the file of watches declares; a refusal is a `ServiceError`.

    Args:
        client: Of Temporal, which keeps the schedules.
        clocks: What is declared.
        watches: What looks have seen.
        expected: What was recorded of days.
    """

    def __init__(
        self,
        client: Client,
        clocks: Clocks,
        watches: SqlWatchStore,
        expected: SqlExpectedStore,
    ) -> None:
        self._client, self._clocks = client, clocks
        self._watches, self._expected = watches, expected

    async def watches(self) -> Sequence[WatchView]:
        """All watches."""
        return [
            WatchView(each, await self._view(WATCH_PREFIX, name), await self._watches.state(name))
            for name, each in self._clocks.watches.items()
        ]

    async def expected(self) -> Sequence[ExpectedView]:
        """Everything that is expected."""
        found: list[ExpectedView] = []
        for name, each in self._clocks.expected.items():
            days = await self._expected.days(name, 1)
            view = await self._view(EXPECTED_PREFIX, name)
            found.append(ExpectedView(each, view, days[0] if days else None))
        return found

    async def days(self, name: str, limit: int) -> Sequence[ExpectedDay]:
        """What was recorded of an expectation, the newest day first."""
        self._schedule_of(EXPECTED_PREFIX, name)
        return await self._expected.days(name, limit)

    async def files(self, name: str, limit: int, *, unsent: bool) -> Sequence[SeenFile]:
        """What a watch has seen, the newest first."""
        self._schedule_of(WATCH_PREFIX, name)
        return await self._watches.files(name, limit, unsent=unsent)

    def transfer_of(self, name: str, file: SeenFile) -> str | None:
        """Id of the transfer of a file that a watch has seen; None: no event was sent of it."""
        if file.event is None:
            return None
        return transfer_id_of(self._clocks.watches[name].source, file.event)

    async def run(self, prefix: str, name: str) -> None:
        """Look, or check, now; while one is under way it is the one that counts."""
        id = self._schedule_of(prefix, name)
        try:
            await trigger(self._client, id)
        except RPCError as error:
            raise _refused(name, error) from error

    async def pause(self, prefix: str, name: str, note: str, *, paused: bool) -> None:
        """Pause a schedule, or resume it; a restart of workers changes neither."""
        id = self._schedule_of(prefix, name)
        try:
            await pause(self._client, id, note, paused=paused)
        except RPCError as error:
            raise _refused(name, error) from error

    def _schedule_of(self, prefix: str, name: str) -> str:
        declared = self._clocks.watches if prefix == WATCH_PREFIX else self._clocks.expected
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise NotFound(f"{name} is not declared; declared are {known}")
        return f"{prefix}{name}"

    async def _view(self, prefix: str, name: str) -> ClockView:
        try:
            found = await self._client.get_schedule_handle(f"{prefix}{name}").describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return ClockView("missing")
            raise _refused(name, error) from error
        state = "paused" if found.schedule.state.paused else "active"
        return ClockView(state, next(iter(found.info.next_action_times), None))


def _refused(name: str, error: RPCError) -> NotFound | TemporalUnavailable:
    if error.status is RPCStatusCode.NOT_FOUND:
        return NotFound(
            f"{name} has no schedule yet: `docflow schedule reconcile`, or a worker, makes it"
        )
    return TemporalUnavailable(f"Temporal does not answer: {error.message}")
