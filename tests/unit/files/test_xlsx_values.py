"""Values of worksheet cells."""

from datetime import date, datetime

import pytest

from adapters.files.tables.xlsx.values import (
    Format,
    Memo,
    SharedStrings,
    column_number,
    from_serial,
    number,
    number_format,
    text,
)
from adapters.ports.errors import UnreadableDocument
from tests.support.files.workbooks import strings_xml


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"12345678901234567890123", 12345678901234567890123),
        (b"-7", -7),
        (b"1.0", 1),
        (b"1E3", 1000),
        (b"0.1", 0.1),
        (b".5", 0.5),
        (b"1e300", 1e300),
        (b"1e999", "1e999"),
        (b"9" * 400, "9" * 400),
        (b"1_000", "1_000"),
        (b"0x10", "0x10"),
        (b"nan", "nan"),
        (b"inf", "inf"),
        ("١٢".encode(), "١٢"),
    ],
)
def test_numbers(raw: bytes, value: object) -> None:
    assert number(raw) == value
    assert type(number(raw)) is type(value)


@pytest.mark.parametrize(
    ("code", "pattern", "expected"),
    [
        (0, None, Format.NUMBER),
        (14, None, Format.DATE),
        (20, None, Format.TIME),
        (22, None, Format.DATETIME),
        (46, None, Format.TIME),
        (49, None, Format.NUMBER),
        (170, "yyyy-mm-dd", Format.DATE),
        (170, "[$-409]d\\-mmm\\-yy;@", Format.DATE),
        (170, "mmm yy", Format.DATE),
        (170, "dd.mm.yyyy hh:mm", Format.DATETIME),
        (170, "h:mm AM/PM", Format.TIME),
        (170, "[h]:mm", Format.TIME),
        (170, "mm:ss.0", Format.TIME),
        (170, '0.00" days"', Format.NUMBER),
        (170, "[Red]0.00", Format.NUMBER),
        (170, "General", Format.NUMBER),
        (170, '#,##0\\ "USD"_d', Format.NUMBER),
        (170, "0;[Red]d", Format.NUMBER),
    ],
)
def test_number_formats(code: int, pattern: str | None, expected: Format) -> None:
    assert number_format(code, pattern) is expected


@pytest.mark.parametrize(
    ("serial", "kind", "date1904", "expected"),
    [
        (45000, Format.DATE, False, date(2023, 3, 15)),
        (45000.5, Format.DATE, False, datetime(2023, 3, 15, 12)),
        (45000, Format.DATETIME, False, datetime(2023, 3, 15)),
        (45000.9999999999, Format.DATETIME, False, datetime(2023, 3, 16)),
        (43538, Format.DATE, True, date(2023, 3, 15)),
        (0, Format.DATE, True, date(1904, 1, 1)),
        (1, Format.DATE, False, date(1900, 1, 1)),
        (59, Format.DATE, False, date(1900, 2, 28)),
        (60, Format.DATE, False, 60),
        (61, Format.DATE, False, date(1900, 3, 1)),
        (2958465, Format.DATE, False, date(9999, 12, 31)),
        (2958465, Format.DATE, True, 2958465),
        (2958465.9999999999, Format.DATETIME, False, 2958466.0),
        (1e15, Format.DATE, False, 1e15),
        (-1, Format.DATE, False, -1),
        (0.75, Format.TIME, False, "18:00:00"),
        (0.75, Format.DATETIME, False, "18:00:00"),
        (1.3125, Format.TIME, False, "31:30:00"),
        (0.00001, Format.TIME, False, "00:00:00.864"),
        (12, Format.NUMBER, False, 12),
    ],
)
def test_serial_days(serial: float, kind: Format, date1904: bool, expected: object) -> None:
    value = from_serial(serial, kind, date1904)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("", None),
        ("a_x000A_b", "a\nb"),
        ("_x005F_x0041_", "_x0041_"),
        ("nul _x0000_", "nul _x0000_"),
        ("half _xD800_", "half _xD800_"),
        ("=SUM(A1)", "=SUM(A1)"),
    ],
)
def test_text(raw: str, value: str | None) -> None:
    assert text(raw) == value


def test_column_numbers() -> None:
    assert [column_number(name) for name in ("A", "Z", "AA", "XFD")] == [0, 25, 26, 16383]
    assert column_number("AAAA") > 16384


@pytest.mark.parametrize("in_memory", [64, 1 << 20])
def test_shared_strings_are_the_same_in_memory_and_in_files(in_memory: int) -> None:
    expected = [f"Ärmel {n}" * (n % 7) for n in range(2000)]
    with SharedStrings(in_memory) as strings:
        strings.load([strings_xml(*(f"<t>{value}</t>" for value in expected)).encode()])
        assert len(strings) == 2000
        assert [strings[n] for n in range(2000)] == expected
        assert strings.by_digits[b"1999"] == expected[1999]
        assert strings.by_digits[b"0"] is None
        with pytest.raises(UnreadableDocument, match="shared string 2000"):
            strings.by_digits[b"2000"]


def test_runs_are_joined_and_phonetic_runs_left_out() -> None:
    with SharedStrings() as strings:
        rich = "<r><rPr/><t>one </t></r><r><t>two</t></r><rPh sb='0' eb='1'><t>three</t></rPh>"
        strings.load([strings_xml(rich, "<t/>", "<t>x</t>").encode()])
        assert [strings[n] for n in range(3)] == ["one two", "", "x"]


def test_a_memo_does_not_grow_without_end() -> None:
    memo = Memo(int)
    for n in range(70_000):
        assert memo[str(n).encode()] == n
    assert len(memo) <= 65_537
    assert memo[None] is None


def test_a_memo_does_not_keep_long_texts_without_end() -> None:
    memo = Memo(lambda raw: raw.decode() * 1000)
    for n in range(20_000):
        assert memo[str(n).encode()] == str(n) * 1000
    assert sum(len(str(value)) for value in memo.values()) < 5 << 20
