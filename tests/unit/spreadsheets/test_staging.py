"""The whole of a file, put aside."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from temporalio.exceptions import ApplicationError

from activities.spreadsheets import staging
from activities.spreadsheets.staging import StagedRows, fetched_rows, staged_name
from adapters.ports.documents import Table
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import SpreadsheetSetup, table
from workflows.shared.cells import Cell
from workflows.shared.errors import UNREADABLE_DOCUMENT
from workflows.spreadsheets.mappings import Layout
from workflows.spreadsheets.runs import SpreadsheetInput, Staged, StageInput


async def staged_rows(setup: SpreadsheetSetup, staged: Staged) -> list[tuple[int, list[Cell]]]:
    path = setup.folder / "fetched"
    await setup.blobs.download(staged.rows.name, path)
    with closing(StagedRows(path)) as rows:
        return [(row.line, list(row.cells)) for row in rows.read()]


async def test_rows_below_the_header_that_hold_anything(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(
        table(["title"], ["a", "b"], ["1", ""], ["", " "], [], ["", "=1+1"], ["\u00a0"])
    )
    staged = await setup.stage(order, Layout(header_line=2))
    assert staged.total == 2
    assert await staged_rows(setup, staged) == [(3, ["1"]), (6, ["", "=1+1"])]
    assert await setup.select("spreadsheet_imports", "total") == [(2,)]


async def test_cells_of_a_workbook_keep_their_types(setup: SpreadsheetSetup) -> None:
    path = setup.folder / "made.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        clock = book.add_format({"num_format": "hh:mm:ss"})
        sheet.write_row(0, 0, ["header"])
        sheet.write_row(1, 0, [1, 1.5, True, "00012"])
        sheet.write_datetime(1, 4, datetime(2024, 2, 29), day)
        sheet.write_datetime(1, 5, datetime(2024, 2, 29, 13, 45, 1), moment)
        sheet.write_number(1, 6, 0.5, clock)
        sheet.write_formula(1, 7, "=1+1", None, 2)
        sheet.write_string(1, 8, "=cmd|' /C calc'!A0")
    order = await setup.upload(path.read_bytes(), filename="t.xlsx")
    staged = await setup.stage(order, Layout(header_line=1))
    ((_, cells),) = await staged_rows(setup, staged)
    expected: list[Cell] = [
        *(1, 1.5, True, "00012", date(2024, 2, 29), datetime(2024, 2, 29, 13, 45, 1)),
        *("12:00:00", 2, "=cmd|' /C calc'!A0"),
    ]
    assert cells == expected
    assert [type(cell) for cell in cells] == [type(cell) for cell in expected]


async def test_a_second_run_writes_the_same_bytes_to_the_same_place(
    setup: SpreadsheetSetup,
) -> None:
    order = await setup.upload(table(["a"], *([str(i)] for i in range(1000))))
    layout = Layout(header_line=1, encoding="utf-8", delimiter=",")
    first, second = await setup.stage(order, layout), await setup.stage(order, layout)
    assert first.rows.name == staged_name(order.uuid, layout)
    assert second.rows.model_copy(update={"etag": first.rows.etag}) == first.rows
    async with fetched_rows(setup.blobs, first, setup.scratch) as path:
        assert path.stat().st_size == first.rows.size
    assert list(setup.scratch.glob("docflow-*")) == []


async def test_another_layout_is_staged_elsewhere(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(["a;b", "c"], ["1;2", "3"]))
    comma = await setup.stage(order, Layout(header_line=1, delimiter=","))
    semicolon = await setup.stage(order, Layout(header_line=1, delimiter=";"))
    assert comma.rows.name != semicolon.rows.name
    assert await staged_rows(setup, comma) == [(2, ["1;2", "3"])]
    assert await staged_rows(setup, semicolon) == [(2, ["1", "2,3"])]
    noted = {blob.name for blob in await setup.store.files_of(order.uuid)}
    assert {order.source.name, comma.rows.name, semicolon.rows.name} == noted


async def test_tampered_rows_are_refused(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(["a"], ["1"]))
    staged = await setup.stage(order, Layout(header_line=1))
    path = setup.folder / "other"
    path.write_bytes(b'[2,"2"]\n')
    await setup.blobs.upload(path, staged.rows.name)
    with pytest.raises(Exception, match="have changed since the file was read"):
        async with fetched_rows(setup.blobs, staged, setup.scratch):
            pass


async def test_a_file_that_turns_out_damaged_on_the_way(setup: SpreadsheetSetup) -> None:
    rows = "".join(f"{i},x\n" for i in range(5000))
    order = await setup.upload(f'a,b\n{rows}"open,x\n'.encode())
    with pytest.raises(ApplicationError, match="line 5,002: a quote is opened") as caught:
        await setup.stage(order, Layout(header_line=1))
    assert (caught.value.type, caught.value.non_retryable) == (UNREADABLE_DOCUMENT, True)


@dataclass
class Endless:
    """A table without an end."""

    format: str = "csv"
    sheet: str | None = None
    encoding: str | None = "utf-8"
    delimiter: str | None = ","
    closed: bool = False

    def rows(self) -> Iterator[tuple[int, list[Cell]]]:
        return ((line, ["x"]) for line in count(1))

    @contextmanager
    def opened(self) -> Iterator[Table]:
        yield self
        self.closed = True


@dataclass
class EndlessDocuments:
    """Opens nothing else."""

    table: Endless

    def open_table(self, path: Path, **named: Any) -> AbstractContextManager[Table]:
        return self.table.opened()


async def test_staging_is_cancelled_within_a_second_and_reports_its_progress(
    setup: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "STEP_SECONDS", 0.05)
    monkeypatch.setattr(staging, "SAVE_SECONDS", 0.0)
    order = await setup.upload(b"x")
    endless = Endless()
    activity = staging.SpreadsheetStaging(
        setup.store,
        setup.blobs,
        EndlessDocuments(endless),  # type: ignore[arg-type]
        setup.types,
        setup.scratch,
    )
    env = environment()
    running = asyncio.create_task(
        env.run(activity.stage, StageInput(order=order, layout=Layout(header_line=1)))
    )
    while not (await total(setup, order) or 0) > 1000:
        assert not running.done()
        await asyncio.sleep(0.01)
    began = time.monotonic()
    env.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 5
    assert endless.closed
    assert list(setup.scratch.glob("docflow-*")) == []


async def total(setup: SpreadsheetSetup, order: SpreadsheetInput) -> int | None:
    return dict(await setup.select("spreadsheet_imports", "uuid total"))[order.uuid]


async def test_texts_and_dates_of_merged_cells_count_for_each_of_their_rows(
    setup: SpreadsheetSetup,
) -> None:
    path = setup.folder / "merged.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        sheet.merge_range(0, 0, 1, 0, "a header of two lines")
        sheet.write_row(1, 1, ["Category", "Joined", "Fee"])
        for line, name in enumerate(("Ada", "Bea", "Cid", "Dan"), start=2):
            sheet.write(line, 0, name)
        sheet.merge_range(2, 1, 4, 1, "Family")
        sheet.merge_range(2, 2, 3, 2, "", day)
        sheet.write_datetime(2, 2, datetime(2024, 2, 29), day)
        sheet.merge_range(2, 3, 3, 3, 120)
    order = await setup.upload(path.read_bytes(), filename="t.xlsx")
    for _ in range(2):
        staged = await setup.stage(order, Layout(header_line=2))
        assert staged.total == 4
        assert await staged_rows(setup, staged) == [
            (3, ["Ada", "Family", date(2024, 2, 29), 120]),
            (4, ["Bea", "Family", date(2024, 2, 29)]),
            (5, ["Cid", "Family"]),
            (6, ["Dan"]),
        ]
