"""Whatever comes as an event or stands in the settings: a row for each, and nothing crashes.

`test_fuzzed_rows.py` takes thousands, up to the plans of their jobs; here each is carried out.
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from temporalio import activity, client, worker
from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.transfers.cloud_events import head_of
from activities.transfers.operators_files import Queue
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlRouteStore, SqlTransferStore
from stack.temporal import temporal_server
from tests.support.chaos import seed
from tests.support.transfers.fuzzing import FuzzedSettings, Fuzzing
from tests.support.transfers.whole import WholeWorkers, folder_settings, whole_workers
from workers.shared.services.bodies import DeadLetter, Settle
from workers.transfers.starts import TransferIntake
from workflows.shared.contracts import Answer
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import TransferView, file_job_id, transfer_workflow_id

pytestmark = pytest.mark.chaos(alone=True)

NUMBER: Final = 240
AT_ONCE: Final = 20
LOOK_SECONDS: Final = 3
"""A run that has not ended after so long may wait for a person."""
END_SECONDS: Final = 300
QUEUES: Final = "queues:\n- name: jobs\n  handler: x\n  slots: 20\n"


class Faults(client.Interceptor, worker.Interceptor):
    """Notes activities that fail by something that docflow does not expect."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def intercept_activity(
        self, next: worker.ActivityInboundInterceptor
    ) -> worker.ActivityInboundInterceptor:
        return _Noting(next, self.found)


class _Noting(worker.ActivityInboundInterceptor):
    def __init__(self, next: worker.ActivityInboundInterceptor, found: list[str]) -> None:
        super().__init__(next)
        self._found = found

    async def execute_activity(self, input: worker.ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except ApplicationError as error:
            if error.message.startswith("unexpected "):
                self._found.append(_said(error.message))
            raise
        except Exception as error:
            self._found.append(_said(repr(error)))
            raise


def _said(fault: str) -> str:
    """A fault, with the run, by whose id its settings are found again."""
    info = activity.info()
    return f"{info.activity_type} of {info.workflow_id}: {fault}"


@dataclass
class Fuzzed:
    """Workers, and what came of their events."""

    workers: WholeWorkers
    faults: Faults
    store: SqlTransferStore
    ends: dict[str, int] = field(default_factory=dict[str, int])

    def intake(self, queue: str | None) -> TransferIntake:
        found = None if queue is None else Queue(name=queue, handler="x")
        rejected = self.workers.resources.rejected
        return TransferIntake(self.workers.client, rejected, way_in=queue or "in", queue=found)

    async def carry_out(self, raw: bytes, queue: str | None) -> None:
        """One message, from its queue to the end of its run."""
        verdict = await self.intake(queue).accept(raw, 0, None)
        if isinstance(verdict, DeadLetter):
            self._count(verdict.reason)
            return
        assert isinstance(verdict, Settle), f"{raw!r}: {verdict}"
        id = head_of(raw.decode("utf-8-sig", errors="backslashreplace")).transfer_id
        await self._end(transfer_workflow_id(id) if queue is None else verdict.workflow_id)
        row = await self.store.get(id)
        assert row is not None, raw
        if row.queue is not None:
            await self._end(file_job_id(id))
            row = await self.store.get(id)
            assert row is not None
        assert row.status not in ("Assigned", "ReadMessage", "NoAssigned"), (raw, row)
        self._count(row.status.value)

    async def _end(self, run: str) -> None:
        """Wait for the end of a run; what waits for a person or a retry is given up."""
        handle = self.workers.client.get_workflow_handle(run, result_type=TransferView)
        async with asyncio.timeout(END_SECONDS):
            while not await _has_ended(handle):
                await _given_up(handle)

    def _count(self, end: str) -> None:
        self.ends[end] = self.ends.get(end, 0) + 1


async def _has_ended(handle: WorkflowHandle[Any, Any]) -> bool:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            await handle.result()
    except TimeoutError:
        return False
    except WorkflowFailureError:
        return True
    return True


async def _given_up(handle: WorkflowHandle[Any, Any]) -> None:
    """Give up a run that waits for a person or a retry; any other continues."""
    try:
        view = await handle.query("status", result_type=TransferView)
    except (RPCError, WorkflowQueryFailedError):
        # A busy machine: one that never answers never ends either.
        return
    is_retried = any("retry" in (each.note or "") for each in view.actions)
    if view.since is None and not is_retried:
        return
    try:
        await handle.signal("fail" if view.since is not None else "cancel", Answer(by="ann"))
    except RPCError as error:
        # It may have ended meanwhile.
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


@pytest.fixture(name="seed")
def _seed() -> str:
    return seed()


@pytest_asyncio.fixture
async def fuzzed(
    tmp_path: Path, seed: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Fuzzed]:
    """Workers over folders, and a rule that takes most events."""
    monkeypatch.setattr(
        "workers.transfers.resources.settings_source", lambda *places: FuzzedSettings(seed)
    )
    for name in ("in", "share/in", "out"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "share/in/orders.csv").write_bytes(b"a;b\n" * 100)
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        settings = folder_settings(tmp_path, server.address, QUEUES)
        faults = Faults()
        async with whole_workers(settings, faults) as workers:
            database = workers.resources.database
            partners = SqlPartnerStore(database)
            for name, folder in (("acme", "share"), ("store", "out")):
                where = str(tmp_path / folder)
                await partners.put(Partner(name=name, kind=PlaceKind.FOLDER, container=where))
            await SqlRouteStore(database).put(RouteRule(queue="jobs", rule="1", source="TMS*"))
            store = SqlTransferStore(database)
            yield Fuzzed(workers, faults, store)


async def test_whatever_comes_has_a_row_and_crashes_nothing(fuzzed: Fuzzed, seed: str) -> None:
    dice = random.Random(seed)
    fuzzing = Fuzzing(dice)
    messages = [(fuzzing.message(), dice.choice((None, "jobs"))) for _ in range(NUMBER)]
    turns = asyncio.Semaphore(AT_ONCE)

    async def carry_out(raw: bytes, queue: str | None) -> None:
        async with turns:
            await fuzzed.carry_out(raw, queue)
            assert fuzzed.faults.found == []

    async with asyncio.TaskGroup() as group:
        for each in messages:
            group.create_task(carry_out(*each))
    assert sum(fuzzed.ends.values()) == NUMBER
    assert {"Succeeded", "Failed", "Invalid", "Garbage"} <= set(fuzzed.ends), fuzzed.ends
