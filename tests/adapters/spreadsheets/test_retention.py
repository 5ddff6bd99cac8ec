"""What is no longer kept goes; a trail without personal data stays."""

from datetime import timedelta

from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database
from adapters.database.models.every import metadata
from stack.sample_club import SampleClub
from tests.support.spreadsheets.store import (
    NOW,
    Runner,
    StoredSpreadsheet,
    opened,
    people,
    record,
    table,
    undo_order,
)
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.fields import FoundValue, ParkedRow, Preview
from workflows.spreadsheets.mappings import (
    ColumnMapping,
    DecisionRecord,
    Layout,
    ReviewCounts,
    SpreadsheetState,
    UndoState,
)
from workflows.spreadsheets.reviews import CloseReview, Exclude, ReviewEffect, ReviewOperation
from workflows.spreadsheets.runs import Analysis, RetentionInput, RowCounts

ANNA = Runner("email:anna", "Ahrens", "Aachen")
DAYS = timedelta(days=1)
REPORT = BlobRef(name="spreadsheets/report.xlsx", size=10)
STAGED = BlobRef(name="spreadsheets/rows", size=20)


async def filled(sheets: SqlSpreadsheetStore, club: SampleClub, state: str) -> StoredSpreadsheet:
    """An import with something in every table."""
    sheet = await opened(sheets, club)
    column = ColumnMapping(id=1, index=0, header="Ahrens, private")
    preview = Preview("csv", [], [(1, ["Ahrens"])], [["Ahrens"]])
    analysis = Analysis(layout=Layout(header_line=1), columns=(column,), fields=())
    await sheets.save_analysis(sheet.order, analysis, preview, 0)
    await sheets.save_values(sheet.uuid, [FoundValue("CATEGORY", "Ahrens", 1)])
    await sheets.save_file(sheet.uuid, STAGED)
    await sheets.save_file(sheet.uuid, STAGED)
    await sheet.write(ANNA, parked=[ParkedRow(3, 9)])
    line = DecisionRecord(
        kind="value", subject="CATEGORY: Ahrens", decision="Junior", by="anna", at=NOW
    )
    ends, reason = state in ("COMPLETED", "FAILED", "CANCELLED"), "Ahrens is missing"
    shown = "PROCESSING" if ends else state
    await sheets.record(record(sheet.order, 1, shown, reason=reason, trail=(line,)))
    if ends:
        await sheet.end(state, report=REPORT, reason=reason)
    return sheet


async def test_a_change_that_was_only_proposed_does_not_stay(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    change = ReviewOperation(id=0, version=0, operation=Exclude(rows=(4,)), by="anna", at=NOW)
    await sheets.reviews.open(sheet.uuid, ReviewCounts(rows=9))
    ids = [await sheets.reviews.propose(sheet.uuid, change) for _ in range(3)]
    newer = change.model_copy(update={"at": NOW + DAYS})
    ids.append(await sheets.reviews.propose(sheet.uuid, newer, "key"))
    applied = ids[1]
    assert applied is not None
    line = DecisionRecord(kind="correction", subject="row 4", decision="left out", by="a", at=NOW)
    counts = await sheets.reviews.apply(
        sheet.uuid, applied, line, 2, ReviewEffect(rows=1), (), ([4], None), (), 1
    )
    assert counts is not None and counts.excluded == 1
    assert await sheets.purge_proposals(NOW, 10) == 0
    assert await sheets.purge_proposals(NOW + DAYS, 1) == 1
    assert await sheets.purge_proposals(NOW + DAYS, 10) == 1
    left = await table(database, "spreadsheet_review_operations", "id version")
    assert [tuple(row) for row in left] == [(ids[1], 2), (ids[3], None)]
    work = CloseReview(order=sheet.order, columns=(), version=3, by="anna", at=NOW)
    await sheets.reviews.close(work, (), ())
    left = await table(database, "spreadsheet_review_operations", "id version")
    assert [tuple(row) for row in left] == [(ids[1], 2)]


async def test_a_purged_import_keeps_no_personal_data(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await filled(sheets, club, "COMPLETED")
    files = await sheets.files_of(sheet.uuid)
    assert list(files) == [sheet.order.source, STAGED, REPORT]
    assert await sheets.purge(sheet.uuid, NOW + 8 * DAYS)
    assert not await sheets.purge(sheet.uuid, NOW + 9 * DAYS)
    kept = {
        name: await table(database, name, " ".join(metadata.tables[name].c.keys()))
        for name in metadata.tables
        if name.startswith("spreadsheet_") or name == "decisions"
    }
    journal = kept.pop("spreadsheet_journal")
    assert len(journal) == 1
    assert {name for name, rows in kept.items() if rows} == {"spreadsheet_imports", "decisions"}
    for secret in ("hrens", "anna", "runners", "rows", "report"):
        assert secret not in repr(kept)
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert (row.state, row.purged_at) == (SpreadsheetState.COMPLETED, NOW + 8 * DAYS)
    assert row.counts == RowCounts(created=1)
    trail = await views.decisions(sheet.uuid)
    (line,) = trail.items
    assert (line.kind, line.subject, line.decision, line.by, line.at) == (
        *("value", "CATEGORY", "Junior", "person 1"),
        NOW,
    )
    assert list(await sheets.files_of(sheet.uuid)) == []
    assert (await views.results(sheet.uuid)).total == 0
    assert [key for key, *_ in await people(database)] == ["email:anna"]


async def test_nothing_reappears_after_a_purge(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await filled(sheets, club, "CELL_MAPPING")
    assert await sheets.purge(sheet.uuid, NOW + 91 * DAYS)
    await sheets.save_values(sheet.uuid, [FoundValue("CATEGORY", "Ahrens", 1)])
    await sheet.write(ANNA, number=1)
    await sheet.end("CANCELLED", reason="Ahrens was not found", report=REPORT)
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert (row.state, row.reason, row.report) == (SpreadsheetState.CANCELLED, None, None)
    assert (await sheets.cell_summary(sheet.uuid)).total == 0
    assert await table(database, "spreadsheet_results", "line") == []


async def test_an_import_can_be_undone_after_its_purge(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await filled(sheets, club, "COMPLETED")
    await sheets.purge(sheet.uuid, NOW + 8 * DAYS)
    assert (await sheet.undo()).state is UndoState.UNDONE
    assert await people(database) == []
    view = await views.undo(sheet.uuid)
    assert view is not None
    assert view.by == "berta"
    assert await sheets.purge_journals(NOW + 40 * DAYS, 10) == 1
    trail = (await views.decisions(sheet.uuid)).items
    assert [(line.kind, line.by) for line in trail] == [
        ("undo", "person 2"),
        ("value", "person 1"),
    ]


async def test_an_import_that_is_being_undone_is_not_purged(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await filled(sheets, club, "COMPLETED")
    late = NOW + 29 * DAYS
    assert await sheets.begin_undo(undo_order(sheet.order, requested_at=late)) is None
    page = await sheets.expired(RetentionInput(), NOW + 60 * DAYS)
    assert page.uuids == ()
    assert not await sheets.purge(sheet.uuid, NOW + 60 * DAYS)
    assert await sheets.purge_journals(NOW + 60 * DAYS, 10) == 0
    assert (await sheet.undo()).state is UndoState.UNDONE
    assert await people(database) == []


async def test_imports_are_due_by_state_and_age(
    sheets: SqlSpreadsheetStore, club: SampleClub
) -> None:
    states = ("COLUMN_MAPPING", "CELL_MAPPING", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED")
    imports = {state: await filled(sheets, club, state) for state in states}
    imports["UPLOADED"] = await opened(sheets, club)
    order = RetentionInput()

    async def due(days: int) -> tuple[set[str], set[str]]:
        page = await sheets.expired(order, NOW + days * DAYS)
        names = {sheet.uuid: state for state, sheet in imports.items()}
        return {names[id] for id in page.uuids}, {names[id] for id in page.waiting}

    assert await due(7) == (set(), set())
    ended = {"COMPLETED", "FAILED", "CANCELLED"}
    assert await due(8) == (ended, set())
    waiting = {"UPLOADED", "COLUMN_MAPPING", "CELL_MAPPING"}
    assert await due(91) == (ended | waiting, waiting)
    assert not await sheets.purge(imports["PROCESSING"].uuid, NOW + 200 * DAYS)
    for state in ended:
        assert await sheets.purge(imports[state].uuid, NOW + 91 * DAYS)
    assert await due(91) == (waiting, waiting)
    first = await sheets.expired(RetentionInput(page=1), NOW + 91 * DAYS)
    assert first.uuids == (imports["UPLOADED"].uuid,)


async def test_an_import_in_use_is_not_due(sheets: SqlSpreadsheetStore, club: SampleClub) -> None:
    sheet = await filled(sheets, club, "COLUMN_MAPPING")
    line = DecisionRecord(kind="reassign", by="berta", at=NOW + 80 * DAYS)
    await sheets.record(record(sheet.order, 2, "COLUMN_MAPPING", trail=(line,)))
    assert (await sheets.expired(RetentionInput(), NOW + 91 * DAYS)).uuids == ()
    assert (await sheets.expired(RetentionInput(), NOW + 171 * DAYS)).uuids == (sheet.uuid,)


async def test_images_are_removed_later_than_results(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    imports = [await filled(sheets, club, "COMPLETED") for _ in range(3)]
    unfinished = await filled(sheets, club, "PROCESSING")
    undoing = await filled(sheets, club, "COMPLETED")
    assert await sheets.begin_undo(undo_order(undoing.order)) is None
    assert await sheets.purge_journals(NOW, 10) == 0
    assert await sheets.purge_journals(NOW + DAYS, 2) == 2
    assert await sheets.purge_journals(NOW + DAYS, 2) == 1
    assert await sheets.purge_journals(NOW + DAYS, 2) == 0
    left = await table(database, "spreadsheet_journal", "import_id")
    assert len(left) <= 2
    assert "removed" in str(await sheets.begin_undo(undo_order(imports[0].order)))
    assert not await sheets.purge(unfinished.uuid, NOW)


async def test_uploads_that_became_no_import_are_found(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    name = sheet.order.source.name
    await views.note_upload(sheet.uuid, name, "anna", NOW)
    await views.note_upload("u2", "spreadsheets/u2/file", "anna", NOW + DAYS)
    await views.note_upload("u2", "spreadsheets/u2/file", "anna", NOW + DAYS)
    await views.note_upload("u3", "spreadsheets/u3/file", "anna", NOW + 3 * DAYS)
    assert await views.created_since("anna", NOW - DAYS) == 4
    assert await views.created_since("anna", NOW + 2 * DAYS) == 1
    assert await views.created_since("berta", NOW - DAYS) == 0
    await sheets.open(sheet.order, "spreadsheet/again", NOW)
    assert await sheets.stale_uploads(NOW + 2 * DAYS, 10) == [("u2", "spreadsheets/u2/file")]
    await sheets.forget_upload("spreadsheets/u2/file")
    await sheets.forget_upload("spreadsheets/u2/file")
    assert await sheets.stale_uploads(NOW + 4 * DAYS, 10) == [("u3", "spreadsheets/u3/file")]
