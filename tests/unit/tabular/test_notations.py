"""Numbers and dates in the ways people write them."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.shared.notations import (
    Notation,
    Unreadable,
    date_readings,
    decide,
    exact,
    number_readings,
    read_date,
    read_number,
)

POINT, COMMA = Notation.POINT, Notation.COMMA
NUMBERS = st.decimals(
    min_value=-(10**13), max_value=10**13, places=4, allow_nan=False, allow_infinity=False
)


def written(value: Decimal, group: str, mark: str) -> str:
    return f"{value:,f}".replace(",", "\0").replace(".", mark).replace("\0", group)


@settings(deadline=None)
@given(NUMBERS, st.sampled_from([",", " ", "\u00a0", "\u202f", "'", "\u2019", ""]))
def test_point_numbers_come_back(value: Decimal, group: str) -> None:
    assert read_number(written(value, group, "."), POINT) == value


@settings(deadline=None)
@given(NUMBERS, st.sampled_from([".", " ", "\u00a0", "\u202f", "'", "\u2019", ""]))
def test_comma_numbers_come_back(value: Decimal, group: str) -> None:
    assert read_number(written(value, group, ","), COMMA) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", "12"),
        ("-007", "-7"),
        ("1,234.56", "1234.56"),
        ("1.234,56", "1234.56"),
        ("1.234.567", "1234567"),
        ("0,125", "0.125"),
        ("0.125", "0.125"),
        (",5", "0.5"),
        (".5", "0.5"),
        ("12,5", "12.5"),
        ("1234,567", "1234.567"),
        ("1 234", "1234"),
        ("+3.", "3"),
        ("1E3", "1000"),
    ],
)
def test_one_reading_needs_no_notation(text: str, value: str) -> None:
    assert read_number(text, None) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "point", "comma"), [("1,234", 1234, "1.234"), ("1.234", "1.234", 1234)]
)
def test_an_open_number_is_not_guessed(text: str, point: object, comma: object) -> None:
    with pytest.raises(Unreadable, match=r"can be read as 1\.234 or 1234"):
        read_number(text, None)
    assert read_number(text, POINT) == Decimal(point)
    assert read_number(text, COMMA) == Decimal(comma)


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", ".", "abc", "1,2,456.7", "12 34", "1,234 567", "1_000", "NaN", "Infinity"),
        *("0x10", "1.2.3", "5 %", "(12)", "12-", "\u0661\u0662", "1e999", "9" * 61, "=1+1"),
        "1,234,56",
    ],
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(Unreadable, match="is not a number"):
        read_number(text, None)


def test_a_settled_notation_refuses_the_other() -> None:
    with pytest.raises(Unreadable, match="written with decimal points"):
        read_number("12,5", POINT)


def test_only_unmistakable_values_decide() -> None:
    assert decide(map(number_readings, ["12", "1,234", "x"])) == set()
    assert decide(map(number_readings, ["12", "1,234", "12,5"])) == {COMMA}
    assert decide(map(number_readings, ["1,234.5", "12,5"])) == {POINT, COMMA}
    assert decide(map(date_readings, ["03/04/2025", "2025-01-31", "31.12.2025"])) == set()
    assert decide(map(date_readings, ["03/14/2025"])) == {Notation.MONTH_FIRST}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("1.0000005", "1.000001"),
        ("-1.0000005", "-1.000001"),
        ("33.3333333333333", "33.333333"),
        ("-0", "0"),
        ("1E+3", "1000"),
        ("99999999999999.9", "99999999999999.9"),
        ("99999999999999.9999994", "99999999999999.999999"),
        ("-0.0000004", "0"),
    ],
)
def test_numbers_fit_their_column(value: str, kept: str) -> None:
    assert str(exact(Decimal(value))) == kept


@pytest.mark.parametrize(
    "value",
    [
        *("1E+14", "-100000000000000", "99999999999999.9999995", "1E+400"),
        *("NaN", "Infinity", "-Infinity"),
    ],
)
def test_numbers_that_no_column_holds(value: str) -> None:
    with pytest.raises(Unreadable):
        exact(Decimal(value))


DATES = st.dates(date(1900, 1, 1), date(2199, 12, 31))


@settings(deadline=None)
@given(DATES)
def test_dates_come_back(day: date) -> None:
    for text in (
        day.isoformat(),
        f"{day:%Y/%m/%d}",
        f"{day:%d.%m.%Y}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day.isoformat()}T00:00:00",
        f"{day.isoformat()} 00:00:00.000",
    ):
        assert read_date(text, None) == day
        assert read_date(text, Notation.MONTH_FIRST) == day
    assert read_date(f"{day:%d/%m/%Y}", Notation.DAY_FIRST) == day
    assert read_date(f"{day:%m-%d-%Y}", Notation.MONTH_FIRST) == day


@settings(deadline=None)
@given(DATES)
def test_a_date_with_slashes_is_read_only_when_one_reading_is_left(day: date) -> None:
    text = f"{day:%d/%m/%Y}"
    if day.day <= 12 and day.day != day.month:
        with pytest.raises(Unreadable, match="can be read as"):
            read_date(text, None)
    else:
        assert read_date(text, None) == day


@pytest.mark.parametrize(
    "text",
    ["2025-02-30", "31.02.2025", "2025-13-01", "1.1.25", "2025-03-04 08:15", "45292"],
)
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(Unreadable, match="is not a date"):
        read_date(text, None)


@pytest.mark.parametrize(
    ("text", "notation", "said"),
    [
        ("31.02.2027", None, "is not a date: February 2027 has 28 days"),
        ("31/04/2027", Notation.DAY_FIRST, "is not a date: April 2027 has 30 days"),
        ("2028-02-30", None, "is not a date: February 2028 has 29 days"),
        ("31/04/2027", Notation.MONTH_FIRST, "is not a date; write it as 2025-03-04"),
        ("32.01.2027", None, "is not a date; write it as 2025-03-04"),
    ],
)
def test_a_day_that_its_month_lacks_says_so(
    text: str, notation: Notation | None, said: str
) -> None:
    with pytest.raises(Unreadable) as refused:
        read_date(text, notation)
    assert str(refused.value) == said


@settings(deadline=None)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_number, read_date):
        try:
            read(text, None)
        except Unreadable as refused:
            assert str(refused)
