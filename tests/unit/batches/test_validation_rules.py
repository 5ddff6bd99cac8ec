"""Whether a batch may be built, and what is an orphan."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.batches.names import BatchKey, LoaderStatus, Purpose, Resource, ValidationOutcome
from workflows.batches.validation import (
    ASK_AGAIN,
    TAGGED,
    FoundResource,
    Neighbour,
    check_infrastructure,
    check_sibling_batches,
    check_status,
    is_strange,
    is_young,
    remaining_dlq,
)

KEY = BatchKey(case_id=7, batch_id=3)
NOW = datetime(2025, 3, 4, 12, tzinfo=UTC)
GRACE = timedelta(minutes=15)
ALONE = dict.fromkeys(("exists", "is_running"), False)


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("status", LoaderStatus)
def test_only_final_batches_are_skipped_by_status(status: LoaderStatus, purpose: Purpose) -> None:
    skipped = check_status(KEY, status, purpose)
    expected = {
        LoaderStatus.CANCELLED: ValidationOutcome.SKIP_CANCELLED,
        LoaderStatus.COMPLETE: ValidationOutcome.SKIP_DUPLICATE,
    }
    if status is LoaderStatus.COMPLETE and purpose in (Purpose.REDRIVE, Purpose.RETRY_FAILED):
        assert skipped is None
    else:
        assert (skipped and skipped.outcome) == expected.get(status)


@pytest.mark.parametrize("status", LoaderStatus)
def test_existing_infrastructure_belongs_to_another_run(status: LoaderStatus) -> None:
    skipped = check_infrastructure(KEY, status, exists=True)
    assert skipped is not None
    assert (skipped.outcome is ValidationOutcome.SKIP_DUPLICATE) == (
        status is LoaderStatus.PROCESSING
    )
    assert (skipped.outcome is ValidationOutcome.SKIP_INCOMPLETE) == (
        status is not LoaderStatus.PROCESSING
    )
    assert check_infrastructure(KEY, status, exists=False) is None


def test_a_lock_is_respected_for_the_grace_and_no_longer() -> None:
    moment = timedelta(microseconds=1)
    young = Neighbour(2, NOW - GRACE + moment, **ALONE)
    blocked = check_sibling_batches([young], NOW, GRACE)
    assert blocked is not None
    assert blocked.outcome is ValidationOutcome.BLOCKED
    assert blocked.retry_at == NOW + moment
    assert check_sibling_batches([young], blocked.retry_at, GRACE) is None


@pytest.mark.parametrize(
    ("alive", "why"),
    [
        ({"exists": True, "is_running": True}, "its infrastructure exists"),
        ({"exists": True, "is_running": False}, "its infrastructure exists"),
        ({"exists": False, "is_running": True}, "its run is open"),
    ],
)
def test_a_batch_that_lives_blocks_however_old_its_lock_is(
    alive: dict[str, bool], why: str
) -> None:
    blocked = check_sibling_batches([Neighbour(2, NOW - timedelta(days=9), **alive)], NOW, GRACE)
    assert blocked is not None
    assert blocked.retry_at == NOW + ASK_AGAIN
    assert blocked.reason == f"batch 2 of the case is loading: {why}"


neighbours = st.builds(
    Neighbour,
    batch_id=st.integers(1, 1000),
    since=st.timedeltas(timedelta(hours=-1), timedelta(hours=1)).map(lambda age: NOW - age),
    exists=st.booleans(),
    is_running=st.booleans(),
)


@given(st.lists(neighbours, max_size=6), st.timedeltas(timedelta(0), timedelta(hours=1)))
def test_a_batch_is_admitted_when_every_neighbour_alone_would_admit_it(
    others: list[Neighbour], grace: timedelta
) -> None:
    blocked = check_sibling_batches(others, NOW, grace)
    alone = [answer for other in others if (answer := check_sibling_batches([other], NOW, grace))]
    assert (blocked is None) == (not alone)
    if blocked is not None:
        moments = [answer.retry_at for answer in alone if answer.retry_at is not None]
        assert blocked.retry_at == max(moments)
        assert blocked.retry_at > NOW


@given(neighbours, st.timedeltas(timedelta(0), timedelta(hours=1)))
def test_an_orphan_has_nothing_that_lives_and_an_old_lock(
    other: Neighbour, grace: timedelta
) -> None:
    is_orphan = check_sibling_batches([other], NOW, grace) is None
    assert is_orphan == (not other.exists and not other.is_running and NOW - other.since >= grace)


def found(resource: Resource, owner: str | None = None, age: timedelta | None = None):
    return FoundResource(
        KEY, resource, "name", made_at=None if age is None else NOW - age, owner=owner
    )


@pytest.mark.parametrize("resource", Resource)
def test_a_name_is_enough_only_where_there_are_no_tags(resource: Resource) -> None:
    assert is_strange(found(resource)) == (resource in TAGGED)
    assert not is_strange(found(resource, owner=KEY.workflow_id))
    assert is_strange(found(resource, owner="batch/7/30"))


def test_the_youngest_resource_gives_the_age_of_a_batch() -> None:
    unknown, old = found(Resource.SUBSCRIPTION), found(Resource.QUEUE, age=2 * GRACE)
    assert not is_young([unknown, old, found(Resource.FUNCTION, age=GRACE * 1.01)], NOW, GRACE)
    assert is_young([unknown, old, found(Resource.FUNCTION, age=GRACE)], NOW, GRACE)


def test_dead_letters_are_alone_when_nothing_else_of_the_batch_is_left() -> None:
    queue, dead = found(Resource.QUEUE), found(Resource.DEAD_LETTERS)
    assert remaining_dlq([dead]) is dead
    assert remaining_dlq([queue, dead]) is None
    assert remaining_dlq([queue]) is None
