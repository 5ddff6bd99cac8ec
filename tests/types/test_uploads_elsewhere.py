"""Uploads whose rows go into a table of a team, or into a file."""

import json
from datetime import timedelta
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError

from activities.spreadsheets import row_store, undo_store
from activities.spreadsheets.rows import SpreadsheetFiles
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.http import signature
from adapters.signed_webhook import SignedWebhook
from adapters.types.files import read_type
from tests.support.imports.activities import Killed, environment
from tests.support.spreadsheets.activities import NOW, SpreadsheetSetup, StagedSpreadsheet
from tests.support.webhook import receiving
from tests.types.conftest import TOOLS, Erp, Installation, tools
from tests.types.dying_writer import CHUNKS, handed_over, staged, stock
from tests.types.dying_writer import ROWS as CHUNK
from tests.types.test_accepted_files import SECRET
from tests.types.test_targets import CHANGED, OLD, STOCK, killed
from tests.types.test_uploads import undone, uploaded
from workflows.shared.errors import PERMANENT, TABLE_CHANGED, RuleViolation
from workflows.spreadsheets.mappings import SpreadsheetState, UndoState
from workflows.spreadsheets.runs import HandOverInput, RowCounts

ROWS = "tool_no,name,price,amount\nT-1,Wrench,149.90,\nT-2,Stand,38,4\nT-3,Bomb,1,1\n"
AFTER = [("T-1", "Wrench", "149.90", 2), ("T-2", "Stand", "38.00", 4)]


@pytest_asyncio.fixture
async def sheets(erp: Erp, tmp_path: Path) -> SpreadsheetSetup:
    database = erp.installation.database
    await erp.installation.types.apply(tools())
    store, types = SqlSpreadsheetStore(database, erp.targets), SheetTypes(database)
    return SpreadsheetSetup(tmp_path, database, store, types=types)


async def stored(erp: Erp) -> list[tuple[object, ...]]:
    return await erp.sql(
        'SELECT article_no, name, price::text, amount FROM stock."Tools" ORDER BY 1'
    )


async def test_an_upload_changes_a_table_of_a_team_and_is_undone(
    erp: Erp,
    sheets: SpreadsheetSetup,
) -> None:
    await erp.sql(
        'INSERT INTO stock."Tools" (article_no, name, price, amount)'
        " VALUES ('T-1', 'Key', 149.9, 2)"
    )
    before = await stored(erp)
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    done = await sheet.process()
    # The blank amount leaves what is there; their trigger refuses the last row.
    assert done.counts == RowCounts(created=1, updated=1, error=1)
    assert await stored(erp) == AFTER
    [(line, message)] = await refused(sheets)
    assert (line, message) == (4, "no bombs here")
    assert await differences(sheets) == [("name", "Key", "Wrench")]
    again = await uploaded(sheets, tools(), ROWS, project_id="P1")
    assert (await again.process()).counts == RowCounts(skipped=2, error=1)
    for each in (again, sheet):
        await each.finish()
    result = await undone(sheet)
    assert (result.counts.deleted, result.counts.restored) == (1, 1)
    assert await stored(erp) == before
    assert await erp.sql("SELECT run FROM stock.docflow_progress WHERE run NOT LIKE '%undo%'") == []


async def test_rules_see_what_a_table_of_a_team_holds(erp: Erp, sheets: SpreadsheetSetup) -> None:
    declared = tools(f"{TOOLS}rules:\n- compare: [amount, '<=', price]\n")
    await erp.installation.types.apply(declared)
    await erp.sql(
        'INSERT INTO stock."Tools" (article_no, name, price, amount)'
        " VALUES ('T-1', 'Key', 10, 2), ('T-2', 'Saw', 10, 2)"
    )
    rows = "tool_no,name,amount\nT-1,Key,11\nT-2,Saw,10\nT-3,Axe,12\n"
    reason = "is more than price 10 (stored: price 10)"
    sheet = await uploaded(sheets, declared, rows, project_id="P1")
    assert (await sheet.process()).counts == RowCounts(created=1, updated=1, error=1)
    [(line, message)] = await refused(sheets)
    assert (line, message) == (2, f"Amount: {reason}")
    done = await erp.installation.imported("tools", rows.encode(), max_rejected_share=1)
    assert (done.counts.rejected, done.counts.unchanged) == (1, 2)
    assert [(each.line, each.reason) for each in done.problems] == [(2, reason)]


@pytest.mark.parametrize(("sql", "said"), CHANGED.values(), ids=CHANGED.keys())
async def test_an_upload_parks_if_their_table_is_another_one(
    erp: Erp, sheets: SpreadsheetSetup, sql: str, said: str
) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    await erp.sql(sql.format('stock."Tools"'))
    with pytest.raises(ApplicationError, match=said) as error:
        await sheet.process()
    is_there = "no table" not in said
    assert error.value.type == (TABLE_CHANGED if is_there else PERMANENT)
    assert ("keeps the version of the type that it began with" in error.value.message) is is_there
    added = '`ALTER TABLE "stock"."Tools" ADD COLUMN "price" NUMERIC(20, 6)`'
    assert (added in error.value.message) is ("no column" in said)
    assert await sheets.count("spreadsheet_results") == 0


async def refused(sheets: SpreadsheetSetup) -> list[tuple[object, ...]]:
    rows = await sheets.select("spreadsheet_results", "line message")
    return [row for row in rows if row[1] and "up to date" not in row[1]]


async def differences(sheets: SpreadsheetSetup) -> list[tuple[object, ...]]:
    return await sheets.select("spreadsheet_differences", "column_name before after")


async def test_an_undo_leaves_rows_that_a_team_has_changed(
    erp: Erp,
    sheets: SpreadsheetSetup,
) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    await sheet.process()
    await sheet.finish()
    with pytest.raises(RuleViolation, match="there is no preview"):
        await sheets.store.preview_undo(sheet.order.uuid)
    await erp.sql("UPDATE stock.\"Tools\" SET price = 1 WHERE article_no = 'T-2'")
    result = await undone(sheet)
    assert (result.counts.deleted, result.counts.left_alone) == (1, 1)
    assert result.problems == ("row 3: tools T-2 was changed since",)
    await erp.sql("UPDATE stock.\"Tools\" SET price = 38 WHERE article_no = 'T-2'")
    later = NOW + timedelta(days=1)
    assert (await undone(sheet, later)).counts.deleted == 2
    assert await stored(erp) == []


async def test_an_undo_takes_back_some_rows_there(erp: Erp, sheets: SpreadsheetSetup) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    await sheet.process()
    await sheet.finish()
    first, *_ = await stored(erp)
    some = await undone(sheet, NOW, 3)
    assert (some.state, some.counts.deleted) == (UndoState.UNDONE_PARTLY, 1)
    assert await stored(erp) == [first]
    rest = await undone(sheet, NOW + timedelta(days=1))
    assert (rest.state, rest.counts.deleted) == (UndoState.UNDONE, 2)
    assert await stored(erp) == []


async def test_a_dry_run_writes_nothing_there(erp: Erp, sheets: SpreadsheetSetup) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    dry = StagedSpreadsheet(
        sheets, sheet.order.model_copy(update={"dry_run": True}), sheet.analysis, sheet.staged
    )
    assert (await dry.process()).counts == RowCounts(created=2, error=1)
    assert await stored(erp) == []
    assert await erp.sql("SELECT run FROM stock.docflow_progress") == []


async def test_a_kill_between_both_commits_writes_rows_once(
    erp: Erp,
    sheets: SpreadsheetSetup,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    write = erp.targets.write

    async def killed(*args: object, **named: object) -> None:
        await write(*args, **named)  # type: ignore[arg-type]
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(erp.targets, "write", killed)
        with pytest.raises(Killed):
            await sheet.process()
    assert await stored(erp) == [("T-1", "Wrench", "149.90", None), ("T-2", "Stand", "38.00", 4)]
    done = await sheet.process()
    assert done.counts == RowCounts(created=2, error=1)
    await sheet.finish()
    assert (await undone(sheet)).counts.deleted == 2
    assert await stored(erp) == []


async def test_an_attempt_with_other_rows_replaces_the_one_that_was_killed(
    erp: Erp, sheets: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    other = "tool_no,name,price,amount\nT-9,Saw,1,\nT-2,Stand,38,4\n"
    with monkeypatch.context() as patched:
        patched.setattr(row_store, "keep_differences", AsyncMock(side_effect=Killed))
        with pytest.raises(Killed):
            await sheet.process()
    assert [row[0] for row in await stored(erp)] == ["T-1", "T-2"]
    again = await uploaded(sheets, tools(), other, project_id="P1")
    found = StagedSpreadsheet(sheets, sheet.order, again.analysis, again.staged)
    assert (await found.process()).counts == RowCounts(created=2)
    assert [row[0] for row in await stored(erp)] == ["T-2", "T-9"]


async def test_an_undo_takes_back_what_docflow_could_not_note(
    erp: Erp, sheets: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    with monkeypatch.context() as patched:
        patched.setattr(row_store, "keep_differences", AsyncMock(side_effect=Killed))
        with pytest.raises(Killed):
            await sheet.process()
    await sheet.finish(SpreadsheetState.CANCELLED)
    assert len(await stored(erp)) == 2
    await undone(sheet)
    assert await stored(erp) == []
    assert await erp.sql("SELECT run FROM stock.docflow_progress") == []


async def test_a_kill_between_both_commits_of_an_undo_takes_rows_back_once(
    erp: Erp, sheets: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    await erp.sql(
        'INSERT INTO stock."Tools" (article_no, name, price, amount)'
        " VALUES ('T-1', 'Key', 149.9, 2)"
    )
    before = await stored(erp)
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    await sheet.process()
    await sheet.finish()
    with monkeypatch.context() as patched:
        patched.setattr(undo_store, "_report", AsyncMock(side_effect=Killed))
        with pytest.raises(Killed):
            await undone(sheet)
    assert await stored(erp) == before
    done = await undone(sheet)
    assert (done.state, done.counts.left_alone) == (UndoState.UNDONE, 0)
    assert (done.counts.deleted, done.counts.restored) == (1, 1)


CHUNK_KILLS = [("write", chunk) for chunk in range(1, CHUNKS + 1)]
# The first file is the upload, the second one its rows.
STAGING_KILLS = [("save_total", 1), ("save_file", 1), ("upload", 2)]


@pytest.mark.parametrize(
    ("kind", "step", "last"),
    [
        *(("upload", step, last) for step, last in CHUNK_KILLS),
        *(("upload", "take_back", chunk) for chunk in range(1, CHUNKS + 1)),
        *(("own", step, last) for step, last in CHUNK_KILLS),
        *(("own", "undo_chunk", chunk) for chunk in range(1, CHUNKS + 1)),
        *(("own", step, last) for step, last in STAGING_KILLS),
    ],
)
async def test_an_upload_killed_at_any_chunk_writes_each_row_once(
    erp: Erp, kind: str, step: str, last: int
) -> None:
    declared = stock(kind)
    await erp.sql(STOCK)
    await erp.installation.types.apply(declared)
    await killed(erp, kind, step, last, "http://127.0.0.1:1")
    folder, database = erp.installation.ports.folder, erp.installation.database
    sheet = await staged(database, erp.targets, folder, kind)
    rows = CHUNKS * (CHUNK - 1)
    if step not in ("take_back", "undo_chunk"):
        assert (await sheet.process()).counts == RowCounts(created=rows, error=CHUNKS)
        await sheet.finish()
        if kind == "upload":
            seen = "SELECT change, count(*), count(DISTINCT article) FROM seen GROUP BY 1"
            assert await erp.sql(seen) == [("INSERT", rows, rows)]
        else:
            assert await erp.installation.rows(declared, "version") == [(1,)] * rows
    done = await undone(sheet)
    assert (done.state, done.problems) == (UndoState.UNDONE, ())
    assert (done.counts.deleted, done.counts.left_alone) == (rows, 0)
    if kind == "upload":
        assert await erp.sql("SELECT project_id, article FROM stock ORDER BY 1") == OLD
        assert await erp.sql("SELECT count(*) FROM seen WHERE change = 'DELETE'") == [(rows,)]
        assert await erp.sql("SELECT run FROM public.docflow_progress") == []
    else:
        assert await erp.installation.rows(declared, "version") == []


@pytest.mark.parametrize(
    ("step", "last"),
    [*STAGING_KILLS, *CHUNK_KILLS, ("upload", 3), ("tell", 1), ("forget_accepted", 1)],
)
async def test_an_upload_killed_at_any_step_hands_each_row_over_once(
    erp: Erp, step: str, last: int
) -> None:
    await erp.installation.types.apply(stock("handed"))
    folder, database = erp.installation.ports.folder, erp.installation.database
    async with receiving() as receiver:
        await killed(erp, "handed", step, last, receiver.url)
        sheet = await staged(database, erp.targets, folder, "handed")
        done = await sheet.process()
        file = await handed_over(sheet, done.counts, receiver.url)
    await sheet.finish()
    path = folder / "accepted"
    await sheet.setup.blobs.download(file.name, path)
    articles = [json.loads(line)["article"] for line in path.read_text().splitlines()]
    refused = range(CHUNK - 1, CHUNKS * CHUNK, CHUNK)
    assert articles == [f"A-{n}" for n in range(CHUNKS * CHUNK) if n not in refused]
    assert done.counts == RowCounts(created=len(articles), error=CHUNKS)
    # A second call is the first one again.
    assert len(receiver.requests) == (2 if step == "tell" else 1)
    assert len({(each[1]["webhook-id"], each[2]) for each in receiver.requests}) == 1


ODD = """
CREATE TABLE stock.odd (
  id numeric PRIMARY KEY, name text, at time(0)
);
CREATE FUNCTION stock.loud() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.name = upper(NEW.name); RETURN NEW;
END $$;
CREATE TRIGGER loud BEFORE INSERT OR UPDATE ON stock.odd
  FOR EACH ROW EXECUTE FUNCTION stock.loud();
INSERT INTO stock.odd VALUES (1, 'A', '10:00');
"""
ODDITIES = """
name: oddities
title: Oddities
key: [id]
target: {database: erp, table: stock.odd, columns: {project_id: "-"}}
fields:
  id: {kind: code, required: true}
  name: {}
  at: {kind: time}
"""


async def test_what_a_table_makes_of_values_is_not_guessed(
    erp: Erp, sheets: SpreadsheetSetup
) -> None:
    await erp.sql(ODD)
    declared = read_type(ODDITIES, "oddities.yaml")
    await erp.installation.types.apply(declared)
    text = "id,name,at\n1,a,\n7,b,\n7.0,c,\n8,d,10:00:01.5\n"
    sheet = await uploaded(sheets, declared, text, project_id="P1")
    done = await sheet.process()
    # The trigger makes of `a` what is there; 7.0 is 7; the seconds would be rounded.
    assert done.counts == RowCounts(created=1, skipped=1, error=2)
    reasons = dict(await refused(sheets))
    assert "has the key of an earlier row" in str(reasons[4])
    assert "cannot be kept whole as time(0)" in str(reasons[5])
    await sheet.finish()
    assert (await undone(sheet)).counts.deleted == 1
    assert await erp.sql("SELECT id::text, name FROM stock.odd") == [("1", "A")]


async def test_a_row_that_a_team_has_removed_is_taken_back(
    erp: Erp, sheets: SpreadsheetSetup
) -> None:
    sheet = await uploaded(sheets, tools(), ROWS, project_id="P1")
    await sheet.process()
    await sheet.finish()
    await erp.sql("DELETE FROM stock.\"Tools\" WHERE article_no = 'T-2'")
    assert (await undone(sheet)).counts.left_alone == 0


READINGS = """
name: readings
title: Readings
key: [meter]
unmapped: keep
target: {file: jsonl, webhook: loader}
fields:
  meter: {kind: code, required: true}
  day: {kind: date}
  value: {kind: decimal, minimum: 0}
"""


async def test_an_upload_becomes_a_file_and_a_signed_call(
    installation: Installation, tmp_path: Path
) -> None:
    declared = read_type(READINGS, "readings.yaml")
    await installation.types.apply(declared)
    database = installation.database
    store, types = SqlSpreadsheetStore(database), SheetTypes(database)
    sheets = SpreadsheetSetup(tmp_path, database, store, types=types)
    text = "meter,day,value,Note\nM-1,2025-01-02,1.50,=x\nM-2,,-1,\nM-3,,,\n"
    sheet = await uploaded(sheets, declared, text, project_id="P1")
    done = await sheet.process()
    assert done.counts == RowCounts(created=2, error=1)
    assert done.hands_over
    async with receiving() as receiver:
        receivers = {"loader": SignedWebhook(receiver.url, (SECRET,))}
        files = SpreadsheetFiles(store, sheets.blobs, types, sheets.scratch, receivers)
        work = HandOverInput(order=sheet.order, counts=done.counts)
        file = await environment().run(files.hand_over, work)
        again = await environment().run(files.hand_over, work)
        assert (again.name, again.size) == (file.name, file.size)
    await sheet.finish()
    path = tmp_path / "file"
    await sheets.blobs.download(file.name, path)
    empty = {"project_id": "P1", "day": None, "value": None, "other": None}
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {**empty, "meter": "M-1", "day": "2025-01-02", "value": "1.5", "other": {"Note": "=x"}},
        {**empty, "meter": "M-3"},
    ]
    [(_, headers, body)] = receiver.requests
    told = json.loads(body)["data"]
    assert told["import_id"] == f"spreadsheet/{sheet.order.uuid}"
    assert told["counts"] == {"accepted": 2, "rejected": 1}
    assert told["file"] == {"name": file.name, "size": file.size, "sha256": file.sha256}
    given = (headers["webhook-id"], int(headers["webhook-timestamp"]))
    assert headers["webhook-signature"] == signature(SECRET, *given, body)
    with pytest.raises(ApplicationError, match="go into a file"):
        await undone(sheet)


async def test_rows_that_a_file_lacks_are_removed_there_and_put_back(
    erp: Erp, sheets: SpreadsheetSetup
) -> None:
    await erp.sql("CREATE TABLE stock.items (project text, item text, PRIMARY KEY (project, item))")
    await erp.sql("INSERT INTO stock.items VALUES ('P1', 'A'), ('P1', 'B'), ('P2', 'B')")
    declared = read_type(
        "name: items\ntitle: Items\nkey: [item]\nstrategy: replace\n"
        "target: {database: erp, table: stock.items, columns: {project_id: project}}\n"
        "fields:\n  item: {kind: code, required: true}\n",
        "items.yaml",
    )
    await erp.installation.types.apply(declared)
    sheet = await uploaded(sheets, declared, "item\nA\nC\n", project_id="P1")
    for _ in range(2):
        assert (await sheet.process()).note == "1 stored row that the file lacks was removed"
    found = "SELECT project, item FROM stock.items ORDER BY 1, 2"
    assert await erp.sql(found) == [("P1", "A"), ("P1", "C"), ("P2", "B")]
    await sheet.finish()
    result = await undone(sheet)
    assert (result.counts.deleted, result.counts.restored) == (1, 1), result
    assert await erp.sql(found) == [("P1", "A"), ("P1", "B"), ("P2", "B")]
