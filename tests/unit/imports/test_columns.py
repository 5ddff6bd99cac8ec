"""A text that is read by columns gives the rows, problems and notes that its rows give."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
import xlsxwriter
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from activities.imports import column_table
from activities.imports.table_reader import TableReader
from activities.imports.tables import own_tables
from adapters.files.documents import FileDocuments
from adapters.files.tables import delimited
from adapters.files.tables.delimited import open_delimited
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.imports.activities import message_of
from workflows.imports import validation
from workflows.imports.messages import AnyTableMessage
from workflows.imports.runs import RowChunk
from workflows.shared.errors import InvalidDocument
from workflows.shared.packed_rows import NotPlain, PackedRows

HEADERS = {
    "mto": ("Drawing", "Commodity code", "Size", "Quantity", "Unit", "Description"),
    "material": ("Code", "Description", "Unit", "Price", "Lead time"),
    "equipment": ("Code", "Description", "Ownership", "Rate", "Note to self"),
    "estimation_master": ("Item code", "Description", "Quantity", "Unit rate", "Markup"),
}
KEYS = (*("D-1", "D-2", "D-3", "P 4", "A/5", 'x"6', "7"), *(f"C-{n}" for n in range(20)))
NASTY = (
    *("007", "1,234", "1.234", "1e5", "-0", "0", "0.0", "\u0663", "\uff11\uff12", "\u00a0", " "),
    *("\ufeff", "NaN", "inf", "2024-02-30", "0001-01-01", "12:30", "TRUE", "false", "n/a", "-"),
    *("Total", "Page 1 of 2", "Summe", "12.5%", "5 EUR", "10 h", "3-Jan", "1.5E+10", "#N/A"),
    *("x" * 300, "x" * 3_000, "a\tb", "two\nlines", "two\r\nlines", 'say "hi"', '"', "'=1", "'a"),
    *('="007"', "\\N", "back\\slash", "\x1f", "\x00", "\u2028", "Code", "Drawing", "", " a", "a "),
    *("100000000000000", "99999999999999.9999999", "0.1234567", "2147483648", "-5", "1_000", "M3"),
    *("+5", ".5", "5.", "1 000", "own", "rented", "04.03.2025", "r\u00e9sum\u00e9", "\u212aran"),
)
PLAIN = ("1", "2.5", "10", "0.125", "m", "pcs", "DN 50", "Pipe, seamless", '1/2"', "owned")
"""What most cells are, so that a table has a chance to be read by columns."""
ENDS = ("\n", "\r\n", "\r")
TEXTS = (
    *("a", "b c", "", '""', '"a"', '"a,b"', '"a""b"', 'a"b', '"a"b', ' "a"', '"a" ', '"', '""a'),
    *("#a", "\\", '\\"', "'", "\ufeff", "\u00e4", "NULL", "\x01\x02", " ", "\t", "a\nb", '"a\nb"'),
    *(",", ";", "\r", "\n", '"a\rb"', "x" * 3_000),
)


@dataclass
class Outcome:
    """What becomes of a document, in the order of its rows."""

    rows: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])
    rejected: list[Any] = field(default_factory=list[Any])
    note: list[str] = field(default_factory=list[str])
    rest: Any = None
    packed: int = 0
    """Rows that were read by columns; not compared."""

    def comparable(self) -> Any:
        """Everything that must not differ."""
        return sorted(self.rows), self.rejected, self.note, self.rest


def _read(path: Path, kind: str, start: int = 0, **fields: Any) -> Outcome:
    if kind in ("mto", "estimation_master"):
        fields.setdefault("service_id", "S1")
    message = cast(AnyTableMessage, message_of(kind, blob_name="in/file", **fields))
    reader = TableReader(
        FileDocuments(), path, message, own_tables()[message.document_type], chunk_rows=3
    )
    outcome = Outcome()
    try:
        reader.open()
        reader.skip(start)
        while (chunk := reader.next_chunk()) is not None:
            _take(outcome, chunk, reader)
        memory = reader.memory
        outcome.rest = (reader.titles, memory, reader.rows_read, reader.guessed_encoding)
        outcome.note = list(reader.findings.sentences(1_000))
    except (InvalidDocument, UnreadableDocument) as error:
        outcome.rest = (type(error), str(error))
    finally:
        reader.close()
    return outcome


def _take(outcome: Outcome, chunk: RowChunk, reader: TableReader) -> None:
    assert chunk.cursor == reader.rows_read
    for line, row in zip(chunk.lines, chunk.rows, strict=True):
        named = {n: v for n, v in zip(chunk.columns, row, strict=True) if v is not None}
        outcome.rows.append((line, sorted((name, _shown(value)) for name, value in named.items())))
    outcome.rejected += [(row.line, row.cells, row.problems) for row in chunk.rejected]
    outcome.packed += len(chunk.rows) if isinstance(chunk.rows, PackedRows) else 0


def _shown(value: Any) -> str:
    """A value with its type; numbers are equal whatever places they are written with."""
    return f"{type(value).__name__} {value if isinstance(value, str) else hash(value)}"


def _csv(rows: Sequence[Sequence[str]], end: str, quoting: Any, delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, quoting=quoting, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, bytes]:
    """A table of which most cells are plain, and its type."""
    kind = draw(st.sampled_from(sorted(HEADERS)))
    header = HEADERS[kind]
    plain = st.sampled_from(PLAIN)
    cells = draw(st.sampled_from((plain, plain, st.sampled_from((*PLAIN, *NASTY)))))
    amounts = st.sampled_from(("1", "2.5", "10", "0.125", "7"))
    if draw(st.booleans()):
        amounts = st.sampled_from(("1,5", "2", "1.000,25", "-", "7,125"))
    others = [amounts if title in _NUMBERS else cells for title in header[1:]]
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=9, unique=draw(st.booleans())))
    rows = [[key, *(draw(each) for each in others)] for key in keys]
    if draw(st.integers(0, 2)) == 0:
        at = draw(st.integers(0, len(rows) - 1))
        rows[at][draw(st.integers(0, len(header) - 1))] = draw(st.sampled_from(NASTY))
    above = draw(st.sampled_from(([], [], [["A title"]], [["A title"], ["", "Project 7"]])))
    content = _csv(
        [*above, header, *rows],
        draw(st.sampled_from(("\n", "\n", "\r\n", "\r"))),
        draw(st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))),
        draw(st.sampled_from((",", ",", ";", "\t"))),
    )
    return kind, draw(st.sampled_from((b"", b"", b"\xef\xbb\xbf"))) + content + draw(
        st.sampled_from((b"", b"", b"\n", b",,\n"))
    )


@st.composite
def workbooks(draw: st.DrawFn) -> tuple[str, Sequence[Sequence[Any]]]:
    """The rows of a worksheet with cells of all types, and its type."""
    kind = draw(st.sampled_from(sorted(HEADERS)))
    header = HEADERS[kind]
    texts = [text for text in NASTY if len(text) < 400]
    cells = st.sampled_from((*PLAIN, None))
    if draw(st.booleans()):
        others = (*(7, 2.5, -1, 1e20, 10**20, 0.1234567, True, date(2024, 2, 3)), *texts)
        cells = st.sampled_from((*PLAIN, None, *others))
    amounts = st.sampled_from((1, 2.5, 10, 0.125, None, "7", "1.5"))
    columns = [amounts if title in _NUMBERS else cells for title in header[1:]]
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=9, unique=draw(st.booleans())))
    rows: list[list[Any]] = [[key, *(draw(each) for each in columns)] for key in keys]
    if draw(st.integers(0, 2)) == 0:
        at = draw(st.integers(0, len(rows) - 1))
        rows[at][draw(st.integers(0, len(header) - 1))] = draw(st.sampled_from((7, *texts)))
    above = draw(st.sampled_from(([], [], [["A title"], []])))
    return kind, [*above, header, *rows]


_NUMBERS = frozenset({"Quantity", "Price", "Lead time", "Rate", "Unit rate", "Markup"})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables of any size are read by columns."""
    monkeypatch.setattr(column_table, "COLUMN_BYTES", 0)
    yield


@given(
    table=tables(),
    block=st.sampled_from((40, 200, 1_000_000)),
    start=st.sampled_from((0, 0, 2, 99)),
)
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_a_table_read_by_columns_is_what_its_rows_are(
    tmp_path: Path, table: tuple[str, bytes], block: int, start: int
) -> None:
    kind, content = table
    note(repr((kind, content, block, start)))
    file = tmp_path / "file.csv"
    file.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK_BYTES", block)
        by_columns = _read(file, kind, start)
        patch.setattr(column_table, "COLUMN_BYTES", 1 << 60)
        assert by_columns.comparable() == _read(file, kind, start).comparable()


@given(table=tables(), start=st.sampled_from((0, 0, 2, 99)))
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_rows_that_are_packed_are_what_they_were(
    tmp_path: Path, table: tuple[str, bytes], start: int
) -> None:
    kind, content = table
    note(repr((kind, content, start)))
    file = tmp_path / "file.csv"
    file.write_bytes(content)
    _compare_packed(file, kind, start)


@given(table=workbooks(), start=st.sampled_from((0, 0, 2, 99)))
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_rows_of_workbooks_that_are_packed_are_what_they_were(
    tmp_path: Path, table: tuple[str, Sequence[Sequence[Any]]], start: int
) -> None:
    kind, rows = table
    note(repr((kind, rows, start)))
    file = tmp_path / "file.xlsx"
    with xlsxwriter.Workbook(str(file), {"default_date_format": "yyyy-mm-dd"}) as workbook:
        sheet = workbook.add_worksheet()
        for line, cells in enumerate(rows):
            for position, cell in enumerate(cells):
                if isinstance(cell, str):
                    sheet.write_string(line, position, cell)
                else:
                    sheet.write(line, position, cell)
    _compare_packed(file, kind, start)


def _compare_packed(file: Path, kind: str, start: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_table, "COLUMN_BYTES", 1 << 60)
        row_by_row = _read(file, kind, start)
        patch.setattr(validation, "FEWEST_ROWS", 1)
        assert _read(file, kind, start).comparable() == row_by_row.comparable()


def test_most_rows_of_a_workbook_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "FEWEST_ROWS", 1)
    rows: list[Sequence[Any]] = [(f"C-{n}", "Pipe", "m", n + 0.5, n % 9) for n in range(300)]
    rows[100] = ("C-100", "two\nlines", "m", 1, 1)
    rows[200] = ("C-200", "Pipe", "m", "much", 1)
    file = tmp_path / "file.xlsx"
    with xlsxwriter.Workbook(str(file)) as workbook:
        sheet = workbook.add_worksheet()
        for line, cells in enumerate((HEADERS["material"], *rows)):
            sheet.write_row(line, 0, cells)
    outcome = _read(file, "material")
    assert (len(outcome.rows), len(outcome.rejected), outcome.packed) == (299, 1, 296)


@given(
    lines=st.lists(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3), max_size=5),
    end=st.sampled_from(ENDS),
    last=st.sampled_from(("", "\n", "\r\n", "\n\n")),
    block=st.sampled_from((8, 1_000_000)),
)
@settings(
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_a_text_read_by_columns_holds_the_cells_that_its_records_do(
    tmp_path: Path, lines: list[list[str]], end: str, last: str, block: int
) -> None:
    file = tmp_path / "file.csv"
    text = end.join(["one,two", *map(",".join, lines)]) + last
    file.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK_BYTES", block)
        by_columns = _cells(file, tmp_path)
    if by_columns is not None:
        with open_delimited(file, "utf-8", ",") as table:
            rows = [
                (line, [*cells, *[""] * (2 - len(cells))])
                for line, cells in table.rows()
                if line > 1
            ]
        assert by_columns == rows


def _cells(file: Path, folder: Path) -> list[tuple[int, list[str]]] | None:
    """Every cell of a file by columns; None: it is to be read row by row."""
    with open_delimited(file, "utf-8", ",") as table:
        assert table.columns is not None
        try:
            with table.columns(1, 2, folder) as found:
                return [
                    (line, list(cells))
                    for block in found.blocks()
                    for line, cells in enumerate(block.top(100), block.first_line)
                ]
        except NotPlain:
            return None


def test_most_of_a_long_table_is_read_by_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 2_000)
    rows = [(f"C-{n}", "Pipe, seamless", "m", f"{n}.5", str(n % 9)) for n in range(400)]
    rows[300] = ("Total", "", "", "12", "")
    rows.append(("C-1", "again", "m", "1", "1"))
    file = tmp_path / "file.csv"
    file.write_bytes(_csv([HEADERS["material"], *rows], "\n", csv.QUOTE_MINIMAL, ","))
    by_columns = _read(file, "material")
    assert 100 < by_columns.packed < 300
    monkeypatch.setattr(column_table, "COLUMN_BYTES", 1 << 60)
    row_by_row = _read(file, "material")
    assert row_by_row.packed == 0
    assert by_columns.comparable() == row_by_row.comparable()
    assert len(row_by_row.rejected) == 1


def test_a_bill_is_read_by_columns_up_to_its_first_heading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 2_000)
    rows = [(f"{n}", "Concrete", f"{n}.5", "2", "") for n in range(400)]
    rows[300] = ("", "Part two", "", "", "")
    rows.append(("399", "again", "1", "1", ""))
    file = tmp_path / "file.csv"
    file.write_bytes(_csv([HEADERS["estimation_master"], *rows], "\n", csv.QUOTE_MINIMAL, ","))
    by_columns = _read(file, "estimation_master")
    assert 100 < by_columns.packed < 301
    monkeypatch.setattr(column_table, "COLUMN_BYTES", 1 << 60)
    assert by_columns.comparable() == _read(file, "estimation_master").comparable()


@pytest.mark.parametrize("size", [100_000, 1_200_000])
def test_a_long_cell_is_a_problem_of_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    rows = [(f"C-{n}", "Pipe", "m", "1", "1") for n in range(20)]
    rows[15] = ("C-15", "x" * size, "m", "1", "1")
    file = tmp_path / "file.csv"
    file.write_bytes(_csv([HEADERS["material"], *rows], "\n", csv.QUOTE_MINIMAL, ","))
    by_columns = _read(file, "material")
    monkeypatch.setattr(column_table, "COLUMN_BYTES", 1 << 60)
    assert by_columns.comparable() == _read(file, "material").comparable()


def test_what_needs_more_memory_than_is_given_is_read_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_MEMORY", "3MB")
    rows = [(f"C-{n}", f"{n} " + "x" * 500, "m", "1", "1") for n in range(3_000)]
    file = tmp_path / "file.csv"
    file.write_bytes(_csv([HEADERS["material"], *rows], "\n", csv.QUOTE_MINIMAL, ","))
    outcome = _read(file, "material")
    assert (len(outcome.rows), outcome.packed) == (3_000, 0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM read_csv('{readable}/../other')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/written.csv'",
        "ATTACH '{folder}/written.db'",
        "SET enable_external_access = true",
        "SET memory_limit = '8GB'",
        "INSTALL httpfs",
        "LOAD sqlite",
    ],
)
def test_a_session_reaches_nothing_but_its_file(tmp_path: Path, sql: str) -> None:
    readable, other = tmp_path / "block.csv", tmp_path / "other"
    readable.write_text("a\n")
    other.write_text("secret\n")
    session = delimited.Session(readable)
    try:
        assert session.fetch(f"SELECT count(*) FROM read_text('{readable}')") == [(1,)]
        with pytest.raises(NotPlain):
            session.fetch(sql.format(readable=readable, other=other, folder=tmp_path))
    finally:
        session.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["block.csv", "other"]
