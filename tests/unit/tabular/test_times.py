"""Mail addresses, lengths of time, and columns of dates."""

from dataclasses import replace
from datetime import date, datetime
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.spreadsheets.sheet_types import discover
from workflows.shared.cells import Cell
from workflows.shared.conversion import Flaw, read_cells, settle_notations
from workflows.shared.durations import TimeUnit, read_duration, time_units_in, under_title
from workflows.shared.fields import Clock, ColumnKind, FieldSpec
from workflows.shared.notations import Notation, Unreadable

MAIL = FieldSpec("MAIL", ColumnKind.MAIL, max_length=254)
SECONDS: tuple[TimeUnit, ...] = ("s", "d")
TIME = FieldSpec("TIME", ColumnKind.DURATION, clock="mm:ss", units=SECONDS)
DAY = FieldSpec("DAY", ColumnKind.DATE)
PLACE = FieldSpec("PLACE", ColumnKind.PLACE)
FEE = FieldSpec("FEE", ColumnKind.DECIMAL)
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("cell", "milliseconds"),
    [
        ("01:23:45", 5_025_000),
        ("1:23:45", 5_025_000),
        (" 01:23:45.678 ", 5_025_678),
        ("01:23:45,6", 5_025_600),
        ("01:23:45.0005", 5_025_001),
        ("18:45", 1_125_000),
        ("118:45.3", 7_125_300),
        ("1h02", HOUR + 120_000),
        ("0 h 45", 45 * 60_000),
        ("5m30", 330_000),
        ("100:00:00", 100 * HOUR),
        ("0:00:00", 0),
        ("5025.5", 5_025_500),
        ("5025,5", 5_025_500),
        (5025, 5_025_000),
        (5025.25, 5_025_250),
        (0.5, 12 * HOUR),
        (0.1, 8_640_000),
        (datetime(1900, 1, 1, 2, 30), 26 * HOUR + 30 * 60_000),
        ("", None),
        (None, None),
    ],
)
def test_lengths_of_time(cell: Cell, milliseconds: int | None) -> None:
    assert read_cells(TIME, [cell], None) == ([milliseconds], False)


@pytest.mark.parametrize(
    ("field", "cell"),
    [(PLACE, "T-?"), (DAY, "suspended 1.6.2025"), (DAY, "through 1.5.2025")],
)
def test_what_stands_before_a_value_is_not_dropped(field: FieldSpec, cell: str) -> None:
    (found,), is_flawed = read_cells(field, [cell], None)
    assert (type(found), is_flawed) == (Flaw, True)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("soon", "is not a time; write it as 01:23:45"),
        ("1:60:00", "has more than 59 minutes to the hour"),
        ("1:23:60", "is not a time"),
        ("-1:00:00", "is not a time"),
        ("\u0661:\u0662\u0663:\u0664\u0665", "is not a time"),
        ("=1+1", "is not a time"),
        ("501:00:00", "is not between 0 and 500:00:00"),
        (-5, "is not between"),
        (1e300, "is not between"),
        (float("nan"), "is not a time"),
        (float("inf"), "is not a time"),
        (True, "is not a time"),
        (date(2026, 6, 1), "is not a time"),
        (datetime(2026, 6, 1, 8, 0), "is not between"),
        (10**400, "is not between"),
    ],
)
def test_what_is_no_length_of_time(cell: Cell, reason: str) -> None:
    (flaw,), refused = read_cells(TIME, [cell], None)
    assert refused
    assert isinstance(flaw, Flaw)
    assert reason in flaw.reason


@pytest.mark.parametrize(
    ("clock", "cells", "seconds"),
    [
        ("hh:mm", ["0:15", " 1:30 ", "0:15:20", "2h"], [900, 5400, 920, 7200]),
        ("mm:ss", ["0:15", "90:30"], [15, 5430]),
        (None, ["0:15:20", "15.5"], [920, 15.5]),
    ],
)
def test_two_numbers_are_what_the_field_says(
    clock: Any, cells: list[Cell], seconds: list[float]
) -> None:
    field = replace(TIME, clock=clock)
    found = [1000 * each for each in seconds]
    assert read_cells(field, cells, None) == (found, False)


def test_two_numbers_are_refused_if_nobody_says_what_they_are() -> None:
    (flaw,), _ = read_cells(replace(TIME, clock=None), ["1:30"], None)
    assert isinstance(flaw, Flaw)
    assert "may be hours and minutes, or minutes and seconds" in flaw.reason


UNDER = {
    # Title, what the type says, cells, hours that they mean; None: refused.
    "Dauer (h)": ((), None, ["1,5", 0.25, "2:30", "90 min", "1:00:00"], [1.5, 0.25, 2.5, 1.5, 1]),
    "Dauer [Std.]": ((), None, [8, "0.0625"], [8, 0.0625]),
    "Dauer (min)": ((), None, [90, "0:30"], [1.5, 1 / 120]),
    "Stunden": ((), None, [8, "7,5"], [8, 7.5]),
    "Arbeitsstunden": ((), None, [8], [8]),
    "Dauer in Minuten": ((), None, [90], [1.5]),
    "Pause (hh:mm)": ((), None, ["0:30", 0.5, 30], [0.5, None, None]),
    "Zeit (mm:ss)": ((), None, ["30:00", "1:15:00"], [0.5, 1.25]),
    "Dauer": ((), None, [90, "0.5", "0:15", 0, "2 h", "1:30:00"], [None, None, None, 0, 2, 1.5]),
    "Dauer (Tage)": ((), None, [3], [None]),
    "Dauer (h, ohne Pause)": ((), None, [3], [None]),
    "Zeit (H)": ((), None, [3], [None]),
    "Zeit 100 m": ((), None, [12.5], [None]),
    "Min. Dauer": ((), None, [12], [None]),
    "Time": (("min", "h"), None, [90, "0:15"], [1.5, None]),
    "Time (h)": (("min", "h"), "mm:ss", [1.5, "0:15"], [1.5, None]),
    "Time (s)": (("s", "d"), "mm:ss", [1800, 0.5, "30:00"], [0.5, 0.5 / 3600, 0.5]),
    "Time (hh:mm:ss)": (("s", "d"), "mm:ss", [1800, 0.5, "30:00"], [0.5, 12, 0.5]),
    "Time [min]": (("h",), None, [90], [None]),
}


@pytest.mark.parametrize("title", UNDER)
def test_a_length_of_time_is_in_the_unit_of_its_title(title: str) -> None:
    units, clock, cells, hours = UNDER[title]
    field = replace(TIME, units=units or None, clock=cast("Clock | None", clock))
    values, _ = read_cells(under_title(field, title), cells, None)
    found = [None if isinstance(value, Flaw) else value for value in values]
    assert found == [None if each is None else round(each * HOUR) for each in hours]


def test_a_number_without_a_unit_is_refused_with_a_cure() -> None:
    (flaw,), _ = read_cells(replace(TIME, units=None), [90], None)
    assert isinstance(flaw, Flaw)
    assert flaw.reason.endswith("or name the unit in the header, as in Duration (h)")
    assert time_units_in("Duration (h)") == ("h",)


def test_true_is_not_one_second() -> None:
    values, refused = read_cells(TIME, [1, True], None)
    assert (values[0], refused) == (1000, True)


@settings(deadline=None)
@given(st.integers(0, 500 * HOUR))
def test_every_length_of_time_is_read_as_it_is_written(milliseconds: int) -> None:
    seconds, rest = divmod(milliseconds, 1000)
    clock = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
    assert read_duration(clock) == milliseconds
    assert read_duration(f"{seconds}.{rest:03}", SECONDS) == milliseconds


@settings(deadline=None)
@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.datetimes(), st.dates()))
def test_any_cell_is_a_length_of_time_or_a_clear_refusal(
    cell: str | int | float | bool | date,
) -> None:
    try:
        assert 0 <= read_duration(cell, SECONDS) <= 500 * HOUR
    except Unreadable as refusal:
        assert str(refusal).isprintable()


@pytest.mark.parametrize(
    "mail",
    [
        *("anna@example.org", "a.b+c@mail.example.co.uk", "jürgen@exämple.de", "o'neill@x.io"),
    ],
)
def test_plausible_mail_addresses(mail: str) -> None:
    assert read_cells(MAIL, [mail, f" {mail} ", None], None) == ([mail, mail, None], False)


@pytest.mark.parametrize(
    "mail",
    [
        *("anna", "anna@", "@example.org", "anna@example", "anna@example.", "a b@example.org"),
        *("anna@@example.org", "a@b.de, c@d.de", "Anna <anna@example.org>", "a@.org", "a@b..de"),
        *("a" * 250 + "@b.de", "anna@exam\u0000ple.org", "=1+1"),
    ],
)
def test_implausible_mail_addresses(mail: str) -> None:
    (good, flaw), refused = read_cells(MAIL, ["anna@example.org", mail], None)
    assert refused
    assert good == "anna@example.org"
    assert isinstance(flaw, Flaw)


@pytest.mark.parametrize("blank", [(), (None,)])
def test_cells_that_are_days_stay_what_they_are(blank: tuple[None, ...]) -> None:
    days = [date(2026, 4, 3), date(1899, 12, 31), date(1900, 1, 1), date(2199, 12, 31), *blank]
    values, refused = read_cells(DAY, days, Notation.MONTH_FIRST)
    assert refused
    assert isinstance(values.pop(1), Flaw)
    assert read_cells(DAY, [*days[:1], *days[2:]], Notation.MONTH_FIRST) == (values, False)
    assert values == [*days[:1], *days[2:]]


def test_columns_decide_how_they_write_dates_and_numbers() -> None:
    days, fees = ["03/04/2026", "25/04/2026"], ["1.234,50", "2"]
    notations = settle_notations({"DAY": (DAY, days), "FEE": (FEE, fees)})
    assert notations == {"DAY": Notation.DAY_FIRST, "FEE": Notation.COMMA}
    assert read_cells(DAY, ["03/04/2026"], notations["DAY"])[0] == [date(2026, 4, 3)]


def test_every_field_of_every_type_takes_any_cell() -> None:
    cells: list[Cell] = [None, "", "=1+1", "#N/A", True, 10**400, 1e300, date(1, 1, 1), "\ud800"]
    for sheet_type in discover().values():
        for field in sheet_type.fields:
            if field.resolver is None:
                values, _ = read_cells(field, cells, None)
                assert len(values) == len(cells)


@pytest.mark.parametrize("text", ["0.0431", "0,043125", "0.5000"])
def test_a_part_of_a_day_that_is_written_as_text_is_asked_about(text: str) -> None:
    with pytest.raises(Unreadable, match="may be a part of a day"):
        read_duration(text, SECONDS)
    assert read_duration("0.5", SECONDS) == 500
    assert read_duration("0.0000") == 0
    assert read_duration("0.431", SECONDS) == 431
