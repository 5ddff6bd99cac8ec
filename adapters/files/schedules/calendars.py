"""Working times of calendars: the notation of XER, and what the elements of PMXML say.

XER nests records `(0||name(key|value|...)(records))`. Below `DaysOfWeek` the days are numbered
from 1, Sunday; below `Exceptions` each has its day as `d`, counted as spreadsheets count days. A
period of work is a record with its start `s` and finish `f`. A day without periods is free.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final

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
