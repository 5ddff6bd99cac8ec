"""Batches of a case that want to be built, over real tables and a cloud in memory."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from activities.batches.drain import BatchCompletion
from activities.batches.store import SqlBatchStore
from activities.batches.validation import BatchPlans, BatchValidation, CaseBacklog, function_lock
from adapters.database.engine import open_database
from tests.support.batches.scripted import PLAN, again, cancelled, finished, started
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import environment
from tests.support.memory.cloud import MemoryCloud
from workflows.batches.events import CaseEvent
from workflows.batches.names import BatchKey, LoaderStatus, Purpose, ValidationOutcome, names_of
from workflows.batches.runs import (
    Closing,
    NoteEvents,
    SkipBatch,
    Validate,
    Validation,
    WaitingBatches,
)

CASE = 7
FIRST, SECOND = (BatchKey(case_id=CASE, batch_id=id) for id in (1, 2))
CONTINUE = Validation(outcome=ValidationOutcome.CONTINUE)


@dataclass
class Case:
    """One case, and the runs of its batches that are open."""

    store: SqlBatchStore
    cloud: MemoryCloud = field(default_factory=MemoryCloud)
    open: set[str] = field(default_factory=set[str])

    async def is_open(self, workflow_id: str) -> bool:
        return workflow_id in self.open

    async def note(self, *events: CaseEvent, running: int | None = None) -> WaitingBatches:
        notes = NoteEvents(case_id=CASE, events=events, running=running)
        return await environment().run(CaseBacklog(self.store, self).record_events, notes)

    async def validate(
        self, key: BatchKey, purpose: Purpose = Purpose.LOAD, grace: int = 900
    ) -> Validation:
        lock = function_lock(self.cloud.functions, PLAN.prefix)
        activities = BatchValidation(self.store, self, lock)
        asked = Validate(key=key, purpose=purpose, grace=grace)
        return await environment().run(activities.validate, asked)

    async def build(self, key: BatchKey) -> None:
        names = names_of(PLAN.prefix, key)
        await self.cloud.functions.clone(names, PLAN, key, key.workflow_id)

    async def close(self, key: BatchKey, status: LoaderStatus, dead_letters: int = 0) -> None:
        closing = Closing(key=key, status=status, dead_letters=dead_letters)
        await environment().run(BatchCompletion(self.store, self.cloud.topic).close, closing)

    async def status(self, key: BatchKey) -> LoaderStatus | None:
        facts = await self.store.facts(key)
        return facts and facts.status


@pytest.fixture
async def case(tmp_path: Path) -> AsyncGenerator[Case]:
    url = fresh_url()
    async with open_database(url) as database:
        yield Case(SqlBatchStore(database))


async def test_a_batch_waits_for_the_one_that_loads_and_continues_when_it_ends(case: Case) -> None:
    await case.note(started(FIRST), started(SECOND), finished(SECOND))
    assert await case.validate(FIRST) == CONTINUE
    assert (await case.validate(SECOND)).outcome is ValidationOutcome.BLOCKED
    await case.build(FIRST)
    assert (await case.validate(SECOND, grace=0)).outcome is ValidationOutcome.BLOCKED
    assert (await case.validate(FIRST)).outcome is ValidationOutcome.SKIP_DUPLICATE
    await case.close(FIRST, LoaderStatus.COMPLETE)
    assert await case.validate(SECOND) == CONTINUE.model_copy(update={"job_finished": True})


async def test_an_orphan_is_released_after_its_grace(case: Case) -> None:
    await case.note(started(FIRST), started(SECOND))
    await case.validate(FIRST)
    case.open = {FIRST.workflow_id}
    assert (await case.validate(SECOND, grace=0)).outcome is ValidationOutcome.BLOCKED
    case.open.clear()
    assert (await case.validate(SECOND, grace=900)).outcome is ValidationOutcome.BLOCKED
    assert await case.status(FIRST) is LoaderStatus.PROCESSING
    assert await case.validate(SECOND, grace=0) == CONTINUE.model_copy(update={"orphans": (1,)})
    assert await case.status(FIRST) is LoaderStatus.INCOMPLETE
    # A second attempt finds its own claim.
    assert await case.validate(SECOND, grace=0) == CONTINUE


async def test_of_two_concurrent_claims_one_succeeds(case: Case) -> None:
    await case.note(started(FIRST), started(SECOND))
    both = await asyncio.gather(case.validate(FIRST), case.validate(SECOND))
    assert sorted(answer.outcome for answer in both) == [
        ValidationOutcome.BLOCKED,
        ValidationOutcome.CONTINUE,
    ]


async def test_leftovers_of_an_earlier_run_are_not_adopted(case: Case) -> None:
    await case.note(started(FIRST))
    await case.build(FIRST)
    assert (await case.validate(FIRST)).outcome is ValidationOutcome.SKIP_INCOMPLETE
    assert await case.status(FIRST) is LoaderStatus.WAITING


async def test_a_batch_that_was_cancelled_while_it_waited_is_skipped(case: Case) -> None:
    await case.note(started(FIRST), cancelled(key=FIRST))
    assert (await case.validate(FIRST)).outcome is ValidationOutcome.SKIP_CANCELLED


async def test_dead_letters_of_a_complete_batch_are_tried_again(case: Case) -> None:
    await case.note(started(FIRST))
    await case.validate(FIRST)
    await case.close(FIRST, LoaderStatus.COMPLETE, dead_letters=2)
    assert (await case.validate(FIRST)).outcome is ValidationOutcome.SKIP_DUPLICATE
    (waiting,) = (await case.note(again(FIRST))).batches
    assert waiting.purpose is Purpose.REDRIVE
    assert await case.validate(FIRST, Purpose.REDRIVE) == CONTINUE


async def test_the_backlog_shows_which_batch_runs_and_which_blocks_no_other(case: Case) -> None:
    await case.note(started(FIRST), started(SECOND))
    await case.validate(FIRST)
    case.open = {FIRST.workflow_id}
    line = await case.note(running=1)
    assert [(each.batch_id, each.open_run) for each in line.batches] == [(1, True), (2, False)]
    assert line.running_open
    skipped = SkipBatch(key=SECOND, reason="not started in time")
    await environment().run(CaseBacklog(case.store, case).skip, skipped)
    assert [each.skipped for each in (await case.note()).batches] == [False, True]


async def test_the_plan_has_the_concurrency_of_its_case(case: Case) -> None:
    planning = BatchPlans(case.store, PLAN)
    assert await environment().run(planning.plan, FIRST) == PLAN
    await case.note(started(FIRST))
    await case.store.set_concurrency(CASE, 25)
    planned = await environment().run(planning.plan, FIRST)
    assert planned == PLAN.model_copy(update={"concurrency": 25})
