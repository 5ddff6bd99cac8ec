"""Imports about people who may be known already: asked, answered, remembered, taken back."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.spreadsheets.rows import SpreadsheetUndoSteps
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import (
    NOW,
    SpreadsheetSetup,
    StagedSpreadsheet,
    table,
)
from workflows.spreadsheets.mappings import CellDecision, CellMapping, MappingStatus
from workflows.spreadsheets.runs import UndoInput

HEADER = ("First name", "Last name", "Email", "Date of birth", "City")
TOM = ("Tom", "Meier", "", "1990-05-31", "Kiel")
TOM_WITH_MAIL = ("Tom", "Meier", "tom@example.org", "1990-05-31", "Bonn")
LEA = ("Lea", "Meier", "tom@example.org", "", "Kiel")


async def imported(setup: SpreadsheetSetup, *rows: tuple[str, ...]) -> StagedSpreadsheet:
    prepared = await setup.prepare(table(HEADER, *rows))
    assert (await prepared.collect()).open == 0
    await prepared.process()
    await prepared.finish()
    return prepared


async def asked(setup: SpreadsheetSetup, *rows: tuple[str, ...], **fields: Any) -> Any:
    prepared = await setup.prepare(table(HEADER, *rows), **fields)
    await prepared.collect()
    return prepared


async def questions(prepared: StagedSpreadsheet) -> list[CellMapping]:
    pages = [page async for page in prepared.setup.store.mappings(prepared.order.uuid)]
    return [each for page in pages for each in page if each.field == "PERSON"]


async def people(setup: SpreadsheetSetup) -> list[tuple[Any, ...]]:
    return await setup.select("persons", "first_name last_name email city")


async def differences(setup: SpreadsheetSetup) -> list[tuple[Any, ...]]:
    return await setup.select("spreadsheet_differences", "line column_name before after")


async def test_a_family_with_one_mail_address_is_asked_nothing(setup: SpreadsheetSetup) -> None:
    await imported(setup, TOM_WITH_MAIL)
    await imported(setup, LEA)
    assert [first for first, *_ in await people(setup)] == ["Tom", "Lea"]
    assert await setup.count("event_participants") == 2


async def test_the_same_person_gets_what_was_missing(setup: SpreadsheetSetup) -> None:
    await imported(setup, TOM)
    prepared = await asked(setup, TOM_WITH_MAIL, LEA)
    (question,) = await questions(prepared)
    assert (question.value, question.question, question.status) == (
        *("Tom Meier, tom@example.org, 1990-05-31", "MAIL_MISSING"),
        MappingStatus.UNMATCHED,
    )
    assert question.reason == "the same name, and one of the two has no mail address"
    assert [each.name for each in question.alternatives] == ["Tom Meier, 1990-05-31"]

    await prepared.decide_these((CellDecision(id=question.id, confirm=True),), confirm=True)
    assert (await prepared.process()).parked == 0
    await prepared.finish()
    assert await people(setup) == [
        ("Tom", "Meier", "tom@example.org", "Bonn"),
        ("Lea", "Meier", "tom@example.org", "Kiel"),
    ]
    # What a real run changed in a person who was there is shown, as in a dry run.
    assert await differences(setup) == [
        (2, "email", None, "tom@example.org"),
        (2, "city", "Kiel", "Bonn"),
    ]


@pytest.mark.parametrize(
    ("answer", "names", "outcome"),
    [
        ({"create": True}, ["Tom", "Tom"], "CREATED"),
        ({"ignore": True}, ["Tom"], "SKIPPED"),
    ],
)
async def test_another_person_or_a_row_that_is_left_out(
    setup: SpreadsheetSetup, answer: dict[str, Any], names: list[str], outcome: str
) -> None:
    await imported(setup, TOM)
    prepared = await asked(setup, TOM_WITH_MAIL)
    (question,) = await questions(prepared)
    await prepared.decide_these((CellDecision(id=question.id, **answer),), confirm=True)
    assert (await prepared.process()).parked == 0
    assert [first for first, *_ in await people(setup)] == names
    assert (await setup.select("spreadsheet_results", "outcome"))[-1] == (outcome,)


async def test_one_answer_settles_all_questions_of_a_kind(setup: SpreadsheetSetup) -> None:
    names = ["Meier", "Maier", "Mayr"]
    await imported(setup, *(("Tom", name, "", "1990-05-31", "") for name in names))
    prepared = await asked(
        setup,
        *(("Tom", name, f"{name}@example.org", "1990-05-31", "") for name in names),
        ("TOM", "Mayr", "", "1990-05-31", ""),
    )
    first, *_, spelling = await questions(prepared)
    decision = CellDecision(id=first.id, confirm=True, for_all=True)
    summary = await prepared.decide_these((decision,))
    assert [value.id for value in summary.first_open] == [spelling.id]
    assert spelling.question == "SPELLING"
    trail = await setup.select("decisions", "subject decision")
    assert trail[-1] == (
        "PERSON: 2 questions: the same name, and one of the two has no mail address",
        "confirmed",
    )
    await prepared.decide_these((CellDecision(id=spelling.id, create=True),), 3, confirm=True)
    await prepared.process()
    assert await setup.count("persons") == 4


async def test_an_answer_is_remembered_until_the_import_is_undone(
    setup: SpreadsheetSetup,
) -> None:
    await imported(setup, TOM)
    first = await asked(setup, LEA, ("T.", "Meier", "", "1990-05-31", ""))
    (question,) = await questions(first)
    await first.decide_these((CellDecision(id=question.id, confirm=True),), confirm=True)
    again = await asked(setup, ("T.", "Meier", "", "1990-05-31", ""))
    (found,) = await questions(again)
    assert (found.status, found.target_name) == (
        MappingStatus.AUTO_MATCHED,
        "Tom Meier, 1990-05-31",
    )
    await first.process()
    await first.finish()
    order = UndoInput(
        uuid=first.order.uuid, organisation_id=1, by="anna", filename="f", requested_at=NOW
    )
    await environment().run(SpreadsheetUndoSteps(setup.store).undo, order)
    (open_,) = await questions(await asked(setup, ("T.", "Meier", "", "1990-05-31", "")))
    assert open_.status is MappingStatus.UNMATCHED


async def test_that_it_is_another_person_is_remembered_too(setup: SpreadsheetSetup) -> None:
    await imported(setup, TOM)
    first = await asked(setup, TOM_WITH_MAIL)
    (question,) = await questions(first)
    await first.decide_these((CellDecision(id=question.id, create=True),), confirm=True)
    (found,) = await questions(await asked(setup, TOM_WITH_MAIL))
    assert (found.status, found.create) == (MappingStatus.AUTO_MATCHED, True)
    await first.process()
    # Now there is a person with just these data: nothing is unclear any more.
    assert await questions(await asked(setup, TOM_WITH_MAIL)) == []


async def test_an_answer_can_be_taken_back(setup: SpreadsheetSetup) -> None:
    await imported(setup, TOM)
    prepared = await asked(setup, TOM_WITH_MAIL)
    (question,) = await questions(prepared)
    assert (await prepared.decide_these((CellDecision(id=question.id, create=True),))).open == 0
    summary = await prepared.decide_these((CellDecision(id=question.id, reset=True),), 3)
    assert summary.open == 1
    assert await questions(prepared) == [question]


async def test_two_rows_of_a_file_are_asked_about_ahead_even_in_a_dry_run(
    setup: SpreadsheetSetup,
) -> None:
    setup.chunk_rows = 1
    rows = (TOM, LEA, TOM_WITH_MAIL, TOM_WITH_MAIL)
    prepared = await asked(setup, *rows, dry_run=True)
    (question,) = await questions(prepared)
    assert [each.name for each in question.alternatives] == ["row 2: Tom Meier, 1990-05-31"]
    await prepared.decide_these((CellDecision(id=question.id, confirm=True),), confirm=True)
    await prepared.process()
    assert await setup.select("spreadsheet_results", "line outcome message") == [
        (2, "CREATED", None),
        (3, "CREATED", None),
        (4, "ERROR", "same person as line 2"),
        (5, "ERROR", "same person as line 2"),
    ]


async def test_rows_about_unclear_people_wait_when_values_are_skipped(
    setup: SpreadsheetSetup,
) -> None:
    await imported(setup, TOM)
    prepared = await setup.prepare(table(HEADER, TOM_WITH_MAIL, LEA))
    done = await prepared.process(counting=True)
    assert (done.parked, done.counts.created, done.cells.open) == (1, 1, 1)
    (question,) = await questions(prepared)
    await prepared.decide_these((CellDecision(id=question.id, confirm=True),), confirm=True)
    again = await prepared.process(1)
    assert (again.parked, again.counts.updated) == (0, 1)
    assert await setup.count("persons") == 2


async def test_a_chosen_person_who_was_deleted_since_is_an_error(setup: SpreadsheetSetup) -> None:
    await imported(setup, TOM)
    prepared = await asked(setup, TOM_WITH_MAIL)
    (question,) = await questions(prepared)
    await prepared.decide_these((CellDecision(id=question.id, confirm=True),), confirm=True)
    async with setup.database.transaction() as connection:
        for name in ("event_participants", "persons"):
            await connection.exec_driver_sql(f"DELETE FROM {name}")
    await prepared.process()
    (*_, (outcome, message)) = await setup.select("spreadsheet_results", "outcome message")
    assert outcome == "ERROR" and "was deleted since" in message


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"target_id": 999}, "there is no Person 999 to choose"),
        ({"target_id": 2**52 + 77}, "there is no Person"),
    ],
)
async def test_only_people_of_the_organisation_can_be_chosen(
    setup: SpreadsheetSetup, said: dict[str, Any], reason: str
) -> None:
    await imported(setup, TOM)
    prepared = await asked(setup, TOM_WITH_MAIL)
    (question,) = await questions(prepared)
    with pytest.raises(ApplicationError, match=reason):
        await prepared.decide_these((CellDecision(id=question.id, **said),))
