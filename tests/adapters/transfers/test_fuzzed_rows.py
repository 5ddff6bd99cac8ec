"""Thousands of events and settings, without a server: each event has a row, and nothing crashes.

`test_fuzzed_transfers.py` carries out some of them as a whole.
"""

import json
import random
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.transfers.operators_files import read_queues
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.reception import (
    Planning,
    PlanningPorts,
    Receiving,
    ReceivingPorts,
    RouteCache,
)
from activities.transfers.store import SqlRouteStore, SqlSequenceLocks, SqlTransferStore
from tests.support.chaos import kills, seed
from tests.support.fresh_database import fresh_url
from tests.support.transfers.fuzzing import FuzzedSettings, Fuzzing
from workers.shared.resources import open_resources
from workers.shared.services.bodies import DeadLetter, Settle
from workers.transfers.starts import TransferIntake
from workflows.shared.errors import PERMANENT
from workflows.transfers.events import TransferStatus
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import FileEventInput, FileJobInput, PlanInput

NUMBER: Final = kills(300, 2_000)
QUEUES: Final = "queues:\n- name: jobs\n  handler: x\n"


class Taken:
    """As the client of Temporal: keeps what a run was started with."""

    def __init__(self) -> None:
        self.order: FileEventInput | FileJobInput | None = None

    async def start_workflow(self, workflow: str, order: Any, **options: Any) -> None:
        """Take it."""
        self.order = order


@dataclass
class Desk:
    """What decides about events, over real tables."""

    receiving: Receiving
    planning: Planning
    store: SqlTransferStore
    rejected: Any
    ends: Counter[str] = field(default_factory=Counter[str])
    _taken: set[str] = field(default_factory=set[str])

    async def take(self, raw: bytes, queue: str | None) -> None:
        """One message, up to the plan of its job."""
        client: Any = Taken()
        found = None if queue is None else read_queues(QUEUES)[queue]
        intake = TransferIntake(client, self.rejected, way_in=queue or "in", queue=found)
        verdict = await intake.accept(raw, 0, None)
        if isinstance(verdict, DeadLetter):
            self.ends[verdict.reason] += 1
            return
        assert isinstance(verdict, Settle), raw
        order = client.order
        if order.transfer_id in self._taken:
            # Temporal starts no second run of an id that chance has made twice.
            self.ends["repeated"] += 1
            return
        self._taken.add(order.transfer_id)
        if isinstance(order, FileEventInput):
            order = await self._routed(order)
        if isinstance(order, FileJobInput):
            await self._planned(order)

    async def _routed(self, order: FileEventInput) -> FileJobInput | None:
        reception = await ActivityEnvironment().run(self.receiving.receive, order)
        row = await self.store.get(order.transfer_id)
        assert row is not None and row.status is reception.status, order.body
        route = reception.route
        if reception.event is None or route is None or route.queue is None:
            assert row.reason, order.body
            self.ends[row.status] += 1
            return None
        fields = order.model_dump(exclude={"body"})
        return FileJobInput(queue=route.queue, event=reception.event, **fields)

    async def _planned(self, order: FileJobInput) -> None:
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, workflow_id=order.transfer_id)
        try:
            plan = await environment.run(
                self.planning.load_plan, PlanInput(job=order, at=order.arrived)
            )
        except ApplicationError as refused:
            # It parks, with the reason.
            assert refused.type == PERMANENT and refused.message, refused
            self.ends["parked"] += 1
            return
        row = await self.store.get(order.transfer_id)
        assert row is not None and row.status is TransferStatus.READ_MESSAGE
        assert len(plan.names) == len(plan.job.actions.list)
        json.loads(plan.model_dump_json())
        self.ends["planned"] += 1


@pytest.fixture(name="seed")
def _seed() -> str:
    return seed()


@pytest_asyncio.fixture
async def desk(tmp_path: Path, seed: str) -> AsyncGenerator[Desk]:
    (tmp_path / "blobs").mkdir()
    settings = {
        "DATABASE_URL": fresh_url(),
        "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
        "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
    }
    queues = read_queues(QUEUES)
    async with open_resources(settings) as resources:
        database = resources.database
        partners, routes = SqlPartnerStore(database), SqlRouteStore(database)
        for name in ("acme", "store"):
            await partners.put(Partner(name=name, kind=PlaceKind.FOLDER))
        await routes.put(RouteRule(queue="jobs", rule="1", source="TMS*"))
        store, jobs = SqlTransferStore(database), pytest.fail
        receiving: Any = ReceivingPorts(
            store, RouteCache(routes), queues, resources.rejected, jobs=jobs
        )
        planning = PlanningPorts(
            FuzzedSettings(seed),
            partners,
            queues,
            SqlSequenceLocks(database),
            store,
            keeps_copies=False,
        )
        yield Desk(Receiving(receiving), Planning(planning), store, resources.rejected)


@pytest.mark.chaos
async def test_each_of_thousands_of_events_has_a_row_and_a_reason(desk: Desk, seed: str) -> None:
    dice = random.Random(seed)
    fuzzing = Fuzzing(dice)
    for _ in range(NUMBER):
        await desk.take(fuzzing.message(), dice.choice((None, "jobs")))
    assert desk.ends.total() == NUMBER
    assert {"planned", "parked", "Invalid", "Garbage", "NoAssigned"} <= set(desk.ends), desk.ends
