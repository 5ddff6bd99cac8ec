"""Rows that come out again go in as they were, and a corrected one is the only update."""

import csv
import gc
import io
import re
import warnings
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sqlalchemy import text

from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from activities.imports.tables import own_tables
from activities.imports.views import SqlImportedRows
from adapters.database.engine import Database, open_database
from adapters.files.documents import FileDocuments
from adapters.files.tables.source import open_table
from adapters.files.tables.workbooks import (
    XlsxReportWriter,
    write_csv,
    write_parquet,
    write_xlsx,
)
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import environment, message_of, work_of
from tests.support.memory.blobs import MemoryBlobs
from tests.support.processes import ROOT
from workflows.imports.messages import DocumentType
from workflows.imports.runs import Counts, HandlerOutcome
from workflows.imports.types import TableSpec, scope_of
from workflows.shared.fields import ColumnKind, FieldSpec

FORMULAS = ("=1+1", "+49 30 1234", "-5 bar", "@home", "\tindented", "'=quoted", "it's", "'plain'")
NUMBERS = ("1.234", "0.5", "1234567.125", "12", "0.000001", "99999999999999.123456", "0")


def value_of(field: FieldSpec, row: int) -> Any:
    """A value that is hard to keep."""
    match field.kind:
        case ColumnKind.DECIMAL:
            return Decimal(NUMBERS[row % len(NUMBERS)])
        case ColumnKind.INTEGER:
            return row + 1
        case ColumnKind.DATE:
            return date(2020 + row, 3, 4)
        case ColumnKind.CHOICE:
            return [*field.choices][row % len(field.choices)]
        case ColumnKind.CODE:
            return f"00{row}-{field.name[:3]}"
        case ColumnKind.TEXT:
            return f"{FORMULAS[row % len(FORMULAS)]}, größer\n{row}"[: field.max_length]


FULL = Path("/dev/full")


@dataclass
class Setup:
    """A database, and imports into it."""

    database: Database
    folder: Path
    task: int = 0

    async def load(self, document_type: DocumentType, file: Path) -> HandlerOutcome:
        self.task += 1
        service = {"service_id": "S1"} if "service_id" in own_tables()[document_type].scope else {}
        message = message_of(
            document_type,
            blob_name=file.name,
            task_id=f"T{self.task}",
            filename=file.name,
            **service,
        )
        blobs = MemoryBlobs()
        source = await blobs.upload(file, file.name)
        imports = RowImports(
            SqlImportStore(self.database),
            blobs,
            FileDocuments(),
            XlsxReportWriter(),
            self.folder / "scratch",
        )
        return await environment().run(imports.load_rows, work_of(message, source))

    async def read(self, spec: TableSpec) -> list[tuple[Any, ...]]:
        scope = {name: "P1" if name == "project_id" else "S1" for name in spec.scope}
        rows = SqlImportedRows(self.database).read(spec, scope)
        return [row async for page in rows for row in page]

    async def export(self, spec: TableSpec, name: str) -> Path:
        file, rows = self.folder / name, iter(await self.read(spec))
        if file.suffix == ".xlsx":
            write_xlsx(spec.fields, rows, file)
        else:
            with file.open("wb") as target:
                write_csv(spec.fields, rows, target)
        return file

    async def versions(self, spec: TableSpec) -> list[int]:
        key = ", ".join(spec.key)
        query = text(f"SELECT version FROM {spec.table} ORDER BY {key}")
        async with self.database.reading() as connection:
            return list(await connection.scalars(query))


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    url = fresh_url()
    async with open_database(url) as database:
        yield Setup(database, tmp_path)


def first_file(folder: Path, spec: TableSpec) -> Path:
    """Rows as a sender writes them."""
    file = folder / "first.xlsx"
    rows = [tuple(value_of(field, row) for field in spec.fields) for row in range(8)]
    write_xlsx(spec.fields, iter(rows), file)
    return file


def correct(file: Path, spec: TableSpec, column: str, value: Any) -> None:
    """Change one cell of the third row, as a person does."""
    if file.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(file.read_text("utf-8-sig"), newline="")))
        rows[3][rows[0].index(column)] = str(value)
        made = io.StringIO(newline="")
        csv.writer(made).writerows(rows)
        file.write_text(made.getvalue(), "utf-8", newline="")
        return
    with open_table(file) as table:
        header, *cells = [list(row) for _, row in table.rows()]
    assert header == [field.name for field in spec.fields]
    cells[2][header.index(column)] = value
    write_xlsx(spec.fields, iter([tuple(row) for row in cells]), file)


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
@pytest.mark.parametrize("document_type", own_tables(), ids=str)
async def test_an_export_comes_back_as_it_was_and_a_corrected_cell_is_one_update(
    setup: Setup, document_type: DocumentType, suffix: str
) -> None:
    spec = own_tables()[document_type]
    first = await setup.load(document_type, first_file(setup.folder, spec))
    assert first.counts == Counts(created=8), first.problems
    before = await setup.read(spec)
    assert (
        before[0] == tuple(value_of(field, 0) for field in spec.fields)
        or document_type is DocumentType.CREW_MEMBER
    )
    file = await setup.export(spec, f"rows.{suffix}")
    same = await setup.load(document_type, file)
    assert same.counts == Counts(unchanged=8), (same.problems, same.note)
    assert await setup.read(spec) == before
    column = next(f.name for f in spec.fields if f.kind is ColumnKind.TEXT)
    correct(file, spec, column, "corrected")
    changed = await setup.load(document_type, file)
    assert changed.counts == Counts(updated=1, unchanged=7), changed.problems
    assert await setup.versions(spec) == [1, 1, 2, 1, 1, 1, 1, 1]
    place = [field.name for field in spec.fields].index(column)
    assert (await setup.read(spec))[2][place] == "corrected"


async def test_only_the_rows_of_a_scope_come_out(setup: Setup) -> None:
    spec = own_tables()[DocumentType.MTO]
    await setup.load(DocumentType.MTO, first_file(setup.folder, spec))
    rows = SqlImportedRows(setup.database)
    assert [page async for page in rows.read(spec, {"project_id": "P1", "service_id": "X"})] == []
    assert scope_of(message_of("mto", blob_name="x", service_id="S1"), spec) == {
        "project_id": "P1",
        "service_id": "S1",
    }


def sheets(file: Path) -> list[str]:
    with ZipFile(file) as package:
        names = sorted(name for name in package.namelist() if "/worksheets/" in name)
        return [package.read(name).decode() for name in names]


def test_a_workbook_that_cannot_be_written_is_an_error_of_its_file(tmp_path: Path) -> None:
    spec, folder = own_tables()[DocumentType.EQUIPMENT], tmp_path / "rows.xlsx"
    folder.mkdir()
    with warnings.catch_warnings():
        # The library leaves its files to the collector where it fails.
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(IsADirectoryError):
            write_xlsx(spec.fields, iter([("E",)]), folder)
        gc.collect()
    assert [*tmp_path.iterdir()] == [folder]


@pytest.mark.parametrize("rows", [1, 2_000])
def test_a_full_disk_ends_parquet_as_it_ends_the_others(
    rows: int, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = own_tables()[DocumentType.CREW]
    others = [None] * (len(spec.fields) - 1)
    with pytest.raises(OSError, match="No space left on device"):
        write_parquet(spec.fields, iter([(f"C{n}", *others) for n in range(rows)]), FULL)
    assert capfd.readouterr() == ("", "")


def test_text_in_a_workbook_is_no_formula(tmp_path: Path) -> None:
    spec = own_tables()[DocumentType.EQUIPMENT]
    write_xlsx(spec.fields, iter([("E", *FORMULAS[:4])]), tmp_path / "rows.xlsx")
    (sheet,) = sheets(tmp_path / "rows.xlsx")
    assert "=1+1" in sheet
    assert "<f>" not in sheet


def test_a_workbook_that_is_full_continues_in_another_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.files.limits.ROWS", 3)
    spec = own_tables()[DocumentType.CREW]
    count = write_xlsx(spec.fields, iter([(f"C{n}",) for n in range(5)]), tmp_path / "rows.xlsx")
    assert count == 5
    assert [sheet.count("<row ") for sheet in sheets(tmp_path / "rows.xlsx")] == [3, 3, 2]


def test_parquet_keeps_types(tmp_path: Path) -> None:
    from arro3.io import read_parquet

    spec = own_tables()[DocumentType.CREW_MEMBER]
    rows = [tuple(value_of(field, row) for field in spec.fields) for row in range(3)]
    rows.append(("E-9", date(2026, 1, 1), *([None] * (len(spec.fields) - 2))))
    assert write_parquet(spec.fields, iter(rows), tmp_path / "rows.parquet") == 4
    table = read_parquet(tmp_path / "rows.parquet").read_all()
    assert table.column_names == [field.name for field in spec.fields]
    assert table.column("valid_from").to_pylist() == [row[1] for row in rows]
    material = own_tables()[DocumentType.MATERIAL]
    rows = [tuple(value_of(field, row) for field in material.fields) for row in range(7)]
    write_parquet(material.fields, iter(rows), tmp_path / "numbers.parquet")
    found = read_parquet(tmp_path / "numbers.parquet").read_all().column("price").to_pylist()
    assert found == [Decimal(number) for number in NUMBERS]


def test_every_table_that_goes_out_is_written_in_one_place() -> None:
    """There text is text: a formula that somebody has typed is run nowhere."""
    writers = re.compile(r"\b(?:csv\.(?:writer|DictWriter)|xlsxwriter\.Workbook|openpyxl)\b")
    names = ("activities", "adapters", "workers", "workflows")
    files = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for name in names
        for path in (ROOT / name).rglob("*.py")
    }
    found = {path for path, text in files.items() if writers.search(text)}
    place = "adapters/files/tables"
    assert found == {f"{place}/workbooks.py"}
    for path in found:
        # `write` makes formulas and links of text.
        other = r"\bsheet\.write(?:_formula|_url|_row|_column|_rich_string)?\("
        assert not re.search(other, files[path])
