"""The story of one batch, with every activity scripted."""

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata

from tests.support.batches.runs import (
    BatchRuns,
    Handle,
    attribute_of,
    end,
    holds,
    reach,
    removed_by,
    shows,
    skip_to_the_end,
    status_of,
    timers_of,
)
from tests.support.batches.scripted import (
    MAKING,
    REMOVING,
    TODAY,
    ScriptedBatch,
    depth,
    ended,
    finished,
)
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import LoaderStatus, Phase, Timings, ValidationOutcome
from workflows.batches.runs import BatchAnswer, DocumentCounts, Validation
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOADED = ["LOADER_STARTED SUCCESS", "BATCH_END_START SUCCESS", "LOADER_FINISHED SUCCESS"]


@pytest.mark.cached
async def test_a_batch_goes_from_its_start_to_nothing_left(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        assert not removed_by(script)
        await handle.signal(BatchLifecycle.take, finished())
        await reach(handle, Phase.ENDING)
        assert script.closings == []
        await end(handle)
        result = await handle.result()
    assert (result.status, result.documents, result.left) == (
        LoaderStatus.COMPLETE,
        script.counts,
        (),
    )
    assert script.events == LOADED
    assert removed_by(script) == ["unsubscribe", *REMOVING]
    assert (result.outcome, script.announced[-1].documents) == ("SUCCESS", script.counts)
    at_the_end = [name for name in script.calls if name in (*REMOVING, "close", "truncate")]
    assert at_the_end == ["unsubscribe", "close", *REMOVING, "truncate"]
    assert [closing.status for closing in script.closings] == [LoaderStatus.COMPLETE]


async def test_nothing_takes_the_canary_before_it_is_seen(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
    made = [name for name in script.calls if name in MAKING]
    assert sorted(made) == sorted(MAKING)
    assert made.index("prove_delivery") < made.index("attach_mapping") == len(MAKING) - 1
    for before, after in (
        ("create_queue", "set_redrive_policy"),
        ("create_dead_letters", "set_redrive_policy"),
        ("set_queue_policy", "subscribe"),
        ("subscribe", "prove_delivery"),
        ("create_function", "reserve_concurrency"),
    ):
        assert made.index(before) < made.index(after)


@pytest.mark.cached(alone=True)
async def test_a_batch_makes_and_takes_back_no_permissions_of_its_own(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    script.results["plan"] = TODAY
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        result = await handle.result()
    assert (result.status, result.left) == (LoaderStatus.COMPLETE, ())
    assert not {"grant_permissions", "revoke_permissions"}.intersection(script.calls)
    assert {"attach_mapping", "delete_function"} <= set(script.calls)


async def test_the_queue_is_watched_by_the_times_of_the_plan(
    server: Any, batches: BatchRuns
) -> None:
    script = ScriptedBatch(depths=[depth(9), depth(4), depth(loads=1), depth(), depth(2), depth()])
    async with batches.running(script, Timings()) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())

        async def ending() -> bool:
            await server.skip(handle, timedelta(seconds=180))
            return (await status_of(handle)).phase is Phase.ENDING

        await eventually(ending, seconds=60, pause=0.2)
        await handle.signal(BatchLifecycle.take, ended())
        await skip_to_the_end(server, handle, timedelta(seconds=60))
        assert (await handle.result()).status is LoaderStatus.COMPLETE
        timers = await timers_of(handle)
    # Loading looks every 180 s. Then it settles for 60 s; 4 messages, then an open load: 180 s
    # each; empty for less than 60 s does not count; empty for 60 s does. The end may take 6 hours;
    # what came in since is looked for, for 60 s.
    assert timers[0] == 180
    assert timers[1:] == [60, 180, 180, 60, 180, 60, 6 * 3600, 60]


async def test_times_can_be_other_ones_for_a_run(server: Any, batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(), depth(1), depth(), depth(), depth()])
    times = Timings(settle=600, poll=300, hold=1200, end=4000)
    async with batches.running(script, times) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())

        async def ending() -> bool:
            await server.skip(handle, timedelta(seconds=300))
            return (await status_of(handle)).phase is Phase.ENDING

        await eventually(ending, seconds=60, pause=0.2)
        # The last one begins when the announcement has been made.
        await eventually(lambda: has_timers(handle, 5))
        assert await timers_of(handle) == [300, 600, 300, 1200, 4000]


async def has_timers(handle: Handle, timers: int) -> bool:
    return len(await timers_of(handle)) == timers


@pytest.mark.parametrize(
    "outcome",
    [
        ValidationOutcome.SKIP_CANCELLED,
        ValidationOutcome.SKIP_DUPLICATE,
        ValidationOutcome.SKIP_INCOMPLETE,
    ],
)
async def test_a_batch_that_may_not_be_built_is_left_alone(
    batches: BatchRuns, outcome: ValidationOutcome
) -> None:
    script = ScriptedBatch(validations=[Validation(outcome=outcome, reason="that is why")])
    async with batches.running(script) as handle:
        result = await handle.result()
    assert (result.status, result.validation) == (LoaderStatus.SKIPPED, outcome)
    assert result.reason == "that is why"
    assert script.calls == ["validate", "skip"]
    assert script.skips[0].reason == "that is why"


async def test_a_blocked_batch_asks_again_when_the_lock_may_be_old(
    server: Any, batches: BatchRuns
) -> None:
    blocked = Validation(
        outcome=ValidationOutcome.BLOCKED,
        reason="batch 2 may be starting",
        retry_at=datetime.now(UTC) + timedelta(minutes=15),
    )
    go = Validation(outcome=ValidationOutcome.CONTINUE)
    script = ScriptedBatch(validations=[blocked, go, go])
    async with batches.running(script, Timings()) as handle:
        status = await reach(handle, Phase.BLOCKED)
        assert status.reason == "batch 2 may be starting"
        await server.skip(handle, timedelta(minutes=14))
        assert script.made("validate") == 1
        await server.skip(handle, timedelta(minutes=2))
        await reach(handle, Phase.LOADING)
        assert script.made("validate") == 2


async def test_a_batch_that_is_blocked_for_hours_is_skipped(
    server: Any, batches: BatchRuns
) -> None:
    script = ScriptedBatch(
        validations=[Validation(outcome=ValidationOutcome.BLOCKED, reason="batch 2 is loading")]
    )
    async with batches.running(script, Timings(poll=3600)) as handle:
        await reach(handle, Phase.BLOCKED)
        await skip_to_the_end(server, handle, timedelta(hours=1))
        result = await handle.result()
        events = (await handle.fetch_history()).events
    took = events[-1].event_time.ToDatetime() - events[0].event_time.ToDatetime()
    # Time is skipped by the hour, and on a busy machine also while the run is about to end.
    assert timedelta(hours=6) <= took
    assert result.status is LoaderStatus.SKIPPED
    assert "stuck for 21600 s: batch 2 is loading" in script.skips[0].reason
    assert not removed_by(script)


async def test_an_unavailable_database_is_shown_and_tried_again(batches: BatchRuns) -> None:
    away = Validation(
        outcome=ValidationOutcome.REQUEUE_DB_ERROR,
        reason="the database is unavailable",
        retry_at=datetime.now(UTC) + timedelta(seconds=2),
    )
    script = ScriptedBatch(validations=[away, Validation(outcome=ValidationOutcome.CONTINUE)])
    async with batches.running(script) as handle:
        status = await reach(handle, Phase.BLOCKED)
        assert status.validation is ValidationOutcome.REQUEUE_DB_ERROR
        assert status.reason == "the database is unavailable"
        assert (await reach(handle, Phase.LOADING)).validation is ValidationOutcome.CONTINUE


async def test_an_end_that_comes_early_is_kept_for_its_moment(batches: BatchRuns) -> None:
    early = Validation(outcome=ValidationOutcome.CONTINUE, job_finished=True, end_finished=True)
    script = ScriptedBatch(validations=[early])
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, ended())
        result = await handle.result()
    said = "BATCH_END_FINISHED came before BATCH_END_START, and was kept until then"
    assert (result.status, result.reason) == (LoaderStatus.COMPLETE, said)
    assert script.events == LOADED


async def test_what_comes_in_after_the_end_was_asked_for_is_loaded_before_anything_goes(
    batches: BatchRuns,
) -> None:
    script = ScriptedBatch()
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await reach(handle, Phase.ENDING)
        script.depths = [depth(3), depth(loads=1), depth(dead=1), depth(1), depth()]
        await end(handle)
        assert (await handle.result()).redrives == 1
    assert script.depths == [depth()]
    late = script.calls[script.calls.index("unsubscribe") :]
    assert late.index("close") > late.index("redrive")
    assert removed_by(script) == ["unsubscribe", *REMOVING]


async def test_documents_that_are_missing_are_asked_about(batches: BatchRuns) -> None:
    script = ScriptedBatch(counts=DocumentCounts(loaded=2, failed=1))
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished(documents=5))
        said = (await reach(handle, Phase.PARKED)).reason
        assert said is not None
        assert "JOB_FINISHED said 5 documents, and 3 are known (2 loaded, 1 failed)" in said
        script.counts = DocumentCounts(loaded=4)
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await eventually(lambda: holds(script.made("count") == 2))
        await reach(handle, Phase.PARKED)
        script.counts = DocumentCounts(loaded=4, failed=1)
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await end(handle)
        result = await handle.result()
        shown = await status_of(handle)
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, "PARTIAL")
    assert (shown.documents, shown.outcome) == (script.counts, "PARTIAL")
    assert script.events[-1] == "LOADER_FINISHED PARTIAL"
    assert script.announced[-1].documents == script.counts


async def test_documents_beyond_those_that_were_counted_are_named(batches: BatchRuns) -> None:
    async with batches.running(ScriptedBatch(counts=DocumentCounts(loaded=2))) as handle:
        await handle.signal(BatchLifecycle.take, finished(documents=1))
        await end(handle)
        result = await handle.result()
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, "SUCCESS")
    assert result.reason == "JOB_FINISHED said 1 documents, and 2 are known"


async def test_of_two_counts_that_come_in_any_order_the_larger_one_counts(
    batches: BatchRuns,
) -> None:
    script = ScriptedBatch(counts=DocumentCounts(loaded=4))
    async with batches.running(script) as handle:
        for documents in (5, 4):
            await handle.signal(BatchLifecycle.take, finished(documents=documents))
        said = (await reach(handle, Phase.PARKED)).reason
        assert said is not None and "JOB_FINISHED said 5 documents" in said
        await handle.execute_update(BatchLifecycle.skip, BatchAnswer())
        await end(handle)


async def test_documents_that_were_counted_before_the_run_began_are_asked_about(
    batches: BatchRuns,
) -> None:
    early = Validation(outcome=ValidationOutcome.CONTINUE, job_finished=True, documents=3)
    script = ScriptedBatch(validations=[early])
    async with batches.running(script) as handle:
        said = (await reach(handle, Phase.PARKED)).reason
        assert said is not None and "JOB_FINISHED said 3 documents, and 2 are known" in said
        await handle.signal(BatchLifecycle.take, ended())
        await handle.execute_update(BatchLifecycle.skip, BatchAnswer(reason="one is lost"))
        result = await handle.result()
    assert result.status is LoaderStatus.COMPLETE
    assert result.reason is not None
    assert result.reason.endswith(
        "one is lost; BATCH_END_FINISHED came before BATCH_END_START, and was kept until then"
    )


async def test_a_missing_end_is_asked_for(server: Any, batches: BatchRuns) -> None:
    script = ScriptedBatch()
    async with batches.running(script, Timings(settle=0, poll=1, hold=0)) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await reach(handle, Phase.ENDING)
        await server.skip(handle, timedelta(hours=6, minutes=1))
        status = await reach(handle, Phase.PARKED)
        assert status.reason == "BATCH_END_FINISHED has not come within 21600 s"
        assert status.next_steps == "retry, skip or fail"
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer(by="ann"))
        await reach(handle, Phase.ENDING)
        await eventually(lambda: holds(script.events.count("BATCH_END_START SUCCESS") == 2))
        await server.skip(handle, timedelta(hours=6, minutes=1))
        await reach(handle, Phase.PARKED)
        await handle.signal("skip")
        assert (await handle.result()).status is LoaderStatus.COMPLETE


async def test_a_batch_that_loads_or_drains_too_long_asks_for_attention(
    server: Any, batches: BatchRuns
) -> None:
    script = ScriptedBatch(depths=[depth(5)])
    times = Timings(settle=0, poll=600, hold=0, slow_after=3600)
    async with batches.running(script, times, notices=True) as handle:
        await reach(handle, Phase.LOADING)
        assert await attribute_of(handle, attributes.NEEDS_ATTENTION) is False
        for phase, why in (
            (Phase.LOADING, "JOB_FINISHED has not come"),
            (Phase.DRAINING, "its queue or its loads do not become empty"),
        ):
            if phase is Phase.DRAINING:
                await handle.signal(BatchLifecycle.take, finished())
                await reach(handle, phase)
                assert await attribute_of(handle, attributes.NEEDS_ATTENTION) is False
                assert (await status_of(handle)).reason is None

            async def asked() -> bool:
                await server.skip(handle, timedelta(minutes=21))
                return bool(await attribute_of(handle, attributes.NEEDS_ATTENTION))

            await eventually(asked, seconds=60, pause=0.2)
            assert await attribute_of(handle, attributes.STATE) == phase
            assert (await status_of(handle)).reason == (
                f"it has been {phase} for more than 3600 s: {why}"
            )
        await eventually(lambda: holds(len(script.notices) == 2))
        first, second = script.notices
        assert (first.kind, first.state, second.state) == ("needs-you", "loading", "draining")
        assert "docflow batch finish 7/3" in [step.command for step in first.steps]
        assert first.waiting_since is not None
        script.depths = [depth()]

        async def ending() -> bool:
            await server.skip(handle, timedelta(minutes=10))
            return (await status_of(handle)).phase is Phase.ENDING

        await eventually(ending, seconds=60, pause=0.2)
        assert await attribute_of(handle, attributes.NEEDS_ATTENTION) is False
    reasons = [each.reason and each.reason.split(" for ")[0] for each in script.received["call"]]
    # A local activity may be done again.
    assert [reason for reason, _ in groupby(reasons)] == [
        "it has been loading",
        None,
        "it has been draining",
        None,
    ]


async def test_a_person_sees_resources_and_depths(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(41)])
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await eventually(lambda: holds(script.made("look") > 1))
        shown = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    for line in ("**loading**", "| queue | ready |", "| event source mapping | ready |", "| 41 |"):
        assert line in shown.current_details


async def test_a_person_sees_how_far_building_and_removing_are(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    script.hold("subscribe")
    script.hold("delete_function")
    async with batches.running(script) as handle:
        await shows(handle, "**provisioning**", "| queue | ready |", "| subscription | creating |")
        script.held["subscribe"].set()
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        await shows(handle, "**tearing down**", "| subscription | gone |", "| function | deleting")
        script.held["delete_function"].set()
        await handle.result()
