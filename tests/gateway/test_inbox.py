"""Batches in the inbox: those that wait, and those that ended and left something."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.client import WorkflowHandle
from temporalio.worker import Worker

from tests.support.gateway import Stack, build_app, sign_in, token
from tests.support.waiting import eventually
from workers.batches.register import BATCHES
from workers.shared.services import inbox
from workers.shared.services.known_runs import awaiting
from workers.shared.services.outages import OutageView
from workers.shared.services.runs import TemporalRuns
from workflows.batches.names import LARGEST_ID, BatchKey
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")

TASK_QUEUE = "batches-of-the-inbox"
TEMPORAL_UI = "https://temporal.example.com"
OPERATOR = token("olga", 1, "operator")


@workflow.defn(name="BatchLifecycle")
class Batch:
    """As far as the inbox sees one."""

    @workflow.run
    async def run(self, state: str, waits: bool, ends: bool) -> None:
        workflow.upsert_search_attributes(
            attributes.waiting(state, workflow.now(), attributes.OPERATORS)
            if waits
            else attributes.not_waiting(state)
        )
        await workflow.wait_condition(lambda: ends)


@dataclass
class Batches:
    """Runs of batches, and what an operator's inbox says of them."""

    stack: Stack
    open: list[WorkflowHandle[Any, Any]] = field(default_factory=list[WorkflowHandle[Any, Any]])

    async def run(
        self, key: BatchKey, state: str, *, waits: bool = True, ends: bool = True
    ) -> None:
        handle = await self.stack.client.start_workflow(
            Batch.run,
            args=[state, waits, ends],
            id=key.workflow_id,
            task_queue=TASK_QUEUE,
            search_attributes=attributes.at_start("batches", "load", str(key.case_id)),
        )
        if ends:
            await handle.result()
        else:
            self.open.append(handle)

    async def shown(self, bearer: str = OPERATOR) -> dict[str, str]:
        """Workflow id to state."""
        async with self.stack.browser(bearer) as browser:
            answer = await browser.get("/api/inbox")
            assert answer.status_code == 200, answer.text
            return {each["workflowId"]: each["state"] for each in answer.json()}

    async def counted(self) -> int:
        """How many batches `docflow status` says wait for a person."""
        return (await TemporalRuns(self.stack.client, {}).pipeline(BATCHES)).waiting

    async def listed(self) -> set[str]:
        """The batches that `docflow status` names."""
        address = self.stack.client.service_client.config.target_host
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TEMPORAL_ADDRESS", address)
            url = self.stack.resources.database.engine.url
            settings = {"DATABASE_URL": url.render_as_string(hide_password=False)}
            found = await awaiting(settings, BATCHES, 100)
        return {run.answers_at for run in found}

    async def page(self) -> str:
        """The inbox as a browser shows it."""
        app, _ = build_app(self.stack.client, self.stack.resources, temporal_ui=TEMPORAL_UI)
        async with self.stack.browser(app=app) as olga:
            await sign_in(olga, OPERATOR)
            return (await olga.get("/")).text

    async def until_shown(self, case_id: int, expected: Mapping[int, str]) -> None:
        """Wait until exactly these batches of a case are there: id to state."""
        wanted = {f"batch/{case_id}/{id}": state for id, state in expected.items()}

        async def there() -> bool:
            found = (await self.shown()).items()
            shown = {id: said for id, said in found if id.startswith(f"batch/{case_id}/")}
            every = {id for id, _ in found if id.startswith("batch/")}
            same = len(every) == await self.counted() and every == await self.listed()
            return same and shown == wanted

        await eventually(there)


@pytest_asyncio.fixture(loop_scope="session")
async def batches(stack: Stack) -> AsyncIterator[Batches]:
    worker = Worker(
        stack.client,
        task_queue=TASK_QUEUE,
        workflows=[Batch],
    )
    async with worker:
        started = Batches(stack)
        yield started
        for handle in started.open:
            await handle.terminate()


async def test_a_batch_that_is_parked_is_shown_to_operators(batches: Batches) -> None:
    parked, loading = BatchKey(case_id=7, batch_id=1), BatchKey(case_id=7, batch_id=2)
    await batches.run(parked, "parked", ends=False)
    await batches.run(loading, "loading", waits=False, ends=False)
    await batches.until_shown(7, {1: "parked"})
    assert parked.workflow_id not in await batches.shown(token("anna", 1))
    page = await batches.page()
    assert "Batch 1 of case 7" in page and "Batch · Load" in page
    assert 'href="/batches/7/1"' in page


async def test_a_run_that_was_terminated_awaits_nothing(batches: Batches) -> None:
    for batch_id in (1, 2):
        await batches.run(BatchKey(case_id=9, batch_id=batch_id), "parked", ends=False)
    await batches.until_shown(9, {1: "parked", 2: "parked"})
    handle = batches.open.pop()
    await handle.terminate()
    await batches.until_shown(9, {1: "parked"})


async def test_what_a_batch_left_is_shown_until_it_runs_again(batches: Batches) -> None:
    kept, redriven = BatchKey(case_id=8, batch_id=1), BatchKey(case_id=8, batch_id=LARGEST_ID)
    for key in (kept, redriven):
        await batches.run(key, "complete")
    await batches.until_shown(8, {1: "complete", LARGEST_ID: "complete"})
    await batches.run(redriven, "complete", waits=False)
    await batches.run(kept, "failed")
    await batches.until_shown(8, {1: "failed"})
    assert "Failed, not all removed" in await batches.page()


async def test_the_page_shows_operators_an_open_outage(
    batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = OutageView(
        "outage/database", "The database cannot be used", datetime.now(UTC), "refused", (), 12
    )

    async def one(runs: TemporalRuns) -> Sequence[OutageView]:
        return [seen]

    monkeypatch.setattr(inbox, "open_outages", one)
    page = await batches.page()
    assert "<strong>The database cannot be used</strong>" in page
    assert "refused; 12 runs waiting for it. Runs that need it wait" in page
