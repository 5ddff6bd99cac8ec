"""Titles of columns that name a unit or a currency beside their field."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from workflows.shared.currencies import (
    CURRENCIES,
    code_of,
    currencies_in,
    is_currency,
    same_currency,
)
from workflows.shared.durations import time_unit, time_units_in, time_units_of
from workflows.shared.fields import (
    NUMBERS,
    PERCENT,
    UNIT_SIGN,
    ColumnKind,
    FieldSpec,
    normalise,
    unit_signs,
)

_BRACKETS: Final = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]|\{([^{}]*)\}")
_OPENING: Final = re.compile(r"[(\[{]")
_REMEMBERED: Final = 200
"""Characters of a title up to which it is remembered: a hostile one would take up memory."""
_SCALES: Final = frozenset(
    (
        *("k", "tsd", "teur", "tusd", "keur", "kusd", "kchf", "kgbp", "mn", "mio", "meur", "musd"),
        *("000", "000s", "1000", "x1000", "thousand", "thousands", "tausend", "million"),
        *("millions", "mill", "milliers", "dozen", "dozens", "dutzend", "hundred", "hundreds"),
    )
)
"""Words of a title that say that its values are to be multiplied."""
_SCALE_SIGNS: Final = ("k\u20ac", "k$", "m\u20ac", "m$", "'000", "\u2019000", "t\u20ac")
_PER: Final = re.compile(r"/|\b(?:per|je|pro)\b")
_RATES: Final = ("rate", "price", "per_hour", "burden")
"""Ends of the names of fields whose values are per something; no other field's are."""
_UNITS: Final = frozenset(
    (
        *("ea", "each", "pc", "pcs", "no", "nos", "st", "stk", "stck", "stuck", "lot", "set", "ls"),
        *("m", "mm", "cm", "km", "lm", "lfm", "rm", "ft", "lf", "in", "inch", "dn", "nps"),
        *("m2", "sqm", "qm", "sm", "m\u00b2", "sf", "sft", "sqft", "ft2", "m3", "cbm", "cy", "cum"),
        *("kg", "t", "to", "mt", "lb", "lbs", "ton", "tons", "tonnes", "g", "l", "ltr"),
        *("h", "hr", "hrs", "hours", "std", "mh", "d", "day", "days", "tage"),
        *("pct", "percent", "prozent"),
    )
)
_LINKS: Final = frozenset(("in", "per", "je", "pro", "en"))
_SIGNS: Final[Mapping[str, str]] = MappingProxyType(
    {"%": "percent", "\u2030": "permille", "\u00b0": "degree"}
)
"""Sign of a unit to its name."""
_WELL_KNOWN: Final = frozenset(("EUR", "USD", "GBP", "CHF", "EURO", "EUROS", "DOLLAR", "FRANKEN"))
_SHARES: Final = frozenset(("percent", "permille"))


def plain_title(title: str) -> str:
    """A title as `normalise` writes it; remembered, for documents of a kind have the same ones."""
    return _remembered(title) if len(title) <= _REMEMBERED else normalise(title)


@lru_cache(maxsize=4096)
def _remembered(title: str) -> str:
    return normalise(title)


def title_key(title: str) -> str:
    """A title as a message maps it: words, and the signs of units beside them."""
    return " ".join((plain_title(title), *sorted(unit_signs(title)))).strip()


def field_named(title: str, by_header: Mapping[str, FieldSpec]) -> FieldSpec | None:
    """Return the field that a title names; None: no field, or a sign of a unit beside it.

    Args:
        title: As it stands in the header.
        by_header: Field by every squashed header that means it.
    """
    field = by_header.get(plain_title(title).replace(" ", ""))
    return field if field is not None and unit_signs(title) <= field.signs else None


def field_without_unit(
    title: str, by_header: Mapping[str, FieldSpec], *, units_alone: bool = False
) -> FieldSpec | None:
    """Return the field that a title names beside a unit or currency: `Weight (kg)`; None: no field.

    A unit or currency that is not that of the field names another one.

    Args:
        title: As it stands in the header.
        by_header: Field by every squashed header that means it.
        units_alone: Brackets may hold nothing but a unit, of a field that can have one.
    """
    first, *rest = plain_title(title).split() or ("",)
    ends = _ends_with_unit([first, *rest])
    if not (ends or is_currency(first) or _OPENING.search(title) or UNIT_SIGN.search(title)):
        # Nothing but a unit, which it does not name, can be left out of it.
        return None
    words, units = _parts_of(title, by_header)
    field = by_header.get("".join(words))
    if field is None or not units or not _keeps(field, title, units):
        return None
    if units_alone and field.units is None:
        is_sure = field.kind in NUMBERS and all(map(is_unit_cell, units))
        return field if is_sure or _is_timed(field, title) else None
    return field


def _parts_of(title: str, by_header: Mapping[str, FieldSpec]) -> tuple[list[str], list[str]]:
    """Words of a title that may name a field, and the units beside them."""
    bare = _BRACKETS.sub(" ", title)
    units = ["".join(groups) for groups in _BRACKETS.findall(title)] + UNIT_SIGN.findall(bare)
    words = normalise(UNIT_SIGN.sub(" ", bare)).split()
    while words and "".join(words) not in by_header:
        if units and words[-1] in _LINKS:
            words.pop()
        elif _ends_with_unit(words):
            units.append(words.pop())
        elif is_currency(words[0]):
            units.append(words.pop(0))
        else:
            break
    return words, units


def names_other_unit(title: str, field: FieldSpec) -> bool:
    """Return whether a title names a field beside a unit or currency that is not the field's."""
    if (field.units, field.currency) == (None, None) and field.kind is not ColumnKind.MONEY:
        return False
    measured = replace(field, kind=ColumnKind.DECIMAL, units=None, currency=None)
    return (
        field_without_unit(title, dict.fromkeys(sorted(field.headers), field)) is None
        and field_without_unit(title, dict.fromkeys(sorted(field.headers), measured)) is not None
    )


def currency_in(title: str) -> str | None:
    """Return the code of the currency that a title names beside its field; None: not one.

    A sign that several currencies share is that of the best known one. Of codes that may be words
    in small letters, `sek`, only well known ones are taken.
    """
    words, units = _parts_of(title, {})
    if not words or any(sign in title.lower() for sign in _SCALE_SIGNS):
        return None
    named = {each for unit in units for each in currencies_in(unit, "")}
    sure = {each for each in named if each in title or not each.isalpha() or each in _WELL_KNOWN}
    codes = {code for each in sure if (code := code_of(each)).lower() in CURRENCIES}
    return min(codes) if len(codes) == 1 and sure == named else None


def _ends_with_unit(words: Sequence[str]) -> bool:
    """Whether the last of several words is a unit: `Weight kg`, `Dauer in Minuten`."""
    *others, last = words
    return bool(others) and (
        _is_unit(last) or (others[-1] in _LINKS and time_unit(last) is not None)
    )


def _is_timed(field: FieldSpec, title: str) -> bool:
    """Whether a title says in which unit of time the lengths of its column are."""
    return field.kind is ColumnKind.DURATION and bool(time_units_in(title))


def _is_unit(word: str) -> bool:
    return word in _UNITS or is_currency(word)


def _name(unit: str) -> str:
    """A unit as others are compared with it."""
    for sign in UNIT_SIGN.findall(unit):
        unit = unit.replace(sign, f" {_SIGNS.get(sign[0]) or code_of(sign.upper())} {sign[1:]} ", 1)
    name = normalise(unit)
    return "percent" if name in PERCENT else name


def _keeps(field: FieldSpec, title: str, units: list[str]) -> bool:
    """Whether values under a title with these units are those of the field, and not multiples."""
    lowered = title.lower()
    if any(sign in lowered for sign in _SCALE_SIGNS):
        return False
    if _PER.search(lowered) and not field.name.endswith(_RATES):
        return False
    if not _SCALES.isdisjoint(word for unit in units for word in normalise(unit).split()):
        return False
    if field.kind is ColumnKind.MONEY and not _SHARES.isdisjoint(map(_name, units)):
        return False
    if (own := field.currency) is not None:
        named = {unit: currencies_in(unit, own) for unit in units}
        if not all(same_currency(each, own) for found in named.values() for each in found):
            return False
        units = [unit for unit, found in named.items() if not found]
    if field.units is None:
        return True
    if _is_timed(field, title):
        # Several are a clock, such as `hh:mm`, and no number.
        unit, *others = time_units_in(title)
        return bool(others) or unit in time_units_of(field)
    known = {"", *map(_name, field.units)}
    return all(_name(unit) in known for unit in units)


def is_unit_cell(text: str) -> bool:
    """Whether a cell holds a unit or currency and nothing else: `EA`, `[m]`, `USD`, `%`."""
    words = plain_title(UNIT_SIGN.sub(" ", text)).split()
    return bool(text.strip()) and all(
        _is_unit(word) or word in _LINKS or word in _SCALES for word in words
    )
