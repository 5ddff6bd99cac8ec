"""Kinds of columns that teams declare: cells of spreadsheets, limits, and the way out and back."""

import time as clock
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pytest

from adapters.files.tables.source import open_table
from adapters.files.tables.workbooks import write_csv, write_parquet, write_xlsx
from workflows.shared.cells import Cell, is_blank
from workflows.shared.conversion import Flaw, convert_column, read_cells, settle_notations
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.packed_rows import PackedRows, text_of
from workflows.shared.patterns import compiled_pattern


def read(kind: ColumnKind, *cells: Cell, **limits: Any) -> list[Any]:
    values, _ = read_cells(FieldSpec("field", kind, **limits), cells, None)
    return ["refused" if isinstance(value, Flaw) else value for value in values]


@pytest.mark.parametrize(
    ("kind", "cells", "values"),
    [
        (ColumnKind.BOOLEAN, [True, 1, 0.0, 2, date(2025, 1, 1)], [True, True, False, *"__"]),
        (
            ColumnKind.TIME,
            [0.6041666667, datetime(1899, 12, 31, 7, 30), 0, 1, True, datetime(2025, 3, 4, 7)],
            [time(14, 30), time(7, 30), time(), *"___"],
        ),
        (
            ColumnKind.TIMESTAMP,
            [datetime(2025, 3, 4, 7), date(2025, 3, 4), 45_000.5, 7.5, True],
            [datetime(2025, 3, 4, 7), datetime(2025, 3, 4), datetime(2023, 3, 15, 12), *"__"],
        ),
        (ColumnKind.MONEY, [12, 2.5, True, date(2025, 3, 4)], [Decimal(12), Decimal("2.5"), *"__"]),
        (ColumnKind.PHONE, [2125550100, True, date(2025, 3, 4)], [*"___"]),
    ],
)
def test_cells_of_spreadsheets_are_read(
    kind: ColumnKind, cells: Sequence[Cell], values: Sequence[Any]
) -> None:
    assert read(kind, *cells) == ["refused" if each == "_" else each for each in values]


@pytest.mark.parametrize(
    ("kind", "limits", "within", "problems"),
    [
        (
            ColumnKind.INTEGER,
            {"minimum": 5, "maximum": 10},
            ("5", "10"),
            {"4": "is less than 5", "11": "is more than 10"},
        ),
        (
            ColumnKind.DECIMAL,
            {"minimum": Decimal("-0.5"), "maximum": Decimal("1.5")},
            ("-0.5", "1.5"),
            {"-0.500001": "is less than -0.5", "1.500001": "is more than 1.5"},
        ),
        (ColumnKind.MONEY, {"minimum": 0}, ("0", "5 EUR"), {"(5)": "is negative"}),
        (
            ColumnKind.DATE,
            {"maximum": date(2025, 12, 31)},
            ("2025-12-31",),
            {"2026-01-01": "is more than 2025-12-31"},
        ),
        (
            ColumnKind.DURATION,
            {"minimum": 300_000, "clock": "mm:ss"},
            ("5:00",),
            {"4:59": "is less than 0:05:00"},
        ),
        (
            ColumnKind.TIMESTAMP,
            {"zone": "Europe/Berlin", "minimum": date(2025, 1, 1)},
            ("2025-01-01 00:00",),
            {"2024-12-31T23:59+01:00": "is less than 2025-01-01"},
        ),
        (
            ColumnKind.TIME,
            {"maximum": time(17)},
            ("17:00",),
            {"17:00:01": "is more than 17:00:00"},
        ),
    ],
)
def test_values_beyond_their_bounds_are_refused(
    kind: ColumnKind, limits: dict[str, Any], within: Sequence[str], problems: dict[str, str]
) -> None:
    field = FieldSpec("field", kind, **limits)
    for text in within:
        # All texts of a column alike take the quick way.
        assert not read_cells(field, [text], None)[1]
    found, _ = read_cells(field, [*within, *problems], None)
    assert [each.reason for each in found if isinstance(each, Flaw)] == list(problems.values())
    for text, problem in problems.items():
        assert read_cells(field, [text], None) == ([Flaw(problem)], True)


def test_texts_have_no_bounds() -> None:
    with pytest.raises(ValueError, match="have no order"):
        FieldSpec("field", ColumnKind.TEXT, maximum=5)


def test_blank_texts_of_a_number_are_no_numbers() -> None:
    assert read(ColumnKind.INTEGER, "999", 999, "5", blanks=("999",)) == [None, None, 5]


def test_blank_texts_of_a_field_are_blanks_of_references_too() -> None:
    club = FieldSpec("club", ColumnKind.ENTITY, resolver="clubs", blanks=("Einzelstarter",))
    assert [is_blank(text, club) for text in ("einzelstarter ", "TSV", "n/a")] == [
        True,
        False,
        True,
    ]
    # A part of a key may be called what is a blank elsewhere, but not what is one here.
    size = FieldSpec("size", ColumnKind.CODE, blanks=("0",))
    assert read_cells(size, ["-", "0", 0], None, is_key=True) == (["-", None, None], False)


def test_columns_settle_the_order_of_days_and_the_decimal_mark() -> None:
    fields = {
        "at": (FieldSpec("at", ColumnKind.TIMESTAMP), ["03/04/2025 7:00", "31/12/2025 8:00"]),
        "fee": (FieldSpec("fee", ColumnKind.MONEY), ["1.250 \u20ac", "1.250,00 \u20ac"]),
    }
    written = settle_notations(fields)
    read = [
        read_cells(field, cells, written[name])[0][0] for name, (field, cells) in fields.items()
    ]
    assert read == [datetime(2025, 4, 3, 7), Decimal("1250")]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)b", "look-around"),
        (r"(a)\1", "backreferences"),
        ("a)|(b", "unopened group"),
        ("(a{1000}){1000}", "size limit"),
    ],
)
def test_patterns_that_the_engine_lacks_are_refused(pattern: str, reason: str) -> None:
    with pytest.raises(RuleViolation, match=reason):
        compiled_pattern(pattern)


def test_patterns_match_whole_texts_alone() -> None:
    matches = compiled_pattern("a|b")
    assert [matches(text) for text in ("a", "b", "ab", "a\n", "\na", "")] == [
        True,
        True,
        *[False] * 4,
    ]


def test_a_hostile_pattern_takes_linear_time() -> None:
    matches = compiled_pattern("(a+)+$")
    began = clock.process_time()
    assert not matches("a" * 50_000 + "b")
    assert clock.process_time() - began < 1


MOMENT = datetime(2025, 7, 4, 12, 30, tzinfo=UTC)
COLUMNS: Sequence[tuple[FieldSpec, Sequence[Any]]] = (
    (FieldSpec("flag", ColumnKind.BOOLEAN), (True, False, None)),
    (FieldSpec("opens", ColumnKind.TIME), (time(14, 30), time(0), time(7, 0, 0, 123_456))),
    (
        FieldSpec("local", ColumnKind.TIMESTAMP),
        (
            datetime(2025, 3, 4),
            datetime(2025, 3, 4, 7, 30, 15),
            datetime(1900, 1, 1, 7, 30, 15, 123_456),
        ),
    ),
    (
        FieldSpec("moment", ColumnKind.TIMESTAMP, zone="Europe/Berlin"),
        (
            MOMENT,
            MOMENT.replace(microsecond=1),
            None,
        ),
    ),
    (FieldSpec("fee", ColumnKind.MONEY), (Decimal("1.234"), Decimal("-0.5"), Decimal("1E+3"))),
    (FieldSpec("phone", ColumnKind.PHONE), ("+4930123456", "030123456", None)),
    (FieldSpec("mail", ColumnKind.MAIL), ("a@example.org", None, None)),
    (FieldSpec("place", ColumnKind.PLACE), (3, 12, None)),
    (FieldSpec("length", ColumnKind.DURATION), (90_000, 0, None)),
)
ROWS = list(zip(*(values for _, values in COLUMNS), strict=True))


def test_packed_rows_hold_every_kind() -> None:
    lines = ["\t".join((*map(text_of, row), str(n))) for n, row in enumerate(ROWS, 2)]
    kinds = tuple(field.kind for field, _ in COLUMNS)
    assert list(PackedRows((), kinds, lines, zero_led=False)) == ROWS


EXPORTED = [field for field, _ in COLUMNS if field.kind is not ColumnKind.DURATION]


def exported() -> Any:
    return iter([row[: len(EXPORTED)] for row in ROWS])


def write_text(fields: Sequence[FieldSpec], rows: Any, target: Path) -> int:
    with target.open("wb") as file:
        writer: Callable[[Sequence[FieldSpec], Any, IO[bytes]], int] = write_csv
        return writer(fields, rows, file)


@pytest.mark.parametrize("writer", [write_text, write_xlsx])
def test_exported_kinds_come_back(tmp_path: Path, writer: Any) -> None:
    path = tmp_path / f"out.{'csv' if writer is write_text else 'xlsx'}"
    assert writer(EXPORTED, exported(), path) == len(ROWS)
    with open_table(path) as table:
        _, *rows = [cells + [None] * (len(EXPORTED) - len(cells)) for _, cells in table.rows()]
    for place, field in enumerate(EXPORTED):
        cells = [row[place] for row in rows]
        written = settle_notations({field.name: (field, cells)})[field.name]
        assert read_cells(field, cells, written) == ([row[place] for row in ROWS], False)


def test_parquet_has_types_for_the_kinds(tmp_path: Path) -> None:
    from arro3.io import read_parquet

    path = tmp_path / "out.parquet"
    assert write_parquet(EXPORTED, exported(), path) == len(ROWS)
    with path.open("rb") as file:
        table = read_parquet(file).read_all()  # type: ignore[arg-type]
    for place, field in enumerate(EXPORTED[:5]):
        column = table.column(field.name)
        kept = [column[row].as_py() for row in range(len(ROWS))]
        assert kept == [row[place] for row in ROWS]


def test_a_money_column_of_plain_numbers_has_its_values() -> None:
    field = FieldSpec("fee", ColumnKind.MONEY, maximum=10)
    assert convert_column(field, ["5", "11"], None) == ([Decimal(5), Flaw("is more than 10")], True)
