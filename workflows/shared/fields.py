"""What a column of an imported table may be called and may hold."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal

CODE_CHARACTERS: Final = 100
LINE_CHARACTERS: Final = 255
TEXT_CHARACTERS: Final = 2_000
INTEGER_MAX: Final = 2_147_483_647
"""What a 32-bit column of a database holds."""
DECIMAL_DIGITS: Final = 14
"""Digits before the decimal point of NUMERIC(20, 6)."""
DECIMAL_PLACES: Final = 6

_NOT_WORD = re.compile(r"[\W_]+")


def normalise(text: str) -> str:
    """A header or choice without case, accents, punctuation and spacing.

    Line breaks, no-break spaces and underscores become one space; ß becomes ss.
    """
    if text.isascii():
        return _NOT_WORD.sub(" ", text.casefold()).strip()
    # Once before folding, for compatibility characters, and once after it, for what folding makes.
    folded = unicodedata.normalize("NFKD", text).casefold()
    decomposed = unicodedata.normalize("NFKD", folded)
    bare = "".join(mark for mark in decomposed if not unicodedata.combining(mark))
    return _NOT_WORD.sub(" ", bare).strip()


class ColumnKind(Enum):
    """How the cells of a column are read."""

    TEXT = auto()
    """Free text; line breaks and tabs are part of it."""
    CODE = auto()
    """An identifier: kept as it stands, except that a number cell 1200.0 reads `1200`."""
    DECIMAL = auto()
    """An exact number, rounded half up to six places."""
    INTEGER = auto()
    DATE = auto()
    CHOICE = auto()
    MAIL = auto()
    PLACE = auto()
    """A whole number, as results write places: `3`, `3.`, `=3`, `T5`, `#5`, `2nd`, `12/345`."""
    DURATION = auto()
    """Milliseconds, from hours:minutes:seconds, seconds or a spreadsheet's time."""
    ENTITY = auto()
    """A row of another table, which is found by its text."""


@dataclass(frozen=True)
class FieldSpec:
    """One column of a table.

    Attributes:
        name: Column of the table in the database.
        kind: How cells are read.
        required: A blank cell is a problem, and so is a file without the column.
        aliases: Other headers for it, in English and German; compared normalised.
        max_length: Characters a text may have.
        minimum: Smallest number.
        choices: Value to the other ways to write it.
        blank: What a blank cell means.
        filled: A blank cell is a problem where the file has the column.
        units: Units that its header may name beside it, normalised; None: any that does not
            scale the values.
        words: What stands for a number or date to the number or date: `frei` is a fee of 0.
        part: The day that a year alone, or a month and a year, means; None: they are no dates.
        past: Years of two digits are years that have been.
    """

    name: str
    kind: ColumnKind = ColumnKind.TEXT
    required: bool = False
    aliases: tuple[str, ...] = ()
    max_length: int = TEXT_CHARACTERS
    minimum: int | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    blank: str | None = None
    filled: bool = False
    units: tuple[str, ...] | None = None
    words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    part: Literal["first", "last"] | None = None
    past: bool = False

    @cached_property
    def headers(self) -> frozenset[str]:
        """Every normalised header that means this field."""
        return frozenset(normalise(header) for header in (self.name, *self.aliases))

    @cached_property
    def choice_of(self) -> Mapping[str, str]:
        """Normalised spelling to value."""
        return {
            normalise(spelling): value
            for value, spellings in self.choices.items()
            for spelling in (value, *spellings)
        }

    @cached_property
    def meaning_of(self) -> Mapping[str, str]:
        """Normalised word to the number or date that it means."""
        return {normalise(word): meaning for word, meaning in self.words.items()}


def text(name: str, *aliases: str, max_length: int = LINE_CHARACTERS) -> FieldSpec:
    """Free text."""
    return FieldSpec(name, ColumnKind.TEXT, aliases=aliases, max_length=max_length)


def code(
    name: str,
    *aliases: str,
    required: bool = False,
    blank: str | None = None,
    units: tuple[str, ...] | None = None,
) -> FieldSpec:
    """An identifier."""
    return FieldSpec(
        name, ColumnKind.CODE, required, aliases, CODE_CHARACTERS, blank=blank, units=units
    )


def amount(name: str, *aliases: str, units: tuple[str, ...] | None = None) -> FieldSpec:
    """A decimal that is not negative: a rate, a price, hours."""
    return FieldSpec(name, ColumnKind.DECIMAL, aliases=aliases, minimum=0, units=units)
