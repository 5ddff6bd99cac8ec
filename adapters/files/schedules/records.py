"""Records of a Primavera file, the same for both formats: raw text, before anything is resolved.

Records of a Primavera file, the same for both formats: raw text, before anything is resolved.

Every field is text as it stands in the file, `""` where the file holds nothing. The names of
the fields follow the meaning; `xer` and `pmxml` map them to the names of their format.

One vocabulary for both formats: the words that Primavera shows to people.

An XER file holds the codes of the database, PMXML the words themselves. A value that is not in
these tables is kept as it stands.

Working times of calendars: the notation of XER, and what the elements of PMXML say.

XER nests records `(0||name(key|value|...)(records))`. Below `DaysOfWeek` the days are numbered
from 1, Sunday; below `Exceptions` each has its day as `d`, counted as spreadsheets count days. A
period of work is a record with its start `s` and finish `f`. A day without periods is free.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeVar

from workflows.shared.contracts import Problem


class ProjectRecord(NamedTuple):
    """A project."""

    line: int
    id: str
    code: str
    name: str
    wbs: str
    """Id of the project's own WBS node, where the format names it."""
    data_date: str
    planned_start: str
    finish: str
    must_finish: str


class CalendarRecord(NamedTuple):
    """A calendar; without a project it is shared."""

    line: int
    id: str
    project: str
    name: str
    type: str
    hours_per_day: str
    data: str
    """Working times and exceptions in the notation of XER."""


class WbsRecord(NamedTuple):
    """A node of a work breakdown structure."""

    line: int
    id: str
    project: str
    parent: str
    code: str
    name: str
    sequence: str
    top: str
    """`Y` for the node that stands for the project itself."""


class UnitRecord(NamedTuple):
    """A unit of measure."""

    line: int
    id: str
    abbreviation: str
    name: str


class ResourceRecord(NamedTuple):
    """A resource."""

    line: int
    id: str
    code: str
    name: str
    type: str
    unit: str
    """Id of a unit of measure."""


class RoleRecord(NamedTuple):
    """A role."""

    line: int
    id: str
    code: str


class ActivityRecord(NamedTuple):
    """An activity; durations in hours."""

    line: int
    id: str
    project: str
    code: str
    name: str
    type: str
    status: str
    wbs: str
    calendar: str
    original_duration: str
    remaining_duration: str
    fraction_complete: str
    """0 to 1, where the format holds it directly."""
    percent_type: str
    physical_percent: str
    actual_labor: str
    actual_nonlabor: str
    remaining_labor: str
    remaining_nonlabor: str
    planned_start: str
    planned_finish: str
    actual_start: str
    actual_finish: str
    early_start: str
    early_finish: str
    late_start: str
    late_finish: str
    total_float: str
    constraint_type: str
    constraint_date: str


class RelationshipRecord(NamedTuple):
    """A relationship; lag in hours."""

    line: int
    predecessor: str
    successor: str
    predecessor_project: str
    successor_project: str
    type: str
    lag: str


class AssignmentRecord(NamedTuple):
    """A resource, a role or both at work on an activity."""

    line: int
    project: str
    activity: str
    resource: str
    role: str
    planned_units: str
    actual_units: str
    actual_overtime_units: str
    remaining_units: str
    planned_cost: str
    actual_cost: str
    actual_overtime_cost: str
    remaining_cost: str


class CodeTypeRecord(NamedTuple):
    """A type of activity code."""

    line: int
    id: str
    name: str


class CodeValueRecord(NamedTuple):
    """A value of a type of activity code."""

    line: int
    id: str
    value: str
    description: str


class ActivityCodeRecord(NamedTuple):
    """A code value on an activity."""

    line: int
    project: str
    activity: str
    code_type: str
    code_value: str


class UdfTypeRecord(NamedTuple):
    """A user-defined field."""

    line: int
    id: str
    name: str
    data_type: str
    subject: str


class UdfValueRecord(NamedTuple):
    """A value of a user-defined field."""

    line: int
    project: str
    type: str
    owner: str
    """Id of the activity, WBS node, project or resource."""
    text: str
    number: str
    date: str


Record = TypeVar("Record", bound=NamedTuple)


class Records(Protocol):
    """A file, opened and known to be complete; each kind can be read again and again."""

    format: str
    guessed_encoding: str | None

    def rows(self, kind: type[Record]) -> Iterator[Record]:
        """Records of one kind in the order of the file, one in memory at a time.

        Raises:
            UnreadableDocument: The file is damaged.
        """
        ...


ACTIVITY_TYPES = {
    "TT_Task": "Task Dependent",
    "TT_Rsrc": "Resource Dependent",
    "TT_LOE": "Level of Effort",
    "TT_Mile": "Start Milestone",
    "TT_FinMile": "Finish Milestone",
    "TT_WBS": "WBS Summary",
}
STATUSES = {
    "TK_NotStart": "Not Started",
    "TK_Active": "In Progress",
    "TK_Complete": "Completed",
}
CONSTRAINTS = {
    "CS_ALAP": "As Late As Possible",
    "CS_MANDFIN": "Mandatory Finish",
    "CS_MANDSTART": "Mandatory Start",
    "CS_MEO": "Finish On",
    "CS_MEOA": "Finish On or After",
    "CS_MEOB": "Finish On or Before",
    "CS_MSO": "Start On",
    "CS_MSOA": "Start On or After",
    "CS_MSOB": "Start On or Before",
}
CALENDAR_TYPES = {
    "CA_Base": "Global",
    "CA_Project": "Project",
    "CA_Rsrc": "Resource",
}
RESOURCE_TYPES = {
    "RT_Labor": "Labor",
    "RT_Equip": "Nonlabor",
    "RT_Mat": "Material",
}
RELATIONSHIP_TYPES = {
    "PR_FS": "FS",
    "PR_SS": "SS",
    "PR_FF": "FF",
    "PR_SF": "SF",
    "Finish to Start": "FS",
    "Start to Start": "SS",
    "Finish to Finish": "FF",
    "Start to Finish": "SF",
}
UDF_TYPES = {
    "FT_TEXT": "Text",
    "FT_START_DATE": "Start Date",
    "FT_END_DATE": "Finish Date",
    "FT_FLOAT": "Double",
    "FT_FLOAT_2_DECIMALS": "Double",
    "FT_INT": "Integer",
    "FT_MONEY": "Cost",
    "FT_STATICTYPE": "Indicator",
}
UDF_SUBJECTS = {
    "TASK": "activity",
    "PROJWBS": "wbs",
    "PROJECT": "project",
    "RSRC": "resource",
    "Activity": "activity",
    "WBS": "wbs",
    "Project": "project",
    "Resource": "resource",
}
"""What a user-defined field belongs to; fields of anything else are not read."""


CODE_LENGTH = 255
"""Characters of a code; Primavera itself allows 120 at most."""
PATH_LENGTH = 1000
"""Characters of a dotted WBS path: it is part of a key, and databases limit the size of keys."""
TEXT_LENGTH = 4000
"""Characters of any other text."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d{1,2})?", re.ASCII)
_SCALE = Decimal("0.000001")
_LIMIT = Decimal(10) ** 13
# One digit less than a column holds: regular and overtime values are added up.


@lru_cache(maxsize=50_000)
def parse_number(raw: str) -> Decimal:
    """Exact number with at most 6 decimals, half to even beyond.

    Primavera never groups digits, so that a comma is the decimal sign of the machine that wrote
    the file.

    Raises:
        ValueError: It is not a number, or has more than 13 digits before the point.
    """
    if len(raw) > 64 or not _NUMBER.fullmatch(raw):
        raise ValueError("is not a number")
    number = Decimal(raw.replace(",", "."))
    if abs(number) >= _LIMIT:
        raise ValueError("has more than 13 digits before the decimal point")
    exponent = number.as_tuple().exponent
    return number.quantize(_SCALE) if isinstance(exponent, int) and exponent < -6 else number


@lru_cache(maxsize=50_000)
def parse_moment(raw: str) -> datetime:
    """Time as it stands in the file; an offset, should there be one, is dropped.

    Raises:
        ValueError: It is not a date.
    """
    try:
        return datetime.fromisoformat(raw).replace(tzinfo=None)
    except ValueError:
        raise ValueError("is not a date of the form 2025-01-31 08:00") from None


def clean_code(raw: str) -> str:
    """A code on one line, without control characters or blanks around it."""
    code = raw.strip()
    return " ".join(_CONTROL.sub(" ", code).split()) if _CONTROL.search(code) else code


def decimal_text(number: Decimal) -> str:
    """The shortest plain notation, the same for `80`, `80.0` and `8E1`."""
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


def problem(line: int | None, column: str | None, value: str | None, reason: str) -> Problem:
    """A problem whose parts are cut to what the contract allows."""
    return Problem(
        line=line,
        column=column,
        value=None if value is None else value[:200],
        reason=reason[:500],
    )


class Values:
    """Reads values and remembers what was wrong with them.

    A value that cannot be read becomes None and leaves a remark; its row still goes in.

    Attributes:
        remarks: What has gathered since the list was last emptied.
    """

    def __init__(self) -> None:
        self.remarks: list[Problem] = []

    def number(self, line: int, column: str, raw: str) -> Decimal | None:
        """Exact number; None, and never 0, when there is nothing."""
        raw = raw.strip()
        if not raw:
            return None
        try:
            return parse_number(raw)
        except ValueError as error:
            self.remark(line, column, raw, f"{error}; the value was left empty")
            return None

    def integer(self, line: int, column: str, raw: str) -> int | None:
        """Whole number of at most 32 bits."""
        number = self.number(line, column, raw)
        if number is None:
            return None
        if number != number.to_integral_value() or abs(number) >= 2**31:
            self.remark(line, column, raw, "is not a whole number; the value was left empty")
            return None
        return int(number)

    def moment(self, line: int, column: str, raw: str) -> datetime | None:
        """Naive local time."""
        raw = raw.strip()
        if not raw:
            return None
        try:
            return parse_moment(raw)
        except ValueError as error:
            self.remark(line, column, raw, f"{error}; the value was left empty")
            return None

    def text(self, line: int, column: str, raw: str) -> str | None:
        """Text without blanks around it; None when nothing is left."""
        text = raw.strip()
        if len(text) > TEXT_LENGTH:
            self.remark(line, column, text, f"is longer than {TEXT_LENGTH} characters; it was cut")
            text = text[:TEXT_LENGTH]
        return text or None

    def remark(self, line: int, column: str, raw: str, reason: str) -> None:
        """Remember what is wrong with a value of a row that is still loaded."""
        self.remarks.append(problem(line, column, raw, reason))


DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
EPOCH: Final = date(1899, 12, 30)
LAST_SERIAL: Final = (date(9999, 12, 31) - EPOCH).days

_TOKEN: Final = re.compile(
    r"(?:(?P<wrapped>\(\s*)?\d+\|\|(?P<name>[^()|]*)\((?P<values>[^()]*)\)\s*\(|\))\s*"
)
_TIME: Final = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(:\d\d)?\s*(?P<half>[AaPp][Mm])?", re.ASCII
)


@dataclass
class WorkingTimes:
    """When a calendar works.

    Attributes:
        week: Periods of each day of the week, as `08:00-12:00`; none: it is free.
        exceptions: The same of single days, by ISO date; none: a holiday.
    """

    week: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    exceptions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def week_text(self) -> str | None:
        """The week as JSON, from Monday on."""
        return _text({day: self.week[day] for day in (*DAYS[1:], DAYS[0]) if day in self.week})

    def exceptions_text(self) -> str | None:
        """The exceptions as JSON, by date."""
        return _text(dict(sorted(self.exceptions.items())))


@dataclass
class _Record:
    """A record of XER's notation."""

    name: str
    values: Mapping[str, str]
    closings: int
    """Parentheses that end it."""
    children: list["_Record"] = field(default_factory=list["_Record"])

    def child(self, name: str) -> "_Record | None":
        return next((each for each in self.children if each.name == name), None)


def read_xer_times(data: str) -> WorkingTimes:
    """The working times that a field `clndr_data` holds.

    Raises:
        ValueError: It is not in this notation.
    """
    root = _tree(data)
    times = WorkingTimes()
    week, exceptions = root.child("DaysOfWeek"), root.child("Exceptions")
    if week is None or not week.children:
        raise ValueError("names no day of the week")
    for day in week.children:
        if not (day.name.isdecimal() and 1 <= int(day.name) <= len(DAYS)):
            raise ValueError(f"names {day.name[:20]!r} as a day of the week")
        times.week[DAYS[int(day.name) - 1]] = [_period(each.values) for each in day.children]
    for day in exceptions.children if exceptions else ():
        serial = day.values.get("d", "")
        if not (serial.isdecimal() and int(serial) <= LAST_SERIAL):
            raise ValueError(f"names {serial[:20]!r} as the day of an exception")
        when = (EPOCH + timedelta(days=int(serial))).isoformat()
        times.exceptions[when] = [_period(each.values) for each in day.children]
    return times


def _tree(data: str) -> _Record:
    """The outermost record."""
    root: _Record | None = None
    open_records: list[_Record] = []
    position = 0
    text = data.replace("\x7f", " ").strip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(f"cannot be read from {text[position : position + 20]!r} on")
        position = token.end()
        if token[0].startswith(")"):
            if not open_records:
                raise ValueError("has a parenthesis too many")
            open_records[-1].closings -= 1
            if not open_records[-1].closings:
                open_records.pop()
            continue
        record = _Record(
            token["name"].strip(), _values(token["values"]), 2 if token["wrapped"] else 1
        )
        if open_records:
            open_records[-1].children.append(record)
        elif root is not None:
            raise ValueError("has more than one outermost record")
        root = root or record
        open_records.append(record)
    if root is None or open_records:
        raise ValueError("is cut off")
    return root


def _values(text: str) -> Mapping[str, str]:
    parts = text.split("|")
    return dict(zip(parts[::2], parts[1::2], strict=False))


def _period(values: Mapping[str, str]) -> str:
    return f"{_clock(values.get('s', ''))}-{_clock(values.get('f', ''))}"


def read_pmxml_times(data: str) -> WorkingTimes:
    """The working times that the elements of a calendar say.

    Args:
        data: A line for each day, `day Monday` or `date 2025-12-24T00:00:00`, with its periods
            behind it; their finish is the last minute in which work is done.

    Raises:
        ValueError: A day or a time is none.
    """
    times = WorkingTimes()
    for line in filter(None, data.split("\n")):
        kind, name, *periods = line.split()
        if kind == "date":
            target, key = times.exceptions, date.fromisoformat(name[:10]).isoformat()
        else:
            target, key = times.week, name.lower()
            if key not in DAYS:
                raise ValueError(f"names {name[:20]!r} as a day of the week")
        target[key] = [_whole(period) for period in periods]
    return times


def _whole(period: str) -> str:
    start, _, finish = period.partition("-")
    last = _clock(finish)
    hour, minute = int(last[:2]), int(last[3:])
    if minute % 10 == 9:
        hour, minute = divmod(hour * 60 + minute + 1, 60)
    return f"{_clock(start)}-{hour % 24:02}:{minute:02}"


def _clock(text: str) -> str:
    """A time of day as `08:00`; midnight is `00:00`, also at the end of a day."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"names {text[:20]!r} as a time of day")
    hour, minute = int(found["hour"]), int(found["minute"])
    if half := found["half"]:
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    if hour > 24 or minute > 59:
        raise ValueError(f"names {text[:20]!r} as a time of day")
    return f"{hour % 24:02}:{minute:02}"


def _text(days: Mapping[str, list[str]]) -> str | None:
    return json.dumps(days) if days else None
