"""What a title of a column means: names, units in brackets, titles in two rows."""

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final

from domain.imports.tables import TableSpec
from domain.tabular.fields import FieldSpec, normalise
from domain.tabular.habits import CURRENCIES

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


class Specificity(IntEnum):
    """How exactly a title names a field."""

    SPLIT = 1
    """Only without the unit or currency that it names as well."""
    WORD = 2
    """One word that is another name."""
    WORDS = 3
    """Several words that are another name."""
    NAME = 4
    """The field's own name."""
    MAPPED = 5
    """The message says what it means."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a title means."""

    field: FieldSpec
    specificity: Specificity


def plain_title(title: str) -> str:
    """A title as `normalise` writes it; remembered, for documents of a kind have the same ones."""
    return _remembered(title) if len(title) <= _REMEMBERED else normalise(title)


@lru_cache(maxsize=4096)
def _remembered(title: str) -> str:
    return normalise(title)


def meaning_of(title: str, spec: TableSpec) -> Meaning | None:
    """The field that a title names: exact names first, then without units; no similarity.

    Args:
        title: As it stands in the header.
        spec: What the table holds.
    """
    name = plain_title(title)
    if (field := spec.by_header.get(name)) is not None:
        return Meaning(field, _specificity(field, name))
    if not _OPENING.search(title) and not _is_unit(name.rpartition(" ")[2]):
        # Nothing but a unit, which it does not name, can be left out of it.
        return None
    bare, units = _without_brackets(title)
    words = normalise(bare).split()
    while words and " ".join(words) not in spec.by_header and _is_unit(words[-1]):
        units.append(words.pop())
        if words and words[-1] in _LINKS:
            words.pop()
    field = spec.by_header.get(" ".join(words))
    if field is None or not units or not _keeps(field, title, units):
        return None
    return Meaning(field, Specificity.SPLIT)


def _specificity(field: FieldSpec, name: str) -> Specificity:
    if name == plain_title(field.name):
        return Specificity.NAME
    return Specificity.WORDS if " " in name else Specificity.WORD


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
    if field.units is None:
        return True
    return all(not name or name in field.units for name in map(normalise, units))


def is_unit_cell(text: str) -> bool:
    """Whether a cell holds a unit or currency and nothing else: `EA`, `[m]`, `USD`, `%`."""
    words = plain_title(text).split()
    return bool(text.strip()) and all(
        _is_unit(word) or word in _LINKS or word in _SCALES for word in words
    )
