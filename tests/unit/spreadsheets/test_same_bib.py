"""The same bib twice in one event: asked about, in the file and against rows that are there."""

from typing import Any

import pytest

from activities.spreadsheets.rows import SpreadsheetUndoSteps
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import (
    NOW,
    SpreadsheetSetup,
    StagedSpreadsheet,
    table,
)
from workflows.spreadsheets.mappings import CellDecision, CellMapping
from workflows.spreadsheets.runs import UndoInput

HEADER = ("First name", "Last name", "Email", "Bib")
ADA = ("Ada", "Lovelace", "ada@example.org", "7")
BEA = ("Bea", "Smith", "bea@example.org", "7")
CY = ("Cy", "Jones", "cy@example.org", "8")


async def asked(setup: SpreadsheetSetup, *rows: tuple[str, ...], **fields: Any) -> Any:
    prepared = await setup.prepare(table(HEADER, *rows), **fields)
    await prepared.collect()
    return prepared


async def questions(prepared: StagedSpreadsheet) -> list[CellMapping]:
    pages = [page async for page in prepared.setup.store.mappings(prepared.order.uuid)]
    return [each for page in pages for each in page if each.field == "SAME_BIB"]


async def bibs(setup: SpreadsheetSetup) -> list[tuple[Any, ...]]:
    return await setup.select("event_participants", "bib")


async def test_two_people_of_a_file_with_one_bib_are_asked_about(setup: SpreadsheetSetup) -> None:
    setup.chunk_rows = 1
    (question,) = await questions(await asked(setup, ADA, BEA, CY, BEA))
    assert (question.value, question.question, question.reason) == (
        *("7: Bea Smith, bea@example.org", "SAME_BIB"),
        "another person has the same bib",
    )
    assert [each.name for each in question.alternatives] == ["stays with row 2"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"confirm": True}, [("7",), (None,)]),
        ({"ignore": True}, [("7",), (None,)]),
        ({"create": True}, [("7",), ("7",)]),
    ],
)
async def test_what_is_answered_is_what_is_written(
    setup: SpreadsheetSetup, answer: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    prepared = await asked(setup, ADA, BEA)
    (question,) = await questions(prepared)
    await prepared.decide_these((CellDecision(id=question.id, **answer),), confirm=True)
    assert (await prepared.process()).parked == 0
    assert await bibs(setup) == expected


async def test_a_bib_of_another_participant_is_asked_about(setup: SpreadsheetSetup) -> None:
    first = await asked(setup, ADA)
    await first.process()
    await first.finish()
    prepared = await asked(setup, BEA, ADA)
    found = await questions(prepared)
    assert [each.value for each in found] == [
        "7: Bea Smith, bea@example.org",
        "7: Ada Lovelace, ada@example.org",
    ]
    assert [each.alternatives[0].name for each in found] == [
        "stays with Ada Lovelace, ada@example.org",
        "stays with row 2",
    ]
    decisions = (
        CellDecision(id=found[0].id, confirm=True),
        CellDecision(id=found[1].id, create=True),
    )
    await prepared.decide_these(decisions, confirm=True)
    await prepared.process()
    await prepared.finish()
    assert await bibs(setup) == [("7",), (None,)]
    # Ada has it alone: her row again is not a question.
    assert await questions(await asked(setup, ADA)) == []


async def test_rows_wait_when_values_are_skipped_and_go_in_as_answered(
    setup: SpreadsheetSetup,
) -> None:
    setup.chunk_rows = 1
    prepared = await setup.prepare(table(HEADER, ADA, BEA, CY))
    done = await prepared.process(counting=True)
    assert (done.parked, done.counts.created, done.cells.open) == (1, 2, 1)
    (question,) = await questions(prepared)
    await prepared.decide_these((CellDecision(id=question.id, create=True),), confirm=True)
    assert (await prepared.process(1)).parked == 0
    assert await bibs(setup) == [("7",), ("8",), ("7",)]


async def test_nothing_is_learnt_of_it_and_all_are_answered_together(
    setup: SpreadsheetSetup,
) -> None:
    rows = (ADA, BEA, ("Dan", "Poe", "dan@example.org", "7"))
    prepared = await asked(setup, *rows, dry_run=True)
    first, _ = await questions(prepared)
    decision = CellDecision(id=first.id, ignore=True, for_all=True)
    assert (await prepared.decide_these((decision,), confirm=True)).open == 0
    assert await setup.count("remembered_values") == 0
    *_, decided, _ = await setup.select("decisions", "subject decision")
    assert decided == ("SAME_BIB: 1 questions: another person has the same bib", "ignored")
    assert (await prepared.process()).counts.created == 3


async def test_after_an_undo_the_bib_is_free_again(setup: SpreadsheetSetup) -> None:
    first = await asked(setup, ADA)
    await first.process()
    await first.finish()
    order = UndoInput(
        uuid=first.order.uuid, organisation_id=1, by="anna", filename="f", requested_at=NOW
    )
    await environment().run(SpreadsheetUndoSteps(setup.store).undo, order)
    assert await questions(await asked(setup, BEA)) == []
