"""Watches and expected files: what is declared, and what came of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.transfers.operators_files import Clocks
from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
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

    id: str
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
        self._require(name, self._clocks.expected)
        return await self._expected.days(name, limit)

    async def files(self, name: str, limit: int, *, unsent: bool) -> Sequence[SeenFile]:
        """What a watch has seen, the newest first."""
        self._require(name, self._clocks.watches)
        return await self._watches.files(name, limit, unsent=unsent)

    def transfer_of(self, name: str, file: SeenFile) -> str | None:
        """Id of the transfer of a file that a watch has seen; None: no event was sent of it."""
        if file.event is None:
            return None
        return transfer_id_of(self._clocks.watches[name].source, file.event)

    @staticmethod
    def _require(name: str, declared: Collection[str]) -> None:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise NotFound(f"{name} is not declared; declared are {known}")

    async def _view(self, prefix: str, name: str) -> ClockView:
        id = f"{prefix}{name}"
        try:
            found = await self._client.get_schedule_handle(id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return ClockView(id, "missing")
            raise TemporalUnavailable(f"Temporal does not answer: {error.message}") from error
        state = "paused" if found.schedule.state.paused else "active"
        return ClockView(id, state, next(iter(found.info.next_action_times), None))
