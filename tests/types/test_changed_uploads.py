"""Uploads of declared types whose version, columns or table are other ones by now."""

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text
from temporalio.exceptions import ApplicationError

from adapters.types.files import read_type
from tests.support.imports.activities import message_of
from tests.support.spreadsheets.activities import (
    NOW,
    SpreadsheetSetup,
)
from tests.types.conftest import Installation
from tests.types.test_uploads import SUPPLIERS, undo_of, undone, uploaded
from workflows.imports.runs import Closing, ImportState
from workflows.shared.errors import TABLE_CHANGED, RuleViolation
from workflows.spreadsheets.runs import FailedUndo, RowCounts

STAND = """
name: stand
title: Stand
key: [nr]
unmapped: keep
fields:
  nr: {kind: code, required: true}
  name: {}
  fee: {kind: FEE}
"""


async def test_an_undo_keeps_what_a_later_version_holds(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    first = read_type(SUPPLIERS, "suppliers.yaml")
    await installation.types.apply(first)
    sheet = await uploaded(sheets, first, "supplier\nACME\nGlobex\n")
    await sheet.process()
    await sheet.finish()
    await installation.types.apply(read_type(SUPPLIERS + "  town: {}\n", "suppliers.yaml"))
    await installation.imported("suppliers", b"supplier,town\nACME,Bonn\n")
    result = await undone(sheet)
    assert result.problems == ("row 2: suppliers ACME was changed since",)
    assert await installation.rows(first, "supplier") == [("ACME",)]


RENAMED = """
name: fees
title: Fees
strategy: replace
key: [nr]
fields:
  nr: {required: true}
  price: {kind: money}
  note: {}
  town: {}
"""


@pytest.mark.parametrize(
    ("first", "then", "now"),
    [
        ("price: {kind: money}", "cost: {kind: money, was: price}", "cost"),
        ("price: {kind: money}", "cost: {was: price}", "cost"),
        ("nr:", "number:", "price"),
    ],
    ids=["a value", "a value that is wider by now", "a part of the key"],
)
async def test_an_undo_knows_columns_by_their_present_names(
    installation: Installation, sheets: SpreadsheetSetup, first: str, then: str, now: str
) -> None:
    async def stored() -> list[tuple[Any, ...]]:
        query = text(f"SELECT {now}::numeric::int, note FROM docflow_types.fees ORDER BY 1")
        async with installation.database.reading() as connection:
            return [tuple(row) for row in await connection.execute(query)]

    declared = read_type(RENAMED, "fees.yaml")
    await installation.types.apply(declared)
    for rows in ("1;1;a;\n2;2;b;Ulm\n", "1;5;a;\n3;3;c;Bonn\n"):
        sheet = await uploaded(sheets, declared, f"nr;price;note;town\n{rows}", project_id="P1")
        await sheet.process()
        await sheet.finish()
    renamed = RENAMED.replace(first, then)
    if "number" in then:
        renamed = renamed.replace("[nr]", "[number]").replace("number: {", "number: {was: nr, ")
    await installation.types.apply(read_type(renamed, "fees.yaml"))
    # The name may go from the file, and a column may be dropped.
    newest = renamed.replace(", was: price", "").replace("was: price", "").replace("was: nr, ", "")
    newest = newest.replace("  town: {}\n", "")
    await installation.types.apply(read_type(newest, "fees.yaml"), allow_loss=True)
    assert await stored() == [(3, "c"), (5, "a")]
    counts = (await undone(sheet)).counts
    assert (counts.deleted, counts.restored, counts.left_alone) == (1, 2, 0)
    assert await stored() == [(1, "a"), (2, "b")]


async def test_a_table_that_open_imports_need_is_not_dropped(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    declared = read_type(RENAMED, "fees.yaml")
    await installation.types.apply(declared)
    sheet = await uploaded(sheets, declared, "nr;price\n1;1\n", project_id="P1")
    await sheet.collect()
    said = r"docflow_types.fees is needed by open imports: test \(uploaded\).*without --drop-table"
    with pytest.raises(RuleViolation, match=said):
        await installation.types.remove("fees", drop_table=True, allow_loss=True)
    assert await installation.database_tables("fees") and await installation.types.in_force()
    await sheet.finish()
    await installation.imported("fees", b"nr,price\n1,1\n")
    with pytest.raises(RuleViolation, match=r"test \(running\)"):
        await installation.types.remove("fees", drop_table=True, allow_loss=True)
    closing = Closing(message=message_of("fees", blob_name="in/file"), state=ImportState.FAILED)
    await installation.store.close(closing, "test")
    assert (await installation.types.remove("fees", drop_table=True, allow_loss=True)).dropped


async def test_an_undo_parks_if_its_table_went(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    declared = read_type(RENAMED, "fees.yaml")
    await installation.types.apply(declared)
    sheet = await uploaded(sheets, declared, "nr;price\n1;1\n", project_id="P1")
    await sheet.process()
    await sheet.finish()
    begun = undo_of(sheet)
    assert await sheets.store.begin_undo(begun) is None
    await installation.types.apply(
        read_type(RENAMED.replace("money", "date"), "fees.yaml"), allow_loss=True
    )
    with pytest.raises(ApplicationError, match=r"price .* Apply the earlier kind again") as other:
        await undone(sheet)
    assert other.value.type == TABLE_CHANGED
    await installation.types.remove("fees", drop_table=True, allow_loss=True)
    with pytest.raises(ApplicationError, match="fees is gone") as gone:
        await undone(sheet)
    assert gone.value.type == TABLE_CHANGED
    failed = FailedUndo(uuid=begun.uuid, reason=gone.value.message, by="anna", at=NOW)
    await sheets.store.fail_undo(failed)
    assert await sheets.select("spreadsheet_imports", "undo_state") == [("FAILED",)]
    # Nothing has begun if it is refused at once.
    refused = await sheets.store.begin_undo(begun)
    assert refused is not None and "there is nothing to take back" in refused
    assert await sheets.select("spreadsheet_imports", "undo_state") == [("FAILED",)]


async def test_both_doors_keep_every_cell_that_means_no_field(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    declared = read_type(STAND.replace("FEE", "money"), "stand.yaml")
    await installation.types.apply(declared)
    long = "x" * 2_500
    content = f"nr;Note;name;Note;Note (D)\n1;;A;b;\n2;a;B;b;c\n3;{long};C;;\n"
    sheet = await uploaded(sheets, declared, content, project_id="P1")
    assert (await sheet.process()).counts == RowCounts(created=3)
    await installation.imported("stand", content.encode(), project_id="P2")
    kept = [
        {"Note (D)": "b"},
        {"Note": "a", "Note (D)": "b", "Note (D) (E)": "c"},
        {"Note": long},
    ]
    rows = await installation.rows(declared, "project_id", "other")
    assert [other for project, other in rows if project == "P1"] == kept
    assert [other for project, other in rows if project == "P2"] == kept


async def test_further_files_add_to_kept_columns_and_are_undone(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    declared = read_type(STAND.replace("FEE", "money"), "stand.yaml")
    await installation.types.apply(declared)
    before = await uploaded(sheets, declared, "nr;name;Farbe\n1;A;rot\n", project_id="P1")
    await before.process()
    await before.finish()
    sheet = await uploaded(sheets, declared, "nr;name;Ort\n1;B;Ulm\n", project_id="P1")
    assert (await sheet.process()).counts == RowCounts(updated=1)
    await sheet.finish()
    rows = [("1", "B", {"Farbe": "rot", "Ort": "Ulm"})]
    assert await installation.rows(declared, "nr", "name", "other") == rows
    assert (await undone(sheet)).counts.restored == 1
    assert await installation.rows(declared, "nr", "name", "other") == [
        ("1", "A", {"Farbe": "rot"})
    ]


@pytest.mark.parametrize(
    ("kind", "wider", "cell", "there"),
    [
        ("money", "text", "1,50", "1.500000"),
        ("integer", "text", "7", "7"),
        ("boolean", "text", "ja", "true"),
        ("date", "text", "31.12.2024", "2024-12-31"),
        ("time", "text", "09:30", "09:30:00"),
        ("timestamp", "text", "31.12.2024 09:30", "2024-12-31 09:30:00"),
        ("integer", "decimal", "7", "7.000000"),
        ("date", "timestamp", "31.12.2024", "2024-12-31 00:00:00"),
    ],
)
async def test_an_open_upload_goes_on_if_a_field_is_widened(
    installation: Installation,
    sheets: SpreadsheetSetup,
    kind: str,
    wider: str,
    cell: str,
    there: str,
) -> None:
    async def stored() -> list[tuple[Any, ...]]:
        query = text("SELECT nr, name, fee::text FROM docflow_types.stand ORDER BY nr")
        async with installation.database.reading() as connection:
            return [tuple(row) for row in await connection.execute(query)]

    first, then = (read_type(STAND.replace("FEE", each), "stand.yaml") for each in (kind, wider))
    await installation.types.apply(first)
    for rows in (f"1;A;{cell}\n", f"1;B;{cell}\n2;C;{cell}\n3;D;\n"):
        sheet = await uploaded(sheets, first, f"nr;name;fee\n{rows}", project_id="P1")
        if rows.startswith("1;A"):
            await sheet.process()
            await sheet.finish()
    await installation.types.apply(then)
    before = await stored()
    assert before == [("1", "A", there)]
    # Statements were prepared before the change: the first attempt finds that out.
    with suppress(ApplicationError):
        await sheet.process()
    assert (await sheet.process()).counts == RowCounts(created=2, updated=1)
    await sheet.finish()
    assert await stored() == [("1", "B", there), ("2", "C", there), ("3", "D", None)]
    done = (await undone(sheet)).counts
    assert (done.deleted, done.restored, done.left_alone) == (2, 1, 0)
    assert await stored() == before


async def test_an_upload_parks_if_a_column_is_narrower_by_now(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    declared = read_type(STAND.replace("FEE", "text"), "stand.yaml")
    await installation.types.apply(declared)
    sheet = await uploaded(sheets, declared, "nr;name;fee\n1;A;1,50\n", project_id="P1")
    await installation.types.apply(read_type(STAND.replace("FEE", "money"), "stand.yaml"))
    said = r"fee of docflow_types\.stand has another kind .* knows it as TEXT.* and retry$"
    with pytest.raises(ApplicationError, match=said) as parked:
        await sheet.process()
    assert parked.value.type == TABLE_CHANGED
    await installation.types.apply(declared)
    assert (await sheet.process()).counts == RowCounts(created=1)
