"""What a column of a sample seems to hold, judged by the readers of an import."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from adapters.types.countries import country_names
from workflows.shared.cells import (
    Cell,
    Length,
    Signed,
    cell_text,
    is_blank,
    is_filled,
    readable,
)
from workflows.shared.conversion import Flaw, read_cells, settle_notations
from workflows.shared.currencies import ISO_4217, code_of, currency_of
from workflows.shared.declared_fields import NUMBER_KINDS, DeclaredField, field_spec
from workflows.shared.durations import is_short_clock
from workflows.shared.fields import DAYS, NUMBERS, ColumnKind, FieldSpec, normalise
from workflows.shared.notations import (
    Notation,
    currency_named,
    is_percentage,
    number_readings_of,
    unit_behind,
)
from workflows.shared.timestamps import read_clock, split_moment
from workflows.shared.titles import currency_in, is_unit_cell

_PHONE_DIGITS: Final = 8
_PHONES: Final = frozenset(
    ("phone", "tel", "telefon", "telephone", "telefono", "fax", "mobile", "mobil", "movil", "handy")
)
_COUNTRIES: Final = frozenset(
    (
        *("country", "nation", "nationality", "land", "staat", "herkunftsland", "lieferland"),
        *("nationalitat", "staatsangehorigkeit", "pays", "nationalite", "pais", "nacionalidad"),
        *("paese", "origin", "herkunft", "nat"),
    )
)
_DAY_WORDS: Final = frozenset(
    (
        *("date", "datum", "fecha", "data", "dato", "day", "tag", "dia", "jour", "giorno"),
        *("am", "on", "le", "due", "birthday", "geburtstag", "stichtag"),
    )
)
_LENGTHS: Final = frozenset(
    (
        *("duration", "dauer", "laufzeit", "fahrzeit", "arbeitszeit", "stillstand", "elapsed"),
        *("hours", "stunden", "std", "minutes", "minuten", "duree", "heures", "duracion", "horas"),
        *("durata", "ore", "split", "splits", "pace", "runtime", "downtime", "zielzeit", "lap"),
    )
)
"""Words of a title of lengths of time."""
_SHORT_LENGTHS: Final = frozenset(("pace", "split", "splits", "lap", "minutes", "minuten", "min"))
_CALLED: Final = frozenset(
    (
        *("n", "no", "nr", "id", "number", "nummer", "code", "num", "ref", "numero", "reference"),
        *("referencia", "sku", "ean", "gtin", "isbn", "imei", "serial", "sn", "key", "kennung"),
    )
)
_NUMBER: Final = ("nummer", "nr")
"""Ends of German words for the number of something."""
_POSTCODES: Final = frozenset(
    ("plz", "zip", "postcode", "postleitzahl", "postal", "zipcode", "cap", "cp")
)
_ITEMS: Final = frozenset(
    (
        *("pos", "position", "oz", "item", "partida", "ziffer", "gliederung", "kapitel", "section"),
        *("artikel", "article", "poste", "wbs", "psp", "lot", "index", "clause", "chapter"),
    )
)
"""Words of a title of numbers such as `1.10`, which are no decimals."""
_ITEM: Final = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4})*\.?")
_CHOICES: Final = 12
_WORD: Final = 40
_ODD: Final = 10
"""One cell in so many may be odd, and a column is still nearly what its other cells show."""
_STRAY_SHARE: Final = 50
_STRAYS: Final = 3
"""One cell in `_STRAY_SHARE`, and so many at most, may not be of the kind that is drafted."""
_LISTED: Final = 3
_SHOWN: Final = 20
_PARTS: Final = 2
"""Parts that a number has at most with one decimal mark."""
_CODE: Final = 3
"""Letters of a country's code at most."""
_FIRST: Final = frozenset((1, 10))
"""Where items of a list begin."""
_HOURS: Final = 24
_WITH_CENTS: Final = re.compile(r"[.,][0-9]{1,2}(?![0-9.,])")
_COMPACT: Final = re.compile(r"(?:19|20|21)[0-9]{6}")
_LENGTH: Final = re.compile(r"[0-9]:[0-9]|[0-9]\s*(?:h|std|hrs?|min|sec|sek|s)\b", re.IGNORECASE)
"""What a length of time holds: `45 m` and `6'` may be metres and feet."""
_KINDS: Final[Mapping[str, ColumnKind]] = MappingProxyType(
    {
        "date": ColumnKind.DATE,
        "timestamp": ColumnKind.TIMESTAMP,
        "integer": ColumnKind.INTEGER,
        "decimal": ColumnKind.DECIMAL,
        "money": ColumnKind.MONEY,
    }
)
"""Kinds whose notation the other columns of a document show as well."""


@dataclass(frozen=True, slots=True)
class ColumnDraft:
    """A column of a sample, and what it seems to hold.

    Attributes:
        texts: Of all rows; empty for a blank of its kind.
        unsure: What a person has to look at.
        words: Further words of the field, as the file of a type has them.
    """

    name: str
    title: str
    kind: str
    cells: Sequence[Cell]
    texts: Sequence[str]
    choices: Sequence[str] = ()
    unsure: Sequence[str] = ()
    words: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_filled(self) -> bool:
        """Whether no row lacks a value."""
        return all(self.texts)

    @property
    def is_nearly_unique(self) -> bool:
        """Whether few rows lack a value or have that of another row."""
        return len(self.texts) - len({*self.texts} - {""}) <= len(self.texts) // _ODD

    @property
    def is_unique(self) -> bool:
        """Whether each row has a value of its own."""
        return self.is_filled and len(set(self.texts)) == len(self.texts)

    @property
    def names_a_thing(self) -> bool:
        """Whether the title says that its values are what something is called by."""
        return _names_a_thing(self.title)


def column_draft(name: str, title: str, cells: Sequence[Cell], lines: Sequence[int]) -> ColumnDraft:
    """Judge a column of a sample.

    Args:
        name: What to call its field.
        title: Its title.
        cells: As read.
        lines: Line number of each.
    """
    known = FieldSpec(name, ColumnKind.CODE)
    places = [n for n, cell in enumerate(cells) if is_filled(cell) and not is_blank(cell, known)]
    filled = [cells[place] for place in places]
    texts = [cell_text(cell).strip() if is_filled(cell) else "" for cell in cells]
    values = [""] * len(texts)
    for place in places:
        values[place] = texts[place]

    def made(kind: str, *unsure: str, words: Mapping[str, str] | None = None) -> ColumnDraft:
        # A name or a free text is never blank.
        held = texts if kind == "text" else values
        return ColumnDraft(name, title, kind, cells, held, (), unsure, words or {})

    if not filled:
        return made("text", "the sample has no value for it")
    is_code = not _unread("code", known, filled)
    kind, odd, reads = _likeliest(name, title, filled)
    is_called = bool(words_of(title) & _POSTCODES) or _are_zero_led(values)
    if kind != "phone" and is_code and is_called:
        return made("code", *_lost_zeros(filled))
    if kind in NUMBER_KINDS and is_code and _are_items(title, filled):
        return made("code", "1.1 and 1.10 are two numbers here; a decimal if they are amounts")
    at = [lines[place] for place in places]
    is_near = len(odd) <= max(1, len(filled) // _ODD) and 3 * len(odd) <= len(filled)
    if is_near and len(odd) <= min(_STRAYS, len(filled) // _STRAY_SHARE):
        strays = _strays(kind, filled, at, odd)
        are_whole = kind == "integer" or all(text.isdigit() for text in values if text)
        if are_whole and len({*values}) == len(values) and _names_a_thing(title):
            return made("code", "a number by which something is called, by its header", *strays)
        unsure, words = _notes_of(kind, title, filled, reads)
        return made("money" if "currency" in words else kind, *unsure, *strays, words=words)
    if is_near and kind != "boolean" and not _names_a_thing(title):
        return made("text", f"nearly {kind}, but for {_listed(filled, at, odd)}")
    measures = dict.fromkeys(_unit_of(text) for text in values if text)
    if None not in measures:
        listed = ", ".join(filter(None, [*measures][:_LISTED]))
        return made("text", f"numbers in {listed}; an import reads one unit in a column")
    # Of several spellings, the one that is there most often stays; of these, the first.
    spelled = reversed(Counter(filter(None, values)).most_common())
    distinct = {normalise(text): text for text, _ in spelled}
    are_words = "" not in distinct and all(len(text) <= _WORD for text in distinct.values())
    if are_words and len(distinct) <= _CHOICES and len(filled) >= 3 * len(distinct):
        chosen = made("choice", "the sample has these values; are there others?")
        ordered = dict.fromkeys(distinct[normalise(text)] for text in values if text)
        return replace(chosen, choices=[*ordered])
    if is_code and all(map(_is_code, values)):
        return made("code")
    if 2 * len(odd) < len(filled) and not _names_a_thing(title):
        some = f"{len(filled) - len(odd):,} of {len(filled):,} filled cells are {kind}"
        return made("text", f"{some}, and not {_listed(filled, at, odd)}")
    return made("text")


def with_open_notations(columns: Sequence[ColumnDraft]) -> list[ColumnDraft]:
    """Ask how columns are written, if neither their own cells nor the other columns show it."""
    fields = {
        each.name: (FieldSpec(each.name, _KINDS[each.kind]), each.cells)
        for each in columns
        if each.kind in _KINDS
    }
    settled = settle_notations(fields)
    found: list[ColumnDraft] = []
    for each in columns:
        if each.kind in _KINDS and settled[each.name] is None:
            spec, cells = fields[each.name]
            if (cell := _open_cell(spec, cells)) is not None:
                if spec.kind in DAYS:
                    question = "day or month first, as in {}? Imports need date_order=dmy or mdy"
                else:
                    question = "a thousand times as much, as in {}? Imports need decimal=. or ,"
                question = question.format(cell)
                # A number that is whole in one notation may have decimals in the other.
                kind = "decimal" if each.kind == "integer" else each.kind
                each = replace(each, kind=kind, unsure=(question, *each.unsure))
        found.append(each)
    return found


def _open_cell(spec: FieldSpec, cells: Sequence[Cell]) -> str | None:
    """The first cell that can be read in two ways; None: there is none."""
    values, _ = read_cells(spec, cells, None)
    odd = {*_unread("", spec, cells)}
    flaws = (n for n, value in enumerate(values) if isinstance(value, Flaw) and n not in odd)
    place = next(flaws, None)
    return None if place is None else readable(cells[place], _SHOWN)


def _likeliest(
    name: str, title: str, cells: Sequence[Cell]
) -> tuple[str, Sequence[int], FieldSpec]:
    """The kind that reads most cells, places of those that it does not, and how it reads."""
    best, odd = ("text", FieldSpec(name, ColumnKind.TEXT)), [*range(len(cells))]
    for kind, spec in _guesses(name, title, cells):
        found = _unread(kind, spec, cells)
        if len(found) < len(odd):
            best, odd = (kind, spec), found
        if not odd:
            break
    kind, spec = best
    texts = list(map(cell_text, cells))
    if kind == "integer" and any(map(_WITH_CENTS.search, texts)):
        kind = "decimal"
    if kind in ("integer", "decimal") and any(map(currency_named, cells)):
        kind = "money"
    return kind, odd, spec


def _guesses(name: str, title: str, cells: Sequence[Cell]) -> Iterator[tuple[str, FieldSpec]]:
    """Kinds in the order in which they are tried: the first that reads most cells is drafted."""
    words, texts = words_of(title), [cell.strip() for cell in cells if isinstance(cell, str)]
    long = [text for text in texts if sum(map(str.isdigit, text)) >= _PHONE_DIGITS]
    if words & _PHONES or any(text.startswith(("+", "00")) for text in long):
        yield "phone", FieldSpec(name, ColumnKind.PHONE)
    yield "email", FieldSpec(name, ColumnKind.MAIL)
    if not {cell_text(cell).strip() for cell in cells} <= {"0", "1"}:
        yield "boolean", FieldSpec(name, ColumnKind.BOOLEAN)
    if words & _COUNTRIES or len({normalise(text) for text in texts if len(text) > _CODE}) > 1:
        yield "country", _country(name)
    yield "date", FieldSpec(name, ColumnKind.DATE, title=title)
    if any(map(_has_time, cells)):
        zone = "UTC" if any(map(_has_offset, texts)) else None
        yield "timestamp", FieldSpec(name, ColumnKind.TIMESTAMP, zone=zone)
    lengths = FieldSpec(name, ColumnKind.DURATION, clock="hh:mm")
    clocks = ("time", FieldSpec(name, ColumnKind.TIME)), ("duration", lengths)
    are_lengths = bool(words & _LENGTHS) or any(isinstance(cell, Length) for cell in cells)
    yield from reversed(clocks) if are_lengths else clocks
    units = _units_of(title, cells)
    yield "integer", FieldSpec(name, ColumnKind.INTEGER, units=units)
    yield "decimal", FieldSpec(name, ColumnKind.DECIMAL, units=units)
    yield "money", FieldSpec(name, ColumnKind.MONEY)


@cache
def _country(name: str) -> FieldSpec:
    return field_spec(name, DeclaredField(kind="country"), country_names())


def _unread(kind: str, spec: FieldSpec, cells: Sequence[Cell]) -> Sequence[int]:
    """Places of the cells that a field would refuse, or that do not show its kind.

    Of open days the day comes first, and of open numbers the decimal point.
    """
    written = settle_notations({spec.name: (spec, cells)})[spec.name]
    if written is None and spec.kind in DAYS | NUMBERS:
        written = Notation.DAY_FIRST if spec.kind in DAYS else Notation.POINT
    values, _ = read_cells(spec, cells, written)
    return [
        n
        for n, (value, cell) in enumerate(zip(values, cells, strict=True))
        if isinstance(value, Flaw) or value is None or not _shows(kind, cell, spec.title)
    ]


def _shows(kind: str, cell: Cell, title: str) -> bool:
    """Whether a cell that can be read as a kind is not more likely something else.

    A bare number may be the number of a day, a part of a day, or seconds: it is taken for one only
    if the title says so.
    """
    if kind not in ("date", "timestamp", "time", "duration"):
        return True
    if number_readings_of(cell):
        is_day = kind == "date" and bool(words_of(title) & _DAY_WORDS)
        return is_day or (
            kind == "date" and _COMPACT.fullmatch(cell_text(cell).strip()) is not None
        )
    if kind == "date":
        return not _has_time(cell)
    return kind != "duration" or (isinstance(cell, str) and _LENGTH.search(cell) is not None)


def _has_time(cell: Cell) -> bool:
    """Whether a cell holds a day with a time of day."""
    if isinstance(cell, datetime):
        return cell.time() != time()
    found = split_moment(cell.strip()) if isinstance(cell, str) else None
    clock = read_clock(found[1]) if found else None
    return clock is not None and clock[0] != time()


def _has_offset(text: str) -> bool:
    found = split_moment(text)
    clock = read_clock(found[1]) if found else None
    return clock is not None and clock[1] is not None


def _notes_of(
    kind: str, title: str, cells: Sequence[Cell], spec: FieldSpec
) -> tuple[list[str], dict[str, str]]:
    """What is not sure about a column, and further words of its spec."""
    unsure, words = list[str](), dict[str, str]()
    texts = [cell for cell in cells if isinstance(cell, str) and not isinstance(cell, Length)]
    match kind:
        case "date" if any(map(number_readings_of, cells)):
            unsure.append("days, although they are written as numbers?")
        case "timestamp" if spec.zone is not None:
            words["zone"] = spec.zone
        case "timestamp":
            unsure.append("of which clock? Then add zone: Europe/Berlin")
        case "time" if any(map(is_short_clock, texts)):
            unsure.append("a time of day, or a duration? Then add clock: hh:mm or mm:ss")
        case "time" if not all(text.strip().endswith(":00") for text in texts):
            unsure.append("a time of day, or a duration?")
        case "duration" if any(map(is_short_clock, texts)):
            is_short = bool(words_of(title) & _SHORT_LENGTHS) or any(map(_is_beyond_a_day, texts))
            words["clock"] = "mm:ss" if is_short else "hh:mm"
            unsure.append("hours and minutes (hh:mm), or minutes and seconds (mm:ss)?")
        case "integer" | "decimal" | "money":
            _note_measure(title, cells, spec, unsure, words)
        case _:
            pass
    return unsure, words


def _note_measure(
    title: str,
    cells: Sequence[Cell],
    spec: FieldSpec,
    unsure: list[str],
    words: dict[str, str],
) -> None:
    """Note the currency that a title or cells name, and the unit of cells."""
    signs = [each for cell in cells if (each := currency_named(cell))]
    named = list(dict.fromkeys(map(code_of, signs)))
    currency = currency_in(title) or (named[0] if len(named) == 1 else None)
    if currency in ISO_4217:
        words["currency"] = currency
        if "$" in title or any("$" in sign for sign in signs):
            unsure.append("a dollar of the United States?")
    elif named:
        unsure.append(f"its cells name {', '.join(named)}; which currency is it?")
    for unit in spec.units or ():
        words["units"] = json.dumps([unit], ensure_ascii=False)
        if not is_unit_cell(unit):
            unsure.append(f"is {unit!r} a unit?")
        elif unit != "%" and not all(isinstance(cell, str) and _unit_of(cell) for cell in cells):
            unsure.append(f"are numbers without a unit in {unit} as well?")
    signed = next(filter(is_percentage, cells), None)
    if signed is not None:
        shown = (signed.text if isinstance(signed, Signed) else str(signed)).strip()
        number = shown.replace("%", "").strip()
        unsure.append(f"{shown} is kept as {number}; without units it is a part of 1")


def _is_beyond_a_day(text: str) -> bool:
    first = text.strip().partition(":")[0]
    return is_short_clock(text) and first.isdecimal() and int(first) >= _HOURS


def _strays(
    kind: str, cells: Sequence[Cell], lines: Sequence[int], odd: Sequence[int]
) -> Iterator[str]:
    """Say what becomes of the cells that are not of the kind that is drafted."""
    lost = [n for n in odd if kind == "date" and _has_time(cells[n])]
    rejected = [n for n in odd if n not in lost]
    if lost:
        yield f"the time of day is lost of {_listed(cells, lines, lost)}"
    if rejected:
        yield f"rejected as no {kind}: {_listed(cells, lines, rejected)}"


def _listed(cells: Sequence[Cell], lines: Sequence[int], places: Sequence[int]) -> str:
    listed = (f"{readable(cells[n], _SHOWN)!r} in line {lines[n]}" for n in places[:_LISTED])
    more = f" and {len(places) - _LISTED:,} more" if len(places) > _LISTED else ""
    return ", ".join(listed) + more


def _units_of(title: str, cells: Sequence[Cell]) -> tuple[str] | None:
    """The unit that most numbers name, if none names another one; the rest is read alike.

    A percentage is a number of percent.
    """
    if any(map(is_percentage, cells)):
        return ("%",)
    named = [unit for cell in cells if isinstance(cell, str) and (unit := _unit_of(cell.strip()))]
    is_one = len({*named}) == 1 and 2 * len(named) >= len(cells)
    return (named[0],) if is_one and not _names_a_thing(title) else None


def _unit_of(text: str) -> str | None:
    """The unit behind the number of a text; a letter that is no unit is a part of a code."""
    unit = None if currency_of(text) else unit_behind(text)
    if unit is None or is_unit_cell(unit):
        return unit
    return unit if len(unit) > 1 and text.removesuffix(unit)[-1].isspace() else None


def words_of(title: str) -> set[str]:
    """Return the words of a title, in small letters without accents."""
    return {*normalise(title).split()}


def _names_a_thing(title: str) -> bool:
    words = words_of(title)
    return "#" in title or any(word in _CALLED or word.endswith(_NUMBER) for word in words)


def _is_code(text: str) -> bool:
    return len(text) <= _WORD and " " not in text


def _are_zero_led(texts: Sequence[str]) -> bool:
    return any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)


def _lost_zeros(cells: Sequence[Cell]) -> Iterator[str]:
    """Say that numbers of several lengths may have lost zeros at their beginning."""
    lengths = {len(cell_text(cell)) for cell in cells}
    if len(lengths) > 1 and any(isinstance(cell, int | float) for cell in cells):
        yield "numbers may have lost zeros at their beginning; format the cells as text"


def _are_items(title: str, cells: Sequence[Cell]) -> bool:
    """Whether cells such as `1.10` number items, and are no decimals.

    Either the title says so, or the cells do: they have three parts; or they rise, and `1.10`
    follows `1.9`, or they count up from 1 or 10 below each number.
    """
    texts = [cell_text(cell).strip().rstrip(".") for cell in cells]
    if not all(map(_ITEM.fullmatch, texts)) or not any("." in text for text in texts):
        return False
    words = words_of(title)
    if words and all(word in _ITEMS or _names_a_thing(word) for word in words):
        return True
    dotted = [text.split(".") for text in texts if "." in text]
    if any(len(parts) > _PARTS for parts in dotted):
        return True
    items = [tuple(map(int, text.split("."))) for text in texts]
    if not all(second > first or second[-1] in _FIRST for first, second in pairwise(items)):
        return False
    shortest = min(len(parts[-1]) for parts in dotted)
    if any(parts[-1].endswith("0") and len(parts[-1]) > shortest for parts in dotted):
        return True
    groups: dict[tuple[int, ...], list[int]] = {}
    for *above, last in (item for item in items if len(item) > 1):
        groups.setdefault(tuple(above), []).append(last)
    several = [each for each in groups.values() if len(each) > 1]
    steps = {second - first for each in several for first, second in pairwise(each)}
    begins = {each[0] for each in groups.values()}
    return len(several) > 1 and len(steps) == 1 and steps == begins <= _FIRST
