"""Looks of a watch over real tables, with a clock of their own."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.transfers.cloud_events import head_of
from activities.transfers.records import Transfer
from activities.transfers.store import SqlSequenceLocks
from activities.transfers.watch_store import SqlWatchStore
from activities.transfers.watches import Watching, WatchPollDeps
from adapters.database.engine import Database
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.events import a_transfer
from tests.support.transfers.listed_place import SentEvents
from workflows.transfers.events import TransferStatus
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.watches import PollWatchInput, PollWatchResult, SeenFile, Watch

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def a_watch(**fields: Any) -> Watch:
    known = {"name": "orders", "partner": "acme", "path": "out/*.csv", "account_id": "ACME"}
    return Watch.model_validate({**known, **fields})


@dataclass
class Rows:
    """As `SqlTransferStore`: the states of transfers, which a test writes."""

    states: dict[str, list[Transfer]] = field(default_factory=dict[str, list[Transfer]])

    def enter(self, event: str, status: TransferStatus, at: datetime) -> None:
        head = head_of(event)
        row = a_transfer(head.transfer_id, status, at=at, event_id="e")
        self.states.setdefault(head.transfer_id, []).append(row)

    async def get(self, transfer_id: str) -> Transfer | None:
        trail = self.states.get(transfer_id)
        return trail[-1] if trail else None

    async def trail(self, transfer_id: str) -> list[Transfer]:
        return self.states[transfer_id]


@dataclass
class Looks:
    """A watch and everything it is given; time passes between two looks."""

    database: Database
    places: Any
    watch: Watch = field(default_factory=a_watch)
    partner: Partner = field(default_factory=lambda: Partner(name="acme", kind=PlaceKind.FOLDER))
    sender: SentEvents = field(default_factory=SentEvents)
    transfers: Any = field(default_factory=Rows)
    now: datetime = NOON

    def __post_init__(self) -> None:
        self.store, self.turns = SqlWatchStore(self.database), SqlSequenceLocks(self.database)

    async def look(self, seconds: float = 60) -> PollWatchResult:
        self.now += timedelta(seconds=seconds)
        partners = MemoryPartners(self.partner)
        ports = WatchPollDeps(
            *(self.places, partners, self.store, self.sender, self.transfers, self.turns),
            now=lambda: self.now,
        )
        order = PollWatchInput(watch=self.watch)
        return await ActivityEnvironment().run(Watching(ports).look, order)

    @property
    def sent(self) -> list[str]:
        return [json.loads(each)["data"]["path"] for each in self.sender.bodies]

    async def seen(self) -> dict[str, SeenFile]:
        return {each.path: each for each in await self.store.files(self.watch.name, 100)}


Make = Callable[..., Looks]
