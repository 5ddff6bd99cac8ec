"""The record of rejected messages, in the database and in memory."""

from collections.abc import AsyncGenerator

import pytest

from adapters.database.engine import Database, open_database
from adapters.database.records import SqlRejectedMessages
from adapters.ports.records import REJECTED_BODY_BYTES, RejectedMessages
from tests.support.memory.rejected import MemoryRejectedMessages


@pytest.fixture(params=["database", "memory"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Of the database; None for the record in memory."""
    if request.param == "memory":
        return None
    return request.getfixturevalue("database_url")


@pytest.fixture
async def rejected(url: str | None) -> AsyncGenerator[RejectedMessages]:
    if url is None:
        yield MemoryRejectedMessages()
        return
    async with open_database(url) as database:
        yield SqlRejectedMessages(database)


async def test_a_message_is_kept_once_and_found(rejected: RejectedMessages) -> None:
    await rejected.record("q", "m1", "Malformed", "not JSON", b"{")
    await rejected.record("q", "m1", "Malformed", "again", b"{")
    await rejected.record("q", "m1", "Malformed", "another body", b"{}")
    await rejected.record("other", "m1", "Malformed", "not JSON", b"[")
    await rejected.record("q", None, "Malformed", "no id", b"1")
    await rejected.record("q", None, "Malformed", "no id", b"1")
    rows = await rejected.list()
    assert [(row.queue, row.message_id, row.body) for row in rows] == [
        ("q", None, "1"),
        ("q", None, "1"),
        ("other", "m1", "["),
        ("q", "m1", "{}"),
        ("q", "m1", "{"),
    ]
    assert [row.id for row in await rejected.list(2)] == [row.id for row in rows[:2]]
    assert await rejected.get(rows[-1].id) == rows[-1]
    assert rows[-1].received_at.utcoffset() is not None
    for unknown in (10_000, 0, -1, 2**63 - 1, 2**63, 10**25, -(10**25)):
        assert await rejected.get(unknown) is None


async def test_resubmission_is_noted(rejected: RejectedMessages) -> None:
    await rejected.record("q", "m1", "Malformed", "not JSON", b"{")
    (row,) = await rejected.list()
    assert row.resubmitted_at is None
    await rejected.mark_resubmitted(row.id)
    again = await rejected.get(row.id)
    assert again is not None
    assert again.resubmitted_at is not None
    assert again.resubmitted_at >= row.received_at


async def test_a_dead_letter_that_is_sent_again_is_noted_by_its_id_and_body(
    rejected: RejectedMessages,
) -> None:
    long = b"x" * (REJECTED_BODY_BYTES + 1)
    for queue, id, body in (
        ("q", "m1", b"{"),
        ("q", "m1", long),
        ("q", None, b"{"),
        ("r", "m1", b"{"),
    ):
        await rejected.record(queue, id, "Malformed", "not JSON", body)
    await rejected.mark_dead_letter_resubmitted("q", "m1", long)
    await rejected.mark_dead_letter_resubmitted("q", None, b"{")
    await rejected.mark_dead_letter_resubmitted("q", "unknown", b"{")
    rows = (await rejected.list())[::-1]
    assert [row.resubmitted_at is None for row in rows] == [True, False, False, True]


async def test_what_was_not_sent_again_is_counted_by_queue(rejected: RejectedMessages) -> None:
    assert await rejected.open() == []
    for queue, id in (("a", "1"), ("b", "2"), ("b", "3"), ("c", "4")):
        await rejected.record(queue, id, "Malformed", "not JSON", b"{")
    newest, *_, oldest = await rejected.list()
    await rejected.mark_resubmitted(newest.id)
    found = await rejected.open()
    assert [(each.queue, each.number) for each in found] == [("a", 1), ("b", 2)]
    assert found[0].oldest == oldest.received_at


@pytest.mark.parametrize(
    ("body", "kept", "truncated"),
    [
        (b"\xff\xfe\0", "\ufffd\ufffd\0", False),
        (b"a" * REJECTED_BODY_BYTES, "a" * REJECTED_BODY_BYTES, False),
        (b"a" * (REJECTED_BODY_BYTES + 1), "a" * REJECTED_BODY_BYTES, True),
    ],
)
async def test_bodies_are_bounded_and_any_bytes_will_do(
    rejected: RejectedMessages, body: bytes, kept: str, truncated: bool
) -> None:
    await rejected.record("q", "m1", "Malformed", "why", body)
    (row,) = await rejected.list()
    assert (row.body, row.truncated) == (kept, truncated)


async def test_hostile_text_is_kept_without_what_a_database_refuses(
    rejected: RejectedMessages,
) -> None:
    await rejected.record("q", "m\0", "why\0", "half \ud800", b"")
    assert len(await rejected.list()) == 1


async def test_a_long_body_is_cut_between_characters(database: Database) -> None:
    rejected = SqlRejectedMessages(database)
    await rejected.record("q", "m1", "r", "d", b"a" + "é".encode() * REJECTED_BODY_BYTES)
    (row,) = await rejected.list()
    assert row.body == "a" + "é" * ((REJECTED_BODY_BYTES - 1) // 2)
