"""What the tables of transfers promise, on both databases."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.records import Transfer
from activities.transfers.store import SqlRouteStore, SqlSequenceLocks, SqlTransferStore
from adapters.database.engine import Database
from adapters.database.models.transfers import jobconfig_changes
from tests.support.transfers.events import a_job_order
from workers.transfers.resources import TransferRows
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import TransferStatus
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import KeptTransfer, Manifest, file_job_id, transfer_workflow_id

ID = "5eed" * 16
OTHER = "f00d" * 16
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def a_row(status: TransferStatus, minutes: int = 0, **fields: Any) -> Transfer:
    known: dict[str, Any] = {
        "transfer_id": ID,
        "status": status,
        "at": NOON + timedelta(minutes=minutes),
        "source": "TMS.Route",
        "event_id": "e-1",
        "account_id": "TMS001",
        "digest": "first",
        "run": transfer_workflow_id(ID),
    }
    return Transfer(**{**known, **fields})


async def test_the_newest_state_is_found_and_every_state_kept(database: Database) -> None:
    store = SqlTransferStore(database)
    job = file_job_id(ID)
    await store.record(a_row(TransferStatus.ASSIGNED, queue="jobs", run=job))
    await store.record(a_row(TransferStatus.READ_MESSAGE, 1, job="orders", file="a.csv", run=None))
    receipt = BlobRef(name="receipt.json", size=3)
    await store.record(a_row(TransferStatus.SUCCEEDED, 2, receipt=receipt))
    found = await store.get(ID)
    assert found is not None
    assert (found.status, found.queue, found.job) == (TransferStatus.SUCCEEDED, "jobs", "orders")
    assert (found.file, found.receipt, found.digest) == ("a.csv", receipt, "first")
    assert [each.status.value for each in await store.trail(ID)] == [
        *("Assigned", "ReadMessage", "Succeeded"),
    ]


async def test_a_state_that_is_written_twice_is_one(database: Database) -> None:
    store = SqlTransferStore(database)
    for minutes in (0, 0, 1):
        await store.record(a_row(TransferStatus.NO_ASSIGNED, minutes, reason="no rule"))
    assert len(await store.trail(ID)) == 1


async def test_an_older_state_never_replaces_a_newer_one(database: Database) -> None:
    store = SqlTransferStore(database)
    await store.record(a_row(TransferStatus.SUCCEEDED, 5))
    await store.record(a_row(TransferStatus.READ_MESSAGE, 1))
    found = await store.get(ID)
    assert found is not None and found.status is TransferStatus.SUCCEEDED
    assert len(await store.trail(ID)) == 2


async def test_an_end_counts_whatever_the_clock_of_an_earlier_state_showed(
    database: Database,
) -> None:
    store = SqlTransferStore(database)
    await store.record(a_row(TransferStatus.ASSIGNED, 5, run=file_job_id(ID)))
    await store.record(a_row(TransferStatus.READ_MESSAGE, 3, run=None))
    await store.record(a_row(TransferStatus.SUCCEEDED, 4, run=None))
    await store.record(a_row(TransferStatus.READ_MESSAGE, 3, reason="parked: late", run=None))
    found = await store.get(ID)
    assert found is not None and found.status is TransferStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("end", "later", "counts"),
    [
        (TransferStatus.SUCCEEDED, a_row(TransferStatus.ASSIGNED, 9), False),
        (TransferStatus.SUCCEEDED, a_row(TransferStatus.READ_MESSAGE, 9), False),
        (TransferStatus.FAILED, a_row(TransferStatus.READ_MESSAGE, 9, reason="parked: x"), False),
        (TransferStatus.FAILED, a_row(TransferStatus.READ_MESSAGE, 9), True),
        (TransferStatus.FAILED, a_row(TransferStatus.ASSIGNED, 9, reason="rule 1"), True),
        (TransferStatus.FAILED, a_row(TransferStatus.SUCCEEDED, 9), True),
    ],
)
async def test_only_an_end_or_a_new_beginning_replaces_an_end(
    database: Database, end: TransferStatus, later: Transfer, counts: bool
) -> None:
    store = SqlTransferStore(database)
    await store.record(a_row(end, 5))
    await store.record(later)
    found = await store.get(ID)
    assert found is not None and (found.status is later.status) is counts
    assert len(await store.trail(ID)) == 2


async def test_the_row_of_an_event_is_not_that_of_another_one(database: Database) -> None:
    store = SqlTransferStore(database)
    assert await store.record(a_row(TransferStatus.NO_ASSIGNED, reason="no rule"))
    other = a_row(TransferStatus.ASSIGNED, 1, digest="second", account_id="X", queue="jobs")
    assert not await store.record(other)
    found = await store.get(ID)
    assert found is not None
    assert (found.status, found.digest) == (TransferStatus.NO_ASSIGNED, "first")
    assert (found.account_id, found.queue) == ("TMS001", None)
    assert len(await store.trail(ID)) == 1


async def test_of_events_that_come_at_once_one_has_the_row(database: Database) -> None:
    store = SqlTransferStore(database)
    digests = [f"digest {n}" for n in range(8)]
    written = await asyncio.gather(
        *(
            store.record(a_row(TransferStatus.ASSIGNED, n, digest=digest, queue=f"q{n}"))
            for n, digest in enumerate(digests)
        )
    )
    [first] = [n for n, is_written in enumerate(written) if is_written]
    found = await store.get(ID)
    assert found is not None and (found.digest, found.queue) == (digests[first], f"q{first}")
    assert [each.queue for each in await store.trail(ID)] == [f"q{first}"]


@pytest.mark.parametrize("minutes", [1, -1])
async def test_the_row_is_that_of_the_event_that_has_the_job(
    database: Database, minutes: int
) -> None:
    store, job = SqlTransferStore(database), file_job_id(ID)
    await store.record(a_row(TransferStatus.ASSIGNED, queue="jobs", file="a.csv", run=job))
    begun = {"digest": "second", "account_id": "X", "run": job}
    assert await store.record(a_row(TransferStatus.READ_MESSAGE, minutes, **begun))
    found = await store.get(ID)
    assert found is not None
    assert (found.status, found.digest) == (TransferStatus.READ_MESSAGE, "second")
    assert (found.account_id, found.queue, found.file) == ("X", None, None)
    # What the first one was about to write comes too late.
    assert not await store.record(a_row(TransferStatus.ASSIGNED, 2, queue="late", run=job))
    assert await store.record(a_row(TransferStatus.SUCCEEDED, 3, **begun))
    assert [each.status.value for each in await store.trail(ID)].count("Assigned") == 1


async def test_a_note_changes_no_state(database: Database) -> None:
    store = SqlTransferStore(database)
    await store.record(a_row(TransferStatus.READ_MESSAGE, 1))
    for _ in range(2):
        await store.note(a_row(TransferStatus.FAILED, 2, reason="another event was refused"))
    found = await store.get(ID)
    assert found is not None and found.status is TransferStatus.READ_MESSAGE
    assert [each.reason for each in await store.trail(ID)] == [None, "another event was refused"]


async def test_texts_that_no_database_holds_are_cleaned(database: Database) -> None:
    store = SqlTransferStore(database)
    await store.record(a_row(TransferStatus.INVALID, reason="a\0b\ud800c", file="\0"))
    [found] = await store.newest(limit=10)
    assert found.reason == "a\ufffdb\ufffdc"


async def test_a_kept_copy_is_remembered_with_its_event(database: Database) -> None:
    store = SqlTransferStore(database)
    kept = KeptTransfer(files=Manifest(files=1), until=NOON.date(), event=a_job_order().event)
    await store.record(a_row(TransferStatus.SUCCEEDED, kept=kept))
    found = await store.get(ID)
    assert found is not None and found.kept == kept


async def test_transfers_are_found_by_state_queue_account_and_beginning(
    database: Database,
) -> None:
    store = SqlTransferStore(database)
    await store.record(a_row(TransferStatus.ASSIGNED, queue="jobs"))
    await store.record(
        a_row(TransferStatus.NO_ASSIGNED, 1, transfer_id=OTHER, account_id="X", reason="none")
    )

    async def ids(**filters: Any) -> list[str]:
        return [each.transfer_id for each in await store.newest(limit=10, **filters)]

    assert await ids() == [OTHER, ID]
    assert await ids(status=TransferStatus.NO_ASSIGNED) == [OTHER]
    assert await ids(queue="jobs") == [ID]
    assert await ids(account_id="X") == [OTHER]
    assert await ids(before=NOON + timedelta(seconds=1)) == [ID]
    assert [each.transfer_id for each in await store.find("F00DF00D")] == [OTHER]
    assert await store.find("f00d") == ()


async def test_transfers_of_a_state_are_counted_and_read_by_the_page(database: Database) -> None:
    store = SqlTransferStore(database)
    named = [f"{number}f" * 32 for number in range(5)]
    # Two of them changed at the same moment, at the edge of a page.
    for id, minutes in zip(named, (4, 3, 3, 2, 1), strict=True):
        await store.record(a_row(TransferStatus.NO_ASSIGNED, minutes, transfer_id=id))
    await store.record(a_row(TransferStatus.ASSIGNED, 5))
    waiting = TransferStatus.NO_ASSIGNED
    found = list(await store.newest(limit=2, status=waiting))
    for size in (4, 5, 5):
        last = found[-1]
        found += await store.newest(
            limit=2, status=waiting, before=last.at, behind=last.transfer_id
        )
        assert len(found) == size
    assert [each.transfer_id for each in found] == named
    assert await store.count(waiting) == 5


class Staged:
    """A staging area that says what was removed."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    async def remove(self, run: str) -> int:
        self.removed.append(run)
        return 1


async def test_rows_of_runs_that_are_over_are_closed_and_their_bytes_removed(
    database: Database,
) -> None:
    store, staging = SqlTransferStore(database), Staged()
    rows = TransferRows(store, staging)  # type: ignore[arg-type]
    await store.record(a_row(TransferStatus.READ_MESSAGE, queue="jobs", run=file_job_id(ID)))
    await store.record(a_row(TransferStatus.SUCCEEDED, transfer_id=OTHER))
    [open_row] = await rows.open_rows(NOON, "", 10)
    assert open_row.id == file_job_id(ID)
    assert await rows.open_rows(NOON, open_row.id, 10) == []
    assert await rows.open_rows(NOON - timedelta(minutes=1), "", 10) == []
    await SqlSequenceLocks(database).take("key", open_row.id, NOON)
    assert await rows.terminate(open_row.id, "its run was terminated", open_row.changed_at)
    assert not await rows.terminate(open_row.id, "again")
    found = await store.get(ID)
    assert found is not None
    assert (found.status, found.reason) == (TransferStatus.FAILED, "its run was terminated")
    assert staging.removed[0] == ID
    assert await SqlSequenceLocks(database).take("key", "transfer/next/job", NOON) == []


async def test_turns_follow_the_order_of_arrival(database: Database) -> None:
    first = file_job_id(ID)
    turns, store = SqlSequenceLocks(database), SqlTransferStore(database)
    late, early = NOON + timedelta(seconds=1), NOON
    assert await turns.take("key", first, late) == []
    # It has begun, and stays first although an earlier event comes now.
    assert await turns.take("key", "early", early) == [first]
    assert await turns.take("key", "last", late) == [first, "early"]
    assert await turns.take("another key", "last", late) == []
    await store.record(a_row(TransferStatus.SUCCEEDED, run=file_job_id(ID)))
    assert await turns.take("key", "early", early) == []
    assert await turns.take("key", "last", late) == ["early"]


@pytest.mark.parametrize("end", ["other key", "no key", "failed", "swept"])
async def test_a_job_waits_for_earlier_events_of_its_watch_without_a_key(
    database: Database, end: str
) -> None:
    turns, store = SqlSequenceLocks(database), SqlTransferStore(database)
    first, second, third, another = map(file_job_id, (ID, OTHER, "e" * 64, "a" * 64))
    for place, job in enumerate((first, second, third)):
        await turns.reserve("orders", None, job, NOON + timedelta(seconds=place))
    assert await turns.newest("orders", None) == NOON + timedelta(seconds=2)
    # What arrived before them by another way does not wait, and what their runs say of their
    # arrival does not count.
    assert await turns.take("key", another, NOON - timedelta(days=1)) == []
    assert await turns.take("key", third, NOON) == [another]
    assert await turns.take("key", second, NOON + timedelta(days=1)) == [another]
    assert await turns.take("key", third, NOON) == [another, second]
    await store.record(a_row(TransferStatus.SUCCEEDED, transfer_id="a" * 64, run=another))
    assert await turns.take("key", second, NOON) == [first]
    rows = TransferRows(store, Staged())  # type: ignore[arg-type]
    match end:
        case "other key":
            assert await turns.take("another key", first, NOON) == []
        case "failed":
            await store.record(a_row(TransferStatus.FAILED, run=transfer_workflow_id(ID)))
        case "swept":
            [left] = await rows.open_rows(NOON, "", 10)
            assert (left.id, left.run) == (first, transfer_workflow_id(ID))
            await rows.terminate(left.id, "Temporal knows no run", left.changed_at)
        case _:
            await turns.unreserve(first)
    assert await turns.take("key", second, NOON) == []
    assert await turns.take("key", third, NOON) == [second]


async def test_of_runs_that_ask_at_the_same_moment_one_has_the_turn(database: Database) -> None:
    turns = SqlSequenceLocks(database)
    found = await asyncio.gather(*(turns.take("key", f"run {n}", NOON) for n in range(8)))
    assert sum(not each for each in found) == 1


async def test_changes_of_rules_have_a_trail_and_a_version(database: Database) -> None:
    store = SqlRouteStore(database)
    before = await store.version()
    rule = RouteRule(queue="jobs", rule="1", source="TMS.*", by="ann", changed_at=NOON)
    await store.put(rule)
    await store.put(rule.model_copy(update={"priority": 5}))
    assert [each.priority for each in await store.rules()] == [5]
    assert await store.remove("jobs", "1", "bob")
    assert not await store.remove("jobs", "1", "bob")
    assert await store.rules() == []
    trail = await store.trail()
    assert [change for _, change in trail] == ["removed", "changed", "added"]
    assert trail[0][0].by == "bob"
    assert await store.version() != before


async def test_a_partner_that_another_person_has_changed_is_not_overwritten(
    database: Database,
) -> None:
    store = SqlPartnerStore(database)
    partner = Partner(name="acme", kind=PlaceKind.SFTP, host="sftp.example")
    first = await store.put(partner)
    second = await store.put(first.model_copy(update={"port": 2222}), expected=first.revision)
    with pytest.raises(RuleViolation, match="changed meanwhile"):
        await store.put(first, expected=first.revision)
    assert (first.revision, second.revision) == (1, 2)
    assert await store.get("acme") == second
    assert [each.name for each in await store.all()] == ["acme"]
    assert await store.remove("acme")
    assert not await store.remove("acme")
    assert await store.get("acme") is None


async def test_sessions_of_a_partner_are_counted_over_all_workers(database: Database) -> None:
    store = SqlPartnerStore(database)
    await store.put(Partner(name="acme", kind=PlaceKind.SFTP))
    took = await asyncio.gather(*(store.lease("acme", f"owner {n}", 2, 60) for n in range(6)))
    assert sum(took) == 2
    [one, other] = [f"owner {n}" for n, each in enumerate(took) if each]
    assert await store.lease("acme", one, 2, 60)
    assert not await store.lease("acme", "another", 2, 60)
    await store.release("acme", other)
    assert await store.lease("acme", "another", 2, 60)


async def test_a_session_whose_owner_is_gone_is_free_again(database: Database) -> None:
    store = SqlPartnerStore(database)
    await store.put(Partner(name="acme", kind=PlaceKind.SFTP))
    assert await store.lease("acme", "killed", 1, -1)
    assert await store.lease("acme", "next", 1, 60)


async def test_a_change_that_is_committed_after_a_later_one_is_seen(database: Database) -> None:
    store = SqlRouteStore(database)
    await store.put(RouteRule(queue="jobs", rule="1"))
    before = await store.version()
    slow = {"id": 0, "queue": "jobs", "rule": "0", "change": "added", "record": "{}", "at": NOON}
    async with database.transaction() as connection:
        await connection.execute(insert(jobconfig_changes).values(slow))
    assert await store.version() != before
