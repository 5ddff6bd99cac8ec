"""Working times, holidays and exceptions of calendars, from both formats."""

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.files.schedules.primavera import open_schedule
from adapters.files.schedules.records import read_pmxml_times, read_xer_times
from tests.support.imports.schedule_reading import read_project
from tests.support.imports.schedules import SAMPLES

SHIFT = "(0||0(s|08:00|f|12:00)())(0||1(s|13:00|f|17:00)())"
WEEK = "(0||DaysOfWeek()((0||1()())(0||2()(" + SHIFT + "))(0||7()())))"


def data(*inside: str) -> str:
    return f"(0||CalendarData()({''.join(inside)}))"


def calendars(path: Path, project: str) -> dict[str, dict[str, Any]]:
    with open_schedule(path) as source:
        found = read_project(source, project)
    assert not [each for each in found.remarks if each.column == "working_times"]
    return {each["code"]: each for each in found.of_table("schedule_calendars")}


def test_days_without_work_are_free() -> None:
    times = read_xer_times(data(WEEK))
    assert times.week == {"sunday": [], "monday": ["08:00-12:00", "13:00-17:00"], "saturday": []}
    assert times.exceptions_text() is None
    assert list(json.loads(times.week_text() or "")) == ["monday", "saturday", "sunday"]


def test_exceptions_are_holidays_or_days_with_hours_of_their_own() -> None:
    exceptions = "(0||Exceptions()((0||0(d|45778)())(0||1(d|43651)((0||0(f|12:00|s|08:00)())))))"
    times = read_xer_times(data(WEEK, "(0||VIEW(ShowTotal|N)())", exceptions))
    assert times.exceptions == {"2025-05-01": [], "2019-07-05": ["08:00-12:00"]}
    assert list(json.loads(times.exceptions_text() or "")) == ["2019-07-05", "2025-05-01"]


@pytest.mark.parametrize(
    "written",
    [
        data(WEEK).replace("(0||", "\x7f\x7f  (0||"),
        data(WEEK)
        .replace("08:00", "8:00 AM")
        .replace("17:00", "5:00 PM")
        .replace("13:", "01:")
        .replace("01:00", "01:00 PM")
        .replace("12:00", "12:00 pm"),
        "(0||CalendarType()( 0||DaysOfWeek()( 0||1()( ) 0||2()( 0||0(s|08:00|f|12:00)( ) "
        "0||1(s|13:00|f|17:00)( ) ) 0||7()( ) ) ))",
    ],
    ids=["line breaks", "twelve hours", "bare records"],
)
def test_other_ways_to_write_the_same(written: str) -> None:
    assert read_xer_times(written).week == read_xer_times(data(WEEK)).week


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (data("(0||DaysOfWeek()(...))"), "cannot be read from '"),
        (data(WEEK)[:-3], "is cut off"),
        (data(WEEK) + ")", "parenthesis too many"),
        (data(WEEK) + data(WEEK), "more than one"),
        (data(), "names no day"),
        (data(WEEK.replace("0||7(", "0||8(")), "'8' as a day of the week"),
        (data(WEEK.replace("08:00", "25:00")), "'25:00' as a time"),
        (data(WEEK, "(0||Exceptions()((0||0(d|x)())))"), "'x' as the day"),
        (data(WEEK, "(0||Exceptions()((0||0(d|99999999)())))"), "as the day"),
    ],
)
def test_what_cannot_be_read_is_reported(written: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_xer_times(written)


def test_a_calendar_whose_times_cannot_be_read_is_kept_with_a_remark(tmp_path: Path) -> None:
    file = tmp_path / "broken.xer"
    content = (SAMPLES / "unit100.xer").read_bytes()
    file.write_bytes(content.replace(b"(0||DaysOfWeek()(", b"(0||DaysOfWeek("))
    with open_schedule(file) as source:
        found = read_project(source, "UNIT100")
    assert len(found.of_table("schedule_calendars")) == 2
    assert all(each["working_times"] is None for each in found.of_table("schedule_calendars"))
    said = [each.reason for each in found.remarks if each.column == "working_times"]
    assert len(said) == 2
    assert said[0].endswith("; the working times were left empty")


def test_the_calendars_of_an_xer_file_keep_their_times() -> None:
    site = calendars(SAMPLES / "unit100.xer", "UNIT100")["Baustelle 6 x 10"]
    week = json.loads(site["working_times"])
    assert week["saturday"] == ["07:00-12:00", "12:30-17:30"]
    assert week["sunday"] == []
    assert json.loads(site["exceptions"]) == {"2025-05-01": [], "2025-05-02": ["07:00-12:00"]}


def test_the_calendars_of_a_pmxml_file_keep_their_times(tmp_path: Path) -> None:
    work = "<WorkTime><Start>{}:00</Start><Finish>{}:00</Finish></WorkTime>"
    morning, late = work.format("08:00", "11:59"), work.format("13:00", "16:59")
    times = (
        "<StandardWorkWeek><StandardWorkHours><DayOfWeek>Sunday</DayOfWeek>"
        '<WorkTime xsi:nil="true"/></StandardWorkHours><StandardWorkHours>'
        f"<DayOfWeek>Monday</DayOfWeek>{morning}{late}</StandardWorkHours></StandardWorkWeek>"
        "<HolidayOrExceptions><HolidayOrException><Date>2025-12-25T00:00:00</Date>"
        '<WorkTime xsi:nil="true"/></HolidayOrException><HolidayOrException>'
        f"<Date>2025-12-24T00:00:00</Date>{morning}</HolidayOrException></HolidayOrExceptions>"
    )
    text = (SAMPLES / "tankfarm.xml").read_text("utf-8")
    file = tmp_path / "times.xml"
    first = text.index("</Calendar>")
    file.write_text(f"{text[:first]}{times}{text[first:]}", "utf-8")
    found = calendars(file, "TANKFARM")
    site, office = found["Baustelle 6 x 10"], found["Büro 5 x 8"]
    assert json.loads(site["working_times"]) == {
        "monday": ["08:00-12:00", "13:00-17:00"],
        "sunday": [],
    }
    assert json.loads(site["exceptions"]) == {"2025-12-24": ["08:00-12:00"], "2025-12-25": []}
    assert site["hours_per_day"] == 10
    assert (office["working_times"], office["exceptions"]) == (None, None)


@pytest.mark.parametrize("written", ["day Mittwoch", "date gestern", "day Monday 8-12"])
def test_elements_that_are_no_times_are_reported(written: str) -> None:
    with pytest.raises(ValueError):
        read_pmxml_times(written)
