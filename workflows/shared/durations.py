"""Lengths of time, as people and programs write them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise, takewhile
from types import MappingProxyType
from typing import Final, Literal

from workflows.shared.cells import Cell
from workflows.shared.fields import Clock, ColumnKind, FieldSpec, normalise
from workflows.shared.notations import Unreadable

LONGEST: Final = 500 * 3_600_000
"""Most milliseconds, unless a field says otherwise: what is longer is rather mistyped."""

TimeUnit = Literal["h", "min", "s", "d"]
_SCALES: Final[Mapping[TimeUnit, int]] = MappingProxyType(
    {"h": 3_600_000, "min": 60_000, "s": 1_000, "d": 86_400_000}
)
"""Unit to its milliseconds."""
_SPELLED: Final[Mapping[TimeUnit, Sequence[str]]] = MappingProxyType(
    {
        "h": ("hours", "stunden", "heures", "horas", "std", "hrs"),
        "min": ("minutes", "minuten", "minutos", "minuti", "mins"),
        "s": ("seconds", "sekunden", "secondes", "segundos", "secondi", "secs"),
        "d": ("days", "tage", "jours", "dias", "giorni"),
    }
)
"""Words that name a unit of time wherever they stand in a title."""
_SHORT: Final[Mapping[TimeUnit, Sequence[str]]] = MappingProxyType(
    {
        "h": ("h", "hh", "hr", "hour", "stunde", "heure", "hora", "ora", "ore"),
        "min": ("min", "mm", "minute", "minuto"),
        "s": ("s", "ss", "sec", "sek", "second", "sekunde", "seconde", "segundo", "secondo"),
        "d": ("d", "day", "tag", "jour", "dia", "giorno"),
    }
)
"""Words that name one in brackets, at the end of a title, or behind a number."""
_BY_PLURAL: Final[Mapping[str, TimeUnit]] = MappingProxyType(
    {word: unit for unit, words in _SPELLED.items() for word in words}
)
_BY_WORD: Final[Mapping[str, TimeUnit]] = MappingProxyType(
    {**_BY_PLURAL, **{word: unit for unit, words in _SHORT.items() for word in words}}
)
_COMPOUNDS: Final = ("stunden", "minuten", "sekunden")
_CLOCKS: Final[Mapping[tuple[TimeUnit, ...], Clock]] = MappingProxyType(
    {("h",): "hh:mm", ("h", "min"): "hh:mm", ("min",): "mm:ss", ("min", "s"): "mm:ss"}
)
"""Units of a title to what two numbers with a colon are below it."""
_BRACKETS: Final = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_WORD: Final = re.compile(r"[^\W\d_]+|[0-9]+")


def time_unit(word: str) -> TimeUnit | None:
    """Return the unit of time that a word is, such as `Std.`; None: it is none."""
    return _BY_WORD.get(normalise(word))


def time_units_in(title: str) -> tuple[TimeUnit, ...]:
    """Return the units of time that a title names, in their order: h and min of `Pause (hh:mm)`.

    Args:
        title: As it stands in the header.
    """
    for within in _BRACKETS.findall(title):
        words = [word for word in _WORD.findall(within) if word not in ("in", "en")]
        found: list[TimeUnit | None] = [_short(word) for word in words]
        if found and None not in found:
            return _distinct(found)
    words = _WORD.findall(_BRACKETS.sub(" ", title))
    behind = takewhile(lambda word: _short(word) is not None, reversed(words[1:]))
    named = {len(words) - 1 - place for place, _ in enumerate(behind)}
    units: list[TimeUnit | None] = [
        _short(word) if place in named else _spelled(word) for place, word in enumerate(words)
    ]
    return _distinct(units)


def _distinct(units: Iterable[TimeUnit | None]) -> tuple[TimeUnit, ...]:
    return tuple(unit for unit in dict.fromkeys(units) if unit is not None)


def _short(word: str) -> TimeUnit | None:
    # A capital letter alone is another abbreviation: `H` and `D` are men and women.
    return None if len(word) == 1 and word.isupper() else time_unit(word)


def _spelled(word: str) -> TimeUnit | None:
    plain = normalise(word)
    ending = next((each for each in _COMPOUNDS if plain.endswith(each)), plain)
    return _BY_PLURAL.get(ending)


def under_title(field: FieldSpec, title: str) -> FieldSpec:
    """Return a field as the title of its column measures it: in hours below `Duration (h)`.

    If the title and the type disagree about what `1:30` means, nothing says it.

    Args:
        field: What the column holds.
        title: As it stands in the header.
    """
    if field.kind is not ColumnKind.DURATION:
        return field
    own = time_units_of(field)
    named, units, clock = time_units_in(title), own, field.clock
    if len(named) == 1:
        known = own or ("h", "min", "s")
        units = named if named[0] in known else ()
    if (said := _CLOCKS.get(named)) is not None:
        clock = said if field.clock in (None, said) else None
    return replace(field, units=units, clock=clock)


def time_units_of(field: FieldSpec) -> tuple[TimeUnit, ...]:
    """Return the units of time that a field lists."""
    return tuple(unit for each in field.units or () if (unit := time_unit(each)) is not None)


_CLOCK: Final = re.compile(
    r"(?:([0-9]{1,6}):)?([0-9]{1,3}):([0-5]?[0-9])(?:[.,]([0-9]{1,9}))?", re.ASCII
)
_DOTTED: Final = re.compile(
    r"([0-9]{1,6})[.]([0-5]?[0-9])[.]([0-5][0-9])(?:,([0-9]{1,9}))?", re.ASCII
)
"""Hours, minutes and seconds with dots, as German timekeepers write them."""
_UNITS: Final = re.compile(
    r"(?:PT)?(?:([0-9]{1,6})\s*(?:hours?|hrs?|std\.?|h|\u00b0)\s*)?"
    r"(?:([0-9]{1,3})\s*(?:minutes?|mins?\.?|m|'|\u2019|\u2032)\s*)?"
    r"(?:([0-9]{1,5})(?:[.,]([0-9]{1,9}))?\s*(seconds?|sec?\.?|sek\.?|s|''|\"|\u201d|\u2033)?)?",
    re.ASCII | re.IGNORECASE,
)
_CLOCK_UNIT: Final = re.compile(r"([0-9:.,]+)\s*(h|hrs?|std\.?|min\.?)", re.ASCII | re.IGNORECASE)
_MAY_BE_MINUTES: Final = re.compile(r"[0-9]{1,2}[.,][0-5][0-9]", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,9}(?:[.,][0-9]{1,9})?", re.ASCII)
_PART_OF_DAY: Final = re.compile(r"0[.,](?=[0-9]*[1-9])[0-9]{4,}", re.ASCII)
_EPOCH: Final = datetime(1899, 12, 31)
"""Day 0 of a spreadsheet's calendar, for a length of time shown as a date."""
_MEASURED: Final = re.compile(r"([0-9]{1,9}(?:[.,][0-9]{1,9})?)\s*([^\W\d_]+)\.?,?\s*")
_SPAN: Final = re.compile(f"(?:{_MEASURED.pattern})+")


def hours_of(cells: Sequence[Cell]) -> int | None:
    """The most hours that times of a column write out; None: none writes hours."""
    texts = dict.fromkeys(cell.strip() for cell in cells if isinstance(cell, str))
    found = (_CLOCK.fullmatch(text) or _DOTTED.fullmatch(text) for text in texts)
    return max((int(each[1]) for each in found if each and each[1] is not None), default=None)


def is_short_clock(text: str) -> bool:
    """Whether a time is two numbers with a colon: hours and minutes, or minutes and seconds."""
    parts = _CLOCK.fullmatch(text.strip())
    return parts is not None and parts[1] is None and parts[4] is None


def refuse_unclear(text: str, hours: int | None) -> None:
    """Refuse a time of a column that may be read in two ways.

    `3:45` may be hours and minutes, or `3.45` minutes and seconds, if other times of the column
    write hours.

    Args:
        text: The time.
        hours: Of `hours_of`.

    Raises:
        Unreadable: It is one.
    """
    if hours is None:
        return
    parts = _CLOCK.fullmatch(text)
    is_short = parts is not None and parts[1] is None and parts[4] is None
    if _MAY_BE_MINUTES.fullmatch(text) or (parts and is_short and int(parts[2]) <= hours + 1):
        raise Unreadable(
            "can be read in two ways, as other times of this column have hours; "
            "write it with hours, minutes and seconds"
        )


def read_duration(
    cell: str | int | float | bool | date, units: Sequence[TimeUnit] = (), longest: int = LONGEST
) -> int:
    """A length of time in milliseconds, rounded half up.

    Hours:minutes:seconds, minutes:seconds as timekeepers write it, or a number.

    Args:
        cell: The cell.
        units: Of a number; the first one counts. If a day is among them, a number below 1 is a
            part of a day, as spreadsheets keep times.
        longest: Most milliseconds.

    Raises:
        Unreadable: It is none of these, or longer.
    """
    match cell:
        case bool():
            raise Unreadable(_NO_TIME)
        case int() | float():
            milliseconds = _of_number(cell, units)
        case datetime():
            milliseconds = Decimal((cell - _EPOCH) // timedelta(milliseconds=1))
        case date():
            raise Unreadable(_NO_TIME)
        case _:
            milliseconds = _of_text(cell, units)
    if not 0 <= milliseconds <= longest:
        raise Unreadable(
            f"is not between 0 and {duration_text(longest)}; correct it, or have its type declare "
            "a 'maximum' that allows it"
        )
    return int(milliseconds.quantize(Decimal(1), ROUND_HALF_UP))


def duration_text(milliseconds: int) -> str:
    """A length of time as `read_duration` reads it: `26:05:07.5`."""
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    clock = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return clock + (f".{rest:03}".rstrip("0") if rest else "")


_NO_TIME: Final = "is not a time; write it as 01:23:45"


_NO_UNIT: Final = (
    "is a number without a unit: write 01:23:45, or name the unit in the header, as in Duration (h)"
)
_MAY_BE_PART: Final = (
    "may be a part of a day, as spreadsheet programs keep times, or of a second; write it as "
    "01:23:45"
)


def _of_number(value: int | float, units: Sequence[TimeUnit]) -> Decimal:
    exact = Decimal(repr(value))
    if not exact.is_finite():
        raise Unreadable(_NO_TIME)
    if "d" in units and 0 < exact < 1:
        return exact * _SCALES["d"]
    return _measured(exact, units)


def _measured(exact: Decimal, units: Sequence[TimeUnit]) -> Decimal:
    """A number in the first of some units; zero is zero in all of them."""
    if exact and not units:
        raise Unreadable(_NO_UNIT)
    unit = units[0] if units else "s"
    if unit == "s" and _PART_OF_DAY.fullmatch(str(exact)):
        raise Unreadable(_MAY_BE_PART)
    return exact * _SCALES[unit]


def _of_text(text: str, units: Sequence[TimeUnit]) -> Decimal:
    if parts := _CLOCK.fullmatch(text):
        hours, minutes, seconds, fraction = parts.groups(default="0")
        if parts[1] is not None and int(minutes) > 59:
            raise Unreadable("has more than 59 minutes to the hour")
        return _milliseconds(hours, minutes, seconds, fraction)
    if parts := _DOTTED.fullmatch(text):
        return _milliseconds(*parts.groups(default="0"))
    if (parts := _CLOCK_UNIT.fullmatch(text)) and (clock := _CLOCK.fullmatch(parts[1])):
        if clock[1] is None and parts[2][0] in "hHsS":
            return _milliseconds(clock[2], clock[3], "0", "0")
        return _of_text(parts[1], units)
    if _NUMBER.fullmatch(text):
        return _measured(Decimal(text.replace(",", ".")), units)
    if _SPAN.fullmatch(text) and (span := _of_units(_MEASURED.findall(text))) is not None:
        return span
    if parts := _UNITS.fullmatch(text):
        hours, minutes, seconds, fraction, unit = parts.groups()
        if hours is not None and minutes is None and unit is None:
            # What follows hours without a unit is minutes: `1h02`.
            minutes, seconds = seconds, None
        return _milliseconds(hours or "0", minutes or "0", seconds or "0", fraction or "0")
    raise Unreadable(_NO_TIME)


def _of_units(parts: Sequence[tuple[str, str]]) -> Decimal | None:
    """What several numbers with units add up to, if each unit is smaller than the one before."""
    scales = [_SCALES[unit] for _, word in parts if (unit := time_unit(word)) is not None]
    if len(scales) < len(parts) or any(second >= first for first, second in pairwise(scales)):
        return None
    numbers = (Decimal(number.replace(",", ".")) for number, _ in parts)
    return sum((n * scale for n, scale in zip(numbers, scales, strict=True)), Decimal(0))


def _milliseconds(hours: str, minutes: str, seconds: str, fraction: str) -> Decimal:
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return (whole + Decimal(f"0.{fraction}")) * 1000
