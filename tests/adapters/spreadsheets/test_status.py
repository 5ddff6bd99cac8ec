"""The status row of an import: written in order, read by those it belongs to."""

from datetime import timedelta
from typing import Any

import pytest

from activities.spreadsheets.records import ImportFilter, ImportSorting
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database
from stack.sample_club import SampleClub
from tests.support.spreadsheets.store import NOW, Runner, opened, order, record, table
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.fields import SheetMark
from workflows.spreadsheets.mappings import DecisionRecord, Outcome, SpreadsheetState
from workflows.spreadsheets.runs import RowCounts, SpreadsheetResult, workflow_id

MINUTE = timedelta(minutes=1)
REPORT = BlobRef(name="spreadsheets/report.xlsx", size=10)


async def test_an_import_opens_once(
    sheets: SqlSpreadsheetStore, database: Database, views: SqlSpreadsheetViews
) -> None:
    new = order(fingerprint="f", link="https://example.org/1", auto_start=True)
    await sheets.open(new, workflow_id(new.uuid), NOW)
    await sheets.record(record(new, 1, "COLUMN_MAPPING"))
    await sheets.open(new, workflow_id(new.uuid), NOW + MINUTE)
    row = await views.get(new.uuid, {1})
    assert row is not None
    assert (row.state, row.created_at, row.filename) == (
        *(SpreadsheetState.COLUMN_MAPPING, NOW),
        "runners.xlsx",
    )
    assert (row.by, row.assignee, row.fingerprint, row.auto_start) == ("anna", "anna", "f", True)
    assert len(await table(database, "spreadsheet_imports", "id")) == 1


async def test_texts_that_cannot_be_stored_are_mended(
    sheets: SqlSpreadsheetStore, views: SqlSpreadsheetViews
) -> None:
    new = order(filename="a\0b.csv", by="an\0na")
    await sheets.open(new, workflow_id(new.uuid), NOW)
    row = await views.get(new.uuid, {1})
    assert row is not None
    assert (row.filename, row.by) == ("a\ufffdb.csv", "an\ufffdna")
    assert await views.created_since("an\0na", NOW) == 1


async def test_records_count_in_their_order_only(
    sheets: SqlSpreadsheetStore, views: SqlSpreadsheetViews
) -> None:
    new = order()
    await sheets.open(new, workflow_id(new.uuid), NOW)
    mapping = record(
        new,
        2,
        "COLUMN_MAPPING",
        step="map columns",
        version=3,
        assignee="berta",
        waiting_since=NOW,
        reason="why",
    )
    await sheets.record(mapping)
    row = await views.get(new.uuid, {1})
    assert row is not None
    assert (row.state, row.step, row.version, row.assignee, row.reason) == (
        SpreadsheetState.COLUMN_MAPPING,
        *("map columns", 3, "berta", "why"),
    )
    assert (row.waiting_since, row.state_since) == (NOW, NOW + 2 * MINUTE)
    await sheets.record(record(new, 1, "CELL_MAPPING"))
    assert await views.get(new.uuid, {1}) == row
    await sheets.record(mapping)
    again = await views.get(new.uuid, {1})
    assert again is not None
    moved = {"revision": row.revision, "updated_at": row.updated_at}
    assert again.model_copy(update=moved) == row
    await sheets.record(record(new, 3, "COLUMN_MAPPING", version=2))
    later = await views.get(new.uuid, {1})
    assert later is not None
    assert (later.version, later.state_since, later.waiting_since) == (3, row.state_since, None)
    assert later.reason is None
    assert later.revision > row.revision


async def test_the_end_is_written_once_and_answers_the_same(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(Runner("k:1"), Runner("k:2"))
    result = SpreadsheetResult(
        uuid=sheet.uuid, state=SpreadsheetState.FAILED, report=REPORT, reason="it broke"
    )
    end = record(sheet.order, 5, "FAILED")
    assert await sheets.finish(result, end) == RowCounts(created=2)
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert (row.state, row.report, row.reason) == (SpreadsheetState.FAILED, REPORT, "it broke")
    assert row.finished_at == end.at
    assert await sheets.finish(result, end) == RowCounts(created=2)
    await sheets.record(record(sheet.order, 6, "PROCESSING"))
    assert await views.get(sheet.uuid, {1}) == row


async def test_the_end_counts_whatever_a_dead_worker_has_written(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    await sheets.record(record(sheet.order, 7, "PROCESSING"))
    await sheets.record(record(sheet.order, 7, "CELL_MAPPING"))
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert row.state is SpreadsheetState.CELL_MAPPING
    result = SpreadsheetResult(uuid=sheet.uuid, state=SpreadsheetState.CANCELLED)
    await sheets.finish(result, record(sheet.order, 6, "CANCELLED"))
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert row.state is SpreadsheetState.CANCELLED


async def test_a_trail_keeps_each_decision_once(
    sheets: SqlSpreadsheetStore, views: SqlSpreadsheetViews
) -> None:
    new = order()
    await sheets.open(new, workflow_id(new.uuid), NOW)
    lines = tuple(
        DecisionRecord(kind="reassign", decision=name, by="anna", at=NOW + n * MINUTE)
        for n, name in enumerate(("berta", "carl"))
    )
    await sheets.record(record(new, 1, "COLUMN_MAPPING", trail=lines[:1]))
    await sheets.record(record(new, 2, "COLUMN_MAPPING", trail=lines))
    page = await views.decisions(new.uuid, size=1)
    older = await views.decisions(new.uuid, page=1, size=1)
    shown = [each.model_dump() for each in (*page.items, *older.items)]
    assert (page.total, shown) == (2, [lines[1].model_dump(), lines[0].model_dump()])


async def test_an_import_that_was_never_opened_is_missed(
    sheets: SqlSpreadsheetStore, views: SqlSpreadsheetViews
) -> None:
    new = order()
    with pytest.raises(LookupError, match=new.uuid):
        await sheets.record(record(new, 1, "FAILED"))
    assert await sheets.mark(new.uuid) == SheetMark()
    assert await views.get(new.uuid, {1}) is None
    assert await views.changed(new.uuid) is None
    assert await views.preview(new.uuid) is None
    assert await views.undo(new.uuid) is None
    assert (await views.results(new.uuid)).total == 0
    assert (await views.summary(new.uuid)).total == 0
    assert (await views.cells(new.uuid)).total == 0
    assert (await views.columns(new.uuid)).columns == ()
    assert (await views.decisions(new.uuid)).total == 0
    assert (await views.undo_conflicts(new.uuid)).total == 0


async def test_people_see_the_imports_of_their_organisations(
    sheets: SqlSpreadsheetStore, views: SqlSpreadsheetViews
) -> None:
    orders = [
        order(organisation_id=1 + n % 3, import_type="RESULT" if n % 2 else "MEMBERSHIP")
        for n in range(12)
    ]
    for n, each in enumerate(orders):
        await sheets.open(each, workflow_id(each.uuid), NOW + n * MINUTE)
        if n >= 6:
            await sheets.record(record(each, 1, "CANCELLED"))
    assert await views.get(orders[0].uuid, {2, 3}) is None
    assert await views.get(orders[0].uuid, ()) is None

    async def listed(
        *organisations: int, page: int = 0, size: int = 20, **wanted: Any
    ) -> tuple[list[int], int]:
        page_ = await views.list(organisations, ImportFilter(**wanted), page=page, size=size)
        places = {each.uuid: n for n, each in enumerate(orders)}
        return [places[row.uuid] for row in page_.items], page_.total

    assert await listed() == ([], 0)
    assert await listed(1) == ([9, 6, 3, 0], 4)
    assert await listed(1, 2, page=1, size=3) == ([6, 4, 3], 8)
    assert await listed(1, 3, state=SpreadsheetState.CANCELLED) == ([11, 9, 8, 6], 4)
    assert await listed(2, import_type="RESULT") == ([7, 1], 2)
    assert await listed(1, sorting=ImportSorting.OLDEST) == ([0, 3, 6, 9], 4)
    name = orders[0].filename
    assert await listed(1, text=name[1:].upper()) == ([9, 6, 3, 0], 4)
    assert await listed(1, text=name[1:-2] + "%", sorting=ImportSorting.FILENAME) == ([], 0)
    assert await listed(1, by=orders[0].by, context_id=999) == ([], 0)

    for most, total, has_more in ((3, 3, True), (4, 4, False), (5, 4, False)):
        some = await views.list([1], size=2, page=1, most_counted=most)
        assert [each.uuid for each in some.items] == [orders[3].uuid, orders[0].uuid]
        assert (some.total, some.has_more) == (total, has_more)


async def test_every_change_raises_the_revision(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    seen = [await views.changed(sheet.uuid)]
    await sheets.save_total(sheet.uuid, 7)
    seen.append(await views.changed(sheet.uuid))
    await sheets.save_total(sheet.uuid, 7)
    assert await views.changed(sheet.uuid) == seen[-1]
    await sheet.write(Runner("k:1"))
    seen.append(await views.changed(sheet.uuid))
    await sheet.end()
    seen.append(await views.changed(sheet.uuid))
    assert seen == sorted(set(seen), key=str)
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert (row.revision, row.total) == (seen[-1], 7)


@pytest.mark.parametrize("outcome", [None, *Outcome])
async def test_results_are_paged_by_outcome(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews, outcome: Outcome
) -> None:
    await (await opened(sheets, club)).write(Runner("k:0", "x"), Runner("k:1", "x"))
    sheet = await opened(sheets, club)
    kinds = [Runner("k:0", "x"), Runner("k:1", "y"), Runner("k:2", "z"), Runner("k:3", "\0")]
    names = ["SKIPPED", "UPDATED", "CREATED", "ERROR"]
    await sheet.write(*kinds)
    await sheet.write(Runner("k:4"), Runner("k:5", "\0"), number=1, line=6)
    expected = [*zip(range(2, 6), names, strict=True), (6, "CREATED"), (7, "ERROR")]
    wanted = [row for row in expected if outcome is None or row[1] == outcome.value]
    found = await views.results(sheet.uuid, outcome=outcome)
    assert [(row.line, row.outcome.value) for row in found.items] == wanted
    assert found.total == len(wanted)
    second = await views.results(sheet.uuid, outcome=outcome, page=1, size=1)
    assert [row.line for row in second.items] == [line for line, _ in wanted[1:2]]
