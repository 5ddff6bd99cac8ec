"""A reader of a package: its files are tables for both doors, and bounded like all others."""

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.imports.type_checks import check
from activities.imports.type_drafts import draft
from adapters.files import limits
from adapters.files.tables import custom
from adapters.files.tables.custom import CustomFormat, TableReader
from adapters.files.tables.formats import refuse_head
from adapters.files.tables.source import open_table, open_workbook, sheets_of
from adapters.installed import Installed
from adapters.ports.errors import ReaderFailed, UnreadableDocument
from adapters.types.files import read_type
from tests.extend.test_row_checks import sheets
from tests.support.files.tables import write_table
from tests.support.imports.activities import message_of
from tests.types.conftest import Installation
from workflows.imports.messages import DeclaredMessage
from workflows.imports.runs import Counts
from workflows.shared.errors import InvalidDocument
from workflows.spreadsheets.runs import RowCounts

LISTING = b"""PART NO   NAME        PRICE
-------   ---------- ------
B-1       Bolt         1.20

B-2       Nut          0.80
          Washer       0.10
"""
PARTS = read_type(
    "name: parts\ntitle: Parts\nkey: [part_no]\nfields:\n  part_no: {kind: code, required: true}\n"
    "  name: {required: true}\n  price: {kind: money, currency: EUR}\n",
    "parts.yaml",
)


@pytest.fixture
def listings(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the package is installed."""
    monkeypatch.syspath_prepend(str(site))
    found = custom.installed_readers.__wrapped__()
    assert not found.problems
    monkeypatch.setattr(custom, "installed_readers", lambda: found)


@contextmanager
def installed(reader: type[TableReader]) -> Generator[None]:
    """Have this reader alone."""
    kind = CustomFormat("mine", reader)
    every = Installed({".lst": kind}, {".lst": "parts-extension"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(custom, "installed_readers", lambda: every)
        yield


async def test_a_message_imports_a_file_of_an_own_format(
    installation: Installation, listings: None
) -> None:
    await installation.types.apply(PARTS)
    done = await installation.imported("parts", LISTING, name="in/stock.LST")
    assert done.counts == Counts(created=2, rejected=1), done
    assert [(each.line, each.column) for each in done.problems] == [(6, "PART NO")]
    assert await installation.rows(PARTS, "part_no", "name", "price", "source_line") == [
        ("B-1", "Bolt", Decimal("1.20"), 3),
        ("B-2", "Nut", Decimal("0.80"), 5),
    ]
    good = LISTING.replace(b"          Washer", b"B-3       Washer")
    done = await installation.imported(
        "parts", good, name="in/2", task_id="T2", filename="stock.lst"
    )
    assert done.counts == Counts(created=1, unchanged=2), done
    for broken, said in (
        (b"PART NO\nB1\n", "'listings' refuses the file: line 2 has no dashes; send the listing"),
        (b"\xff\n", "'listings' of the package parts-extension fails with UnicodeDecodeError"),
    ):
        with pytest.raises(ApplicationError, match=said):
            await installation.imported("parts", broken, name="in/stock.lst", task_id="T3")


async def test_an_upload_reads_a_file_of_an_own_format(
    installation: Installation, listings: None, tmp_path: Path
) -> None:
    await installation.types.apply(PARTS)
    refuse_head(LISTING, "stock.lst")
    sheet = await sheets(installation, tmp_path).prepare(
        LISTING,
        import_type=PARTS.name,
        type_digest=PARTS.digest,
        scope={"project_id": "P1"},
        context_id=None,
        filename="stock.lst",
    )
    assert (await sheet.process()).counts == RowCounts(created=2, error=1)


async def test_a_type_is_drafted_and_checked_with_an_own_format(
    listings: None, tmp_path: Path
) -> None:
    sample = tmp_path / "stock.lst"
    sample.write_bytes(LISTING.replace(b"          Washer", b"B-3       Washer"))
    made = draft("stock", sample)
    assert "key: [part_no]" in made and "price:\n    kind: decimal" in made, made
    given = message_of("stock", blob_name="stock.lst")
    assert isinstance(given, DeclaredMessage)
    checked = await check(read_type(made, "stock.yaml"), sample, tmp_path, given)
    assert [(row.line, row.problems) for row in checked.rows] == [(3, ()), (5, ()), (6, ())]


class Books(TableReader):
    """A file of two sheets, the first of which is blank."""

    suffixes = (".lst",)

    def sheets(self) -> Sequence[str]:
        return ["Cover", "Data"]

    def rows(self, sheet: str | None) -> Iterator[Sequence[Any]]:
        if sheet == "Data":
            yield ["a", None, " "]
            yield []
            yield [Decimal("1.50"), Decimal(7), Decimal("12345678901234567.25"), 2, True]
            yield [date(2025, 3, 4), datetime(2025, 3, 4, 5, 6), datetime(2025, 3, 4, tzinfo=UTC)]
            yield [time(8, 30)]


def test_cells_of_every_kind_and_sheets_are_read(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"<anything>")
    rows = [
        (1, ["a"]),
        (3, [1.5, 7, "12345678901234567.25", 2, True]),
        (4, [date(2025, 3, 4), datetime(2025, 3, 4, 5, 6), "2025-03-04 00:00:00+00:00"]),
        (5, ["08:30:00"]),
    ]
    with installed(Books):
        assert sheets_of(path, filename="x.lst") == ["Cover", "Data"]
        with open_table(path, filename="x.LST") as table:
            assert (table.format, table.sheet) == ("mine", "Data")
            assert [*table.rows()] == [*table.rows()] == rows
        with open_workbook(path, filename="x.lst") as book:
            assert [[*book.table(each.name).rows()] for each in book.sheets] == [[], rows]
        missing = pytest.raises(UnreadableDocument, match="no sheet 'Date'; it has 'Cover', 'Data'")
        with missing, open_table(path, filename="x.lst", sheet="Date"):
            pass
        # A workbook is read as one, whatever its name says; and so is a text of another name.
        for name, kind in (("x.lst", "xlsx"), ("x.csv", "csv")):
            with open_table(write_table(tmp_path / "own", kind), filename=name) as table:
                assert (table.format, next(table.rows())) == (kind, (1, ["code", "qty"]))


def _reading(rows: Any, names: Any = ()) -> type[TableReader]:
    class Reader(TableReader):
        suffixes = (".lst",)

        def sheets(self) -> Sequence[str]:
            return names

        def rows(self, sheet: str | None) -> Any:
            return rows() if callable(rows) else rows

    return Reader


def _damaged() -> Iterator[Sequence[Any]]:
    yield ["a"]
    raise InvalidDocument("line 2 is cut off; print the listing again")


FAILS = "the reader 'mine' of the package parts-extension fails with "


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        (_reading(_damaged), "the reader 'mine' refuses the file: line 2 is cut off; print"),
        (_reading(lambda: 1 / 0), FAILS + "ZeroDivisionError: division by zero; send the file"),
        (_reading(None), FAILS + "TypeError: 'NoneType' object is not iterable"),
        (_reading([["a"], None]), FAILS + "TypeError: 'NoneType' object is not iterable"),
        (_reading([["a"], [{}]]), FAILS + "TypeError: a cell on line 2 is of type dict"),
        (_reading([], names=["A", "a"]), FAILS + "ValueError: two sheets have the same name"),
        (_reading([], names=[""]), FAILS + "TypeError: the sheet name '' is no text, or blank"),
        (_reading([], names=map(str, count())), "the file has more than 1,000 sheets"),
        (_reading(repeat(["a"])), "the table has more than 1,000 rows; split the file"),
        (_reading([repeat("a")]), "line 1 has more than 1,000 columns; remove some"),
        (_reading([["a" * 32_768]]), "a cell on line 1 has more than 32,767 characters"),
        (_reading([["a" * 9_000] * 999]), "the text up to line 1 is too long; split the file"),
    ],
)
def test_a_reader_that_fails_or_never_ends_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: type[TableReader], said: str
) -> None:
    monkeypatch.setattr(limits, "ROWS", 1_000)
    path = tmp_path / "document"
    path.write_bytes(b"x")
    refuses = pytest.raises(UnreadableDocument)
    with installed(reader), refuses as refused, open_table(path, filename="x.lst") as table:
        for _ in table.rows():
            pass
    assert str(refused.value).startswith(said)
    assert isinstance(refused.value, ReaderFailed) == said.startswith(FAILS)


def test_a_large_file_is_not_given_to_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEGACY_FILE_BYTES", 10)
    path = tmp_path / "document"
    path.write_bytes(b"x" * 11)
    refuses = pytest.raises(UnreadableDocument, match="has 11 bytes; at most 10")
    with installed(Books), refuses, open_table(path, filename="x.lst"):
        pass


@pytest.mark.parametrize(
    ("suffixes", "said"),
    [
        ('(".csv",)', "brings '.csv' of docflow.readers, which docflow has already"),
        ('(".LST",)', "the suffix '.LST' is not possible; write one like '.lst'"),
        ('("lst",)', "the suffix 'lst' is not possible; write one like '.lst'"),
    ],
)
def test_a_reader_of_a_wrong_suffix_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffixes: str, said: str
) -> None:
    (tmp_path / "odd_reader.py").write_text(
        "from docflow.extend import TableReader\n\n\nclass Odd(TableReader):\n"
        f"    suffixes = {suffixes}\n    def rows(self, sheet):\n        return []\n"
    )
    information = tmp_path / "odd-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[docflow.readers]\nodd = odd_reader:Odd\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_reader", raising=False)
    found = custom.installed_readers.__wrapped__()
    [problem] = found.problems
    assert "the package odd" in problem and said in problem
    assert not found.found
