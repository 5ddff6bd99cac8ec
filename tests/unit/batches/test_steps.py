"""Plans, notes, looks at queues, announcements and ends."""

import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.drain import AT_ONCE, LONGEST_STOP, BatchCompletion, BatchDrain
from activities.batches.records import FailedMessage
from activities.batches.validation import BatchPlans, CaseBacklog
from adapters.ports.batches import BatchInfo
from adapters.ports.errors import Denied, NotYet, Unavailable
from tests.support.imports.activities import environment
from tests.support.scripted_port import ScriptedPort
from workflows.batches.events import Announcement, JobStarted, Publication
from workflows.batches.names import (
    BatchKey,
    BatchPlan,
    LoaderStatus,
    Purpose,
    QueueDepth,
    Resource,
    names_of,
)
from workflows.batches.runs import (
    Announce,
    Closing,
    DocumentCounts,
    NoteEvents,
    RedriveInput,
    Redriven,
    SkipBatch,
    StepInput,
    SweepInfo,
    WaitingBatch,
    WaitingBatches,
)
from workflows.shared.errors import NOT_YET, PERMANENT, TRANSIENT

KEY = BatchKey(case_id=7, batch_id=3)
PLAN = BatchPlan(
    prefix="p", topic_arn="arn:aws:sns:eu-central-1:000000000000:t", source_function="source"
)
NAMES = names_of("p", KEY)
NOW = datetime(2025, 3, 4, 12, tzinfo=UTC)


async def plan(facts: BatchInfo | None, key: BatchKey = KEY, prefix: str = "p") -> BatchPlan:
    defaults = PLAN.model_copy(update={"prefix": prefix})
    return await environment().run(BatchPlans(ScriptedPort(facts=facts), defaults).plan, key)


@pytest.mark.parametrize("facts", [None, BatchInfo(LoaderStatus.WAITING)])
async def test_a_case_without_settings_has_the_installations_plan(facts: BatchInfo | None) -> None:
    assert await plan(facts) == PLAN


@pytest.mark.parametrize(
    ("wanted", "granted"), [(0, 2), (1, 2), (2, 2), (37, 37), (1000, 1000), (5000, 1000)]
)
async def test_the_cases_concurrency_is_within_what_a_mapping_takes(
    wanted: int, granted: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        planned = await plan(BatchInfo(LoaderStatus.WAITING, concurrency=wanted))
    assert planned == PLAN.model_copy(update={"concurrency": granted})
    said = f"max_processing_daemons of case 7 is {wanted}: batch 3 of case 7 runs with {granted}"
    assert any(said in message for message in caplog.messages) == (wanted != granted)


async def test_a_name_that_is_too_long_is_refused_before_anything_is_built() -> None:
    with pytest.raises(ApplicationError, match="choose a prefix that is 9 shorter") as caught:
        await plan(None, prefix="p" * 58)
    assert (caught.value.type, caught.value.non_retryable) == (PERMANENT, True)


def waiting(batch_id: int, status: LoaderStatus = LoaderStatus.WAITING) -> WaitingBatch:
    return WaitingBatch(batch_id=batch_id, status=status, purpose=Purpose.LOAD, since=NOW)


class Runs(ScriptedPort):
    """Runs of some ids are open."""

    def __init__(self, *ids: str) -> None:
        super().__init__()
        self.ids = ids

    async def is_open(self, workflow_id: str) -> bool:
        self.asked.append((workflow_id,))
        return workflow_id in self.ids


async def test_recording_writes_events_and_returns_which_batches_have_a_run() -> None:
    processing = LoaderStatus.PROCESSING
    line = WaitingBatches(batches=(waiting(1, processing), waiting(2, processing), waiting(4)))
    store, runs = ScriptedPort(note=line), Runs("batch/7/2", "batch/7/4", "batch/7/9")
    events = (JobStarted(case_id=7, batch_id=4),)
    notes = NoteEvents(case_id=7, events=events, running=9)
    noted = await environment().run(CaseBacklog(store, runs).record_events, notes)
    assert store.made("note") == [[7, events]]
    assert [(each.batch_id, each.open_run) for each in noted.batches] == [
        (1, False),
        (2, True),
        # No step asks for a run of a batch that is not in `processing`.
        (4, False),
    ]
    assert noted.running_open
    assert runs.asked == [("batch/7/1",), ("batch/7/2",), ("batch/7/9",)]


@pytest.mark.parametrize(("running", "is_open"), [(None, False), (2, False), (1, True)])
async def test_the_run_that_is_asked_after_is_asked_once(
    running: int | None, is_open: bool
) -> None:
    line = WaitingBatches(batches=(waiting(1, LoaderStatus.PROCESSING),))
    runs = Runs("batch/7/1")
    notes = NoteEvents(case_id=7, running=running)
    noted = await environment().run(CaseBacklog(ScriptedPort(note=line), runs).record_events, notes)
    assert (noted.running_open, noted.batches[0].open_run) == (is_open, True)
    assert len(runs.asked) == len({1, running} - {None})


async def test_noting_without_temporal_fails_although_the_events_are_written() -> None:
    line = WaitingBatches(batches=(waiting(1, LoaderStatus.PROCESSING),))
    notes = CaseBacklog(ScriptedPort(note=line), ScriptedPort(is_open=Unavailable("away")))
    with pytest.raises(ApplicationError) as caught:
        await environment().run(notes.record_events, NoteEvents(case_id=7))
    assert (caught.value.type, caught.value.non_retryable) == (TRANSIENT, False)


async def test_a_skip_reaches_the_tables() -> None:
    store = ScriptedPort()
    skipped = SkipBatch(key=KEY, reason="stuck")
    await environment().run(CaseBacklog(store, ScriptedPort()).skip, skipped)
    assert store.asked == [("skip", KEY, "stuck")]


class Journey:
    """A message whose state changes between two looks, at the worst moment."""

    def __init__(self, *, moves_after: int) -> None:
        self.looks, self._moves_after = list[str](), moves_after

    async def depth(self, queue: str) -> QueueDepth:
        return QueueDepth(visible=int(self._is_at(queue)))

    async def open_loads(self, key: BatchKey) -> int:
        return int(self._is_at("load"))

    def _is_at(self, place: str) -> bool:
        moved = len(self.looks) >= self._moves_after
        self.looks.append(place)
        where = (NAMES.queue, "load") if self._moves_after == 1 else ("load", NAMES.dead_letters)
        return place == where[moved]


@pytest.mark.parametrize("moves_after", [1, 2])
async def test_a_message_that_moves_during_the_search_is_found(moves_after: int) -> None:
    journey = Journey(moves_after=moves_after)
    work = StepInput(key=KEY, plan=PLAN)
    functions = ScriptedPort(exists=True)
    draining = BatchDrain(journey, journey, ScriptedPort(), functions, ScriptedPort())
    seen = await environment().run(draining.look, work)
    assert seen.queue.total + seen.loads + seen.dead_letters.total > 0


async def test_what_someone_else_has_deleted_is_named() -> None:
    unused, runs = ScriptedPort(), ScriptedPort(open_loads=4)
    functions, topic = ScriptedPort(exists=False), ScriptedPort(is_subscribed=False)
    draining = BatchDrain(ScriptedPort(), runs, unused, functions, topic)
    before = datetime.now(UTC)
    work = StepInput(key=KEY, plan=PLAN, subscription="arn")
    seen = await environment().run(draining.look, work)
    assert (seen.queue, seen.dead_letters, seen.loads) == (QueueDepth(), QueueDepth(), 4)
    assert before <= seen.at <= datetime.now(UTC)
    queues = (Resource.QUEUE, Resource.DEAD_LETTERS)
    assert seen.missing == (*queues, Resource.SUBSCRIPTION, Resource.FUNCTION)
    assert topic.asked == [("is_subscribed", "arn")]


async def test_a_subscription_is_not_looked_for_where_the_intake_is_closed() -> None:
    queues, topic = ScriptedPort(depth=QueueDepth()), ScriptedPort(is_subscribed=False)
    draining = BatchDrain(
        *(queues, ScriptedPort(open_loads=0), ScriptedPort(), ScriptedPort(exists=True), topic)
    )
    seen = await environment().run(draining.look, StepInput(key=KEY, plan=PLAN))
    assert (seen.missing, topic.asked) == ((), [])


@pytest.mark.parametrize(
    ("waiting", "is_fed", "missing"),
    [(3, False, (Resource.MAPPING,)), (3, True, ()), (0, False, ())],
)
async def test_a_mapping_is_missed_where_messages_wait_for_it(
    waiting: int, is_fed: bool, missing: tuple[Resource, ...]
) -> None:
    queues = ScriptedPort(depth=QueueDepth(visible=waiting))
    functions = ScriptedPort(exists=True, is_fed=is_fed)
    draining = BatchDrain(
        *(queues, ScriptedPort(open_loads=0), ScriptedPort(), functions, ScriptedPort())
    )
    seen = await environment().run(draining.look, StepInput(key=KEY, plan=PLAN))
    assert seen.missing == missing


async def test_a_batch_without_a_function_misses_none() -> None:
    queues, functions = ScriptedPort(depth=QueueDepth()), ScriptedPort(exists=False)
    draining = BatchDrain(
        *(queues, ScriptedPort(open_loads=0), ScriptedPort(), functions, ScriptedPort())
    )
    plan = PLAN.model_copy(update={"with_function": False})
    seen = await environment().run(draining.look, StepInput(key=KEY, plan=plan))
    assert seen.missing == ()


async def redrive(queues: ScriptedPort, store: ScriptedPort, **more: Any) -> Redriven:
    order = RedriveInput(key=KEY, plan=PLAN, number=2, final=True, **more)
    return await environment().run(
        BatchDrain(queues, ScriptedPort(), store, ScriptedPort(), ScriptedPort()).redrive, order
    )


async def test_a_pass_is_noted_before_the_first_dead_letter_moves() -> None:
    queues, store = (
        ScriptedPort(redrive=Redriven(moved=5)),
        ScriptedPort(start_pass=Unavailable("away")),
    )
    with pytest.raises(ApplicationError):
        await redrive(queues, store)
    assert queues.asked == []
    store.answer("start_pass", None)
    assert await redrive(queues, store) == Redriven(moved=5)
    assert store.asked == [("start_pass", KEY, 2, True)] * 2
    assert queues.asked == [("redrive", NAMES)]


async def test_messages_that_are_recorded_as_failed_are_tried_again_where_it_is_asked_for() -> None:
    rows = [
        FailedMessage(
            document_id=f"D-{number}",
            message_key="k",
            event_type="BATCH_ATTACHMENTS",
            reason="gone",
            body=f"body {number}",
            at=NOW,
        )
        for number in range(AT_ONCE + 1)
    ]

    async def failed_messages(
        key: BatchKey, after: tuple[str, str], limit: int
    ) -> list[FailedMessage]:
        return [row for row in rows if row.place > after][:limit]

    rows.sort(key=lambda row: row.place)
    queues, store = ScriptedPort(redrive=Redriven(moved=11)), ScriptedPort()
    store.failed_messages = failed_messages
    await redrive(queues, store)
    assert queues.asked == [("redrive", NAMES)]
    await redrive(queues, store, with_failed=True)
    letters = queues.made("dead_letter")
    assert sorted(str(body) for _, body, _, _ in letters) == sorted(row.body for row in rows)
    assert {(names, reason) for names, _, reason, _ in letters} == {(NAMES, "gone")}
    assert queues.asked[-1] == ("redrive", NAMES)


async def test_a_move_that_is_under_way_is_waited_for() -> None:
    with pytest.raises(ApplicationError) as caught:
        await redrive(ScriptedPort(redrive=NotYet("a move is under way", 10)), ScriptedPort())
    assert caught.value.type == NOT_YET


async def test_documents_are_closed_when_their_loads_have_stopped() -> None:
    runs, counts = ScriptedPort(cancel_loads=3), DocumentCounts(cancelled=2)
    unused = (ScriptedPort(), ScriptedPort())
    store = ScriptedPort(stop_documents=counts)
    with pytest.raises(ApplicationError) as caught:
        await environment(scheduled_time=datetime.now(UTC)).run(
            BatchDrain(ScriptedPort(), runs, store, *unused).cancel_loads, KEY
        )
    assert caught.value.type == NOT_YET and store.asked == []
    runs = ScriptedPort(cancel_loads=0)
    done = await environment().run(
        BatchDrain(ScriptedPort(), runs, store, *unused).cancel_loads, KEY
    )
    assert (runs.asked, done) == ([("cancel_loads", KEY)], counts)


async def test_documents_are_closed_although_a_load_does_not_stop() -> None:
    long_ago = datetime.now(UTC) - LONGEST_STOP
    store = ScriptedPort(stop_documents=DocumentCounts(cancelled=1))
    runs, unused = ScriptedPort(cancel_loads=1), (ScriptedPort(), ScriptedPort())
    draining = BatchDrain(ScriptedPort(), runs, store, *unused)
    await environment(scheduled_time=long_ago).run(draining.cancel_loads, KEY)
    assert store.asked == [("stop_documents", KEY)]


async def announce(topic: ScriptedPort, event: str, **info: Any) -> ScriptedPort:
    order = Announce(key=KEY, plan=PLAN, event_type=event, status="CANCELLED")
    env = environment(workflow_id="batch/7/3", **info)
    store = ScriptedPort(passed_on={"status": "READY", "source": "rails"})
    await env.run(BatchCompletion(store, topic).announce, order)
    return store


@pytest.mark.parametrize("event", Announcement)
async def test_an_announcement_is_the_same_at_every_attempt_of_a_run(event: Announcement) -> None:
    topic = ScriptedPort()
    for run, attempt in (("first", 1), ("first", 2), ("second", 1)):
        await announce(topic, event, workflow_run_id=run, attempt=attempt)
    assert topic.made("publish") == [
        [
            PLAN,
            Publication(
                event_type=event,
                case_id=7,
                batch_id=3,
                status="CANCELLED",
                message_id=f"batch/7/3/{run}/{event}",
                passed_on={"status": "READY", "source": "rails"},
            ),
        ]
        for run in ("first", "first", "second")
    ]


@pytest.mark.parametrize("event", Announcement)
async def test_the_end_is_owed_until_it_is_published(event: Announcement) -> None:
    store = await announce(ScriptedPort(), event, workflow_run_id="first")
    assert bool(store.made("announced")) is (event is Announcement.LOADER_FINISHED)
    store, topic = ScriptedPort(passed_on={}), ScriptedPort(publish=Denied("not allowed"))
    order = Announce(key=KEY, plan=PLAN, event_type=event)
    with pytest.raises(ApplicationError):
        await environment().run(BatchCompletion(store, topic).announce, order)
    assert store.made("announced") == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (None, SweepInfo()),
        (BatchInfo(LoaderStatus.PROCESSING, unannounced=True), SweepInfo(processing=True)),
        (BatchInfo(LoaderStatus.WAITING, unannounced=True), SweepInfo()),
        (BatchInfo(LoaderStatus.COMPLETE), SweepInfo()),
        (
            BatchInfo(LoaderStatus.COMPLETE, unannounced=True, dead_letters=2),
            SweepInfo(unannounced=LoaderStatus.COMPLETE, not_loaded=2),
        ),
        (
            BatchInfo(LoaderStatus.COMPLETE, unannounced=True, lost="queue deleted"),
            SweepInfo(unannounced=LoaderStatus.COMPLETE, not_loaded=1),
        ),
    ],
)
async def test_a_sweep_learns_what_was_not_announced(
    facts: BatchInfo | None, expected: SweepInfo
) -> None:
    completion = BatchCompletion(ScriptedPort(facts=facts), ScriptedPort())
    assert await environment().run(completion.sweep_facts, KEY) == expected


async def test_what_is_no_announcement_is_not_published() -> None:
    topic = ScriptedPort()
    with pytest.raises(ApplicationError, match="known are LOADER_STARTED, BATCH_END") as caught:
        await announce(topic, "JOB_STARTED")
    assert (caught.value.type, topic.asked) == (PERMANENT, [])


async def test_the_end_is_recorded_and_counted() -> None:
    store = ScriptedPort(counts=DocumentCounts(loaded=38, failed=2))
    closing = Closing(key=KEY, status=LoaderStatus.COMPLETE, dead_letters=1)
    counts = await environment().run(BatchCompletion(store, ScriptedPort()).close, closing)
    assert counts == DocumentCounts(loaded=38, failed=2)
    assert store.made("close") == [[closing]]


async def test_temporary_rows_are_removed() -> None:
    store = ScriptedPort(truncate=12)
    await environment().run(BatchCompletion(store, ScriptedPort()).truncate, KEY)
    assert store.asked == [("truncate", KEY)]
