"""The steps of a review: each may run twice, and a check of an older version writes nothing."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert
from temporalio.exceptions import ApplicationError

from activities.spreadsheets.review import SpreadsheetReview
from activities.spreadsheets.review_rules import PROBLEMS, ReviewColumn, ReviewOverview
from adapters.database.models.spreadsheets import races
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import (
    EVENT,
    MIXED,
    SpreadsheetSetup,
    StagedSpreadsheet,
    table,
)
from workflows.shared.errors import INVALID_DECISION
from workflows.spreadsheets.mappings import ReviewCounts
from workflows.spreadsheets.reviews import (
    CellValue,
    ChangeReview,
    CloseReview,
    Exclude,
    Notation,
    NotationName,
    Operation,
    Replace,
    ReviewChanged,
    ReviewInput,
    ReviewOperation,
    SetCells,
    UndoOperation,
)

HEADERS = ("First name", "Last name", "Date of birth")
AT = datetime(2026, 3, 4, 12, tzinfo=UTC)
MAIL = 3


class Reviewed:
    """An import of `MIXED` whose rows are under review."""

    def __init__(self, sheet: StagedSpreadsheet) -> None:
        self.sheet, self.store = sheet, sheet.setup.store
        own = sheet.setup
        self.steps = SpreadsheetReview(own.store, own.blobs, own.types, own.scratch, chunk_rows=2)

    async def open(self) -> ReviewCounts:
        return await environment().run(self.steps.open_review, self.input(1))

    def input(self, version: int) -> ReviewInput:
        sheet = self.sheet
        return ReviewInput(
            order=sheet.order, staged=sheet.staged, columns=sheet.columns, version=version
        )

    async def propose(self, operation: Operation) -> int:
        proposed = ReviewOperation(id=0, version=0, operation=operation, by="ann", at=AT)
        id = await self.store.reviews.propose(self.sheet.order.uuid, proposed)
        assert id is not None
        return id

    async def change(self, id: int, version: int, **more: Any) -> ReviewChanged:
        sheet = self.sheet
        work = ChangeReview(
            order=sheet.order,
            columns=sheet.columns,
            operation=id,
            version=version,
            by="ann",
            at=AT,
            **more,
        )
        return await environment().run(self.steps.change_review, work)


async def test_each_step_may_run_twice(setup: SpreadsheetSetup) -> None:
    reviewed = Reviewed(await setup.prepare(table(*MIXED)))
    for _ in range(2):
        assert await reviewed.open() == ReviewCounts(rows=5, wrong=2, checked=1)
    mended = await reviewed.propose(
        SetCells(cells=(CellValue(row=3, column=MAIL, value="bob@example.org"),))
    )
    seen = await reviewed.change(mended, 2, preview=True)
    assert (seen.effect.problems_before, seen.effect.problems_after) == (1, 0)
    assert seen.version == 1
    for _ in range(2):
        changed = await reviewed.change(mended, 2)
        assert (changed.version, changed.counts.wrong) == (2, 1)
    left_out = await reviewed.propose(Exclude(rows=(6,)))
    assert (await reviewed.change(left_out, 3)).counts == ReviewCounts(
        rows=5, wrong=0, excluded=1, checked=1
    )
    sheet = reviewed.sheet
    closing = CloseReview(order=sheet.order, columns=sheet.columns, version=4, by="ann", at=AT)
    late = await reviewed.propose(Exclude(rows=(2,)))
    for _ in range(2):
        await environment().run(reviewed.steps.close_review, closing)
        await sheet.process()
    assert await setup.outcomes() == {
        **dict.fromkeys((2, 3, 4, 5), "CREATED"),
        6: "SKIPPED",
    }
    with pytest.raises(ApplicationError, match="this change was not applied"):
        await reviewed.change(late, 5)
    trail = await setup.select("decisions", "kind subject decision by")
    assert trail == [
        ("correction", "row 3, Email", "corrected", "ann"),
        ("correction", "row 6", "left out", "ann"),
        ("confirm", "", "review", "ann"),
    ]


async def test_a_check_of_an_older_version_writes_nothing(
    setup: SpreadsheetSetup,
) -> None:
    reviewed = Reviewed(await setup.prepare(table(*MIXED)))
    await reviewed.open()
    spoilt = await reviewed.propose(Replace(column=MAIL, find="@", put=" "))
    changed = await reviewed.change(spoilt, 2)
    assert (changed.effect.rows, changed.counts.wrong, changed.counts.checked) == (3, 5, 1)
    stale = await environment().run(reviewed.steps.check_review, reviewed.input(1))
    assert (stale.wrong, stale.checked) == (5, 1)
    back = await reviewed.propose(UndoOperation(version=2))
    assert (await reviewed.change(back, 3)).counts.wrong == 2
    newest = await environment().run(reviewed.steps.check_review, reviewed.input(3))
    assert (newest.wrong, newest.checked) == (2, 3)


async def test_rows_are_checked_against_each_other(setup: SpreadsheetSetup) -> None:
    reviewed = Reviewed(await setup.prepare(table(*MIXED)))
    await reviewed.open()
    twice = await reviewed.propose(
        SetCells(
            cells=(
                CellValue(row=4, column=1, value="Anna"),
                CellValue(row=4, column=2, value="A"),
                CellValue(row=4, column=MAIL, value="anna@example.org"),
            )
        )
    )
    assert (await reviewed.change(twice, 2)).counts.wrong == 2
    checked = await environment().run(reviewed.steps.check_review, reviewed.input(2))
    assert checked.wrong == 3
    [problem] = [
        row
        for row in await setup.select("spreadsheet_review_problems", "line column_id reason")
        if row[0] == 4
    ]
    assert problem == (4, 0, "same person as line 2")


async def test_a_change_that_there_is_not_is_refused(setup: SpreadsheetSetup) -> None:
    reviewed = Reviewed(await setup.prepare(table(*MIXED)))
    await reviewed.open()
    with pytest.raises(ApplicationError, match="no change 404") as refused:
        await reviewed.change(404, 2)
    assert refused.value.type == INVALID_DECISION


async def test_what_is_purged_leaves_no_row_behind(setup: SpreadsheetSetup) -> None:
    reviewed = Reviewed(await setup.prepare(table(*MIXED)))
    await reviewed.open()
    await reviewed.change(await reviewed.propose(Exclude(rows=(6,))), 2)
    await reviewed.sheet.finish()
    assert await reviewed.store.purge(reviewed.sheet.order.uuid, AT)
    for name in ("reviews", "review_blocks", "review_problems", "review_operations"):
        assert await setup.count(f"spreadsheet_{name}") == 0


async def test_times_are_in_question_wherever_another_row_writes_hours(
    setup: SpreadsheetSetup,
) -> None:
    runners = [(f"F{n}", f"L{n}", "2:45") for n in range(1_001)]
    rows = (("First name", "Last name", "Time"), *runners, ("Late", "Runner", "3:45:10"))
    race = {"id": 5, "event_id": EVENT, "name": "Marathon"}
    async with setup.database.transaction() as connection:
        await connection.execute(insert(races), [race])
    sheet = await setup.prepare(table(*rows), import_type="RESULT", context_id=5)
    reviewed = Reviewed(sheet)
    assert (await reviewed.open()).wrong == 1_001
    other = await reviewed.propose(Replace(column=3, find="2:45", put="2:46"))
    seen = await reviewed.change(other, 2, preview=True)
    assert (seen.effect.problems_before, seen.effect.problems_after) == (1_001, 1_001)
    hours = Notation(column=3, notation=NotationName.HOURS_MINUTES)
    changed = await reviewed.change(await reviewed.propose(hours), 2)
    assert (changed.effect.problems_after, changed.counts.wrong) == (0, 0)


@pytest.mark.parametrize(("problems", "is_cut"), [(PROBLEMS - 1, False), (PROBLEMS, True)])
def test_a_review_that_stores_the_first_problems_only_is_marked(
    problems: int, is_cut: bool
) -> None:
    column = ReviewColumn(id=1, header="Time", target=None, problems=problems - 4)
    overview = ReviewOverview(
        version=1,
        is_open=True,
        is_checked=False,
        rows=170_000,
        wrong=problems,
        excluded=0,
        row_problems=4,
        missing=(),
        dry_run=False,
        columns=[column],
    )
    assert overview.model_dump(by_alias=True)["is_cut"] is is_cut


async def test_a_cell_that_does_not_fit_the_chosen_notation_is_a_problem(
    setup: SpreadsheetSetup,
) -> None:
    born = ("3/4/1990", "25/4/1990", "1990-04-03", "4/25/1990")
    people = [(f"F{n}", f"L{n}", day) for n, day in enumerate(born)]
    reviewed = Reviewed(await setup.prepare(table(HEADERS, *people)))
    assert (await reviewed.open()).wrong == 1
    month_first = Notation(column=3, notation=NotationName.MONTH_FIRST)
    changed = await reviewed.change(await reviewed.propose(month_first), 2)
    assert (changed.effect.problems_before, changed.effect.problems_after) == (1, 1)
    counts = await environment().run(reviewed.steps.check_review, reviewed.input(2))
    assert (counts.checked, counts.wrong) == (2, 1)
    [(line, reason)] = await setup.select("spreadsheet_review_problems", "line reason")
    assert (line, reason[:24]) == (3, "does not fit its column,")
    undone = await reviewed.change(await reviewed.propose(UndoOperation(version=2)), 3)
    assert (undone.effect.problems_before, undone.effect.problems_after) == (1, 1)
    [(line, reason)] = await setup.select("spreadsheet_review_problems", "line reason")
    assert (line, reason[:14]) == (2, "can be read as")
