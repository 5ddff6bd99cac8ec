"""`docflow batches concurrency`, with the tables alone."""

import json
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.batches.scripted import started
from tests.support.cli import Terminal
from tests.support.fresh_database import fresh_url
from workers.batches import access
from workflows.batches.names import BatchKey

OPEN = BatchKey(case_id=7, batch_id=3)
AWS = {
    "AWS_REGION": "eu-central-1",
    "DOCFLOW_BATCH_TOPIC_ARN": "arn:aws:sns:eu-central-1:123456789012:documents",
    "DOCFLOW_BATCH_WITH_FUNCTION": "false",
    "DOCFLOW_BATCH_CONCURRENCY": "5",
    "DOCFLOW_BATCH_RESERVED_CONCURRENCY": "50",
}


class Person(Terminal):
    pipeline = "batches"


@pytest_asyncio.fixture
async def terminal(tmp_path: Path) -> Person:
    settings = {"DATABASE_URL": fresh_url(), "USER": "ada"}
    return Person(settings)


async def test_a_case_without_its_own_has_that_of_the_installation(terminal: Person) -> None:
    expected = "case 7 has none of its own: DOCFLOW_BATCH_CONCURRENCY counts, here"
    assert await terminal.docflow("concurrency", "7") == f"{expected} 10\n"
    other = Person({**terminal.environment, **AWS})
    assert await other.docflow("concurrency", "7") == f"{expected} 5\n"


async def test_the_concurrency_of_a_case_is_set_and_forgotten(terminal: Person) -> None:
    expected = "max_processing_daemons of case 7 is 20\n"
    assert await terminal.docflow("concurrency", "7", "20") == expected
    assert await terminal.docflow("concurrency", "7") == expected
    async with access.open_store(terminal.environment) as store:
        assert (await store.concurrency(7), await store.concurrency(8)) == (20, None)
    assert "none of its own" in await terminal.docflow("concurrency", "7", "--default")
    shown = json.loads(await terminal.docflow("concurrency", "7", "--json"))
    assert shown == {
        "case_id": 7,
        "max_processing_daemons": None,
        "concurrency": 10,
        "unchanged_batches": [],
    }


async def test_a_batch_that_is_open_is_named_as_unchanged(terminal: Person) -> None:
    async with access.open_store(terminal.environment) as store:
        await store.note(7, [started(OPEN), started(BatchKey(case_id=7, batch_id=4))])
        await store.claim(OPEN, ())
    said = "batch 3 is open, and keeps what it was built with"
    assert said in await terminal.docflow("concurrency", "7", "20")
    assert said not in await terminal.docflow("concurrency", "7")
    assert said not in await terminal.docflow("concurrency", "8", "20")
    shown = json.loads(await terminal.docflow("concurrency", "7", "30", "--json"))
    assert shown["unchanged_batches"] == [3]


async def test_a_number_of_another_program_is_shown_with_what_it_becomes(
    terminal: Person,
) -> None:
    async with access.open_store(terminal.environment) as store:
        await store.set_concurrency(7, 5000)
    shown = await terminal.docflow("concurrency", "7")
    assert "max_processing_daemons of case 7 is 5,000" in shown
    assert "its batches run with 1,000: an event source mapping takes 2 to 1,000" in shown


async def test_more_than_all_batches_may_reserve_is_reported(terminal: Person) -> None:
    small = Person({**terminal.environment, **AWS})
    said = "all batches together may reserve 50 (DOCFLOW_BATCH_RESERVED_CONCURRENCY)"
    assert said in await small.docflow("concurrency", "7", "51")
    assert said not in await small.docflow("concurrency", "7", "50")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("7", "1"), "greater than or equal to 2"),
        (("7", "1001"), "less than or equal to 1000"),
        (("7", "many"), "valid integer"),
        (("0",), "greater than or equal to 1"),
        (("7", "20", "--default"), "N and --default contradict each other: give one of them"),
    ],
)
async def test_a_number_out_of_bounds_is_refused_and_nothing_changes(
    terminal: Person, arguments: tuple[str, ...], says: str
) -> None:
    done = await terminal.try_docflow("concurrency", *arguments)
    assert (done.exit_code, says in done.stderr) == (2, True), done.output
    async with access.open_store(terminal.environment) as store:
        assert await store.concurrency(7) is None
