"""Titles of columns that name a unit or a currency beside their field."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from workflows.shared.currencies import CURRENCIES, currency_of, same_currency
from workflows.shared.fields import NUMBERS, FieldSpec, normalise

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


def plain_title(title: str) -> str:
    """A title as `normalise` writes it; remembered, for documents of a kind have the same ones."""
    return _remembered(title) if len(title) <= _REMEMBERED else normalise(title)


@lru_cache(maxsize=4096)
def _remembered(title: str) -> str:
    return normalise(title)


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
    if not _OPENING.search(title) and not _is_unit(plain_title(title).rpartition(" ")[2]):
        # Nothing but a unit, which it does not name, can be left out of it.
        return None
    bare, units = _without_brackets(title)
    words = normalise(bare).split()
    while words and "".join(words) not in by_header and _is_unit(words[-1]):
        units.append(words.pop())
        if words and words[-1] in _LINKS:
            words.pop()
    field = by_header.get("".join(words))
    if field is None or not units or not _keeps(field, title, units):
        return None
    if units_alone and field.units is None:
        return field if field.kind in NUMBERS and all(map(is_unit_cell, units)) else None
    return field


def names_other_unit(title: str, field: FieldSpec) -> bool:
    """Return whether a title names a field beside a unit or currency that is not the field's."""
    measured = replace(field, units=None, currency=None)
    return (
        (field.units, field.currency) != (None, None)
        and field_without_unit(title, dict.fromkeys(sorted(field.headers), field)) is None
        and field_without_unit(title, dict.fromkeys(sorted(field.headers), measured)) is not None
    )


def _without_brackets(title: str) -> tuple[str, list[str]]:
    inside = ["".join(groups) for groups in _BRACKETS.findall(title)]
    return _BRACKETS.sub(" ", title), inside


def _is_unit(word: str) -> bool:
    return word in _UNITS or word in CURRENCIES


def _keeps(field: FieldSpec, title: str, units: list[str]) -> bool:
    """Whether values under a title with these units are those of the field, and not multiples."""
    lowered = title.lower()
    if any(sign in lowered for sign in _SCALE_SIGNS):
        return False
    if _PER.search(lowered) and not field.name.endswith(_RATES):
        return False
    words = [word for unit in units for word in normalise(unit).split()]
    if not _SCALES.isdisjoint(words):
        return False
    if field.currency is not None:
        named = (currency_of(f"{unit} 1", field.currency) for unit in units)
        if not all(same_currency(each, field.currency) for each in named if each is not None):
            return False
    if field.units is None:
        return True
    return all(not name or name in field.units for name in map(normalise, units))


def is_unit_cell(text: str) -> bool:
    """Whether a cell holds a unit or currency and nothing else: `EA`, `[m]`, `USD`, `%`."""
    words = plain_title(text).split()
    return bool(text.strip()) and all(
        _is_unit(word) or word in _LINKS or word in _SCALES for word in words
    )
