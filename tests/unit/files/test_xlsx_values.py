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
)
from adapters.ports.errors import UnreadableDocument
from tests.support.files.workbooks import strings_xml
from workflows.shared.cells import Length


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
        (1.3125, Format.LENGTH, False, Length("31:30:00")),
        (45000.5, Format.LENGTH, False, datetime(2023, 3, 15, 12)),
        (0.00001, Format.TIME, False, "00:00:00.864"),
        (12, Format.NUMBER, False, 12),
    ],
)
def test_serial_days(serial: float, kind: Format, date1904: bool, expected: object) -> None:
    value = from_serial(serial, kind, date1904)
    assert value == expected
    assert type(value) is type(expected)


def test_a_number_that_is_too_long_is_a_text() -> None:
    assert number(b"9" * 400) == "9" * 400


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
