"""What a column of an imported table may be called and may hold."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from enum import Enum, auto
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal

CODE_CHARACTERS: Final = 100
LINE_CHARACTERS: Final = 255
TEXT_CHARACTERS: Final = 2_000
MAIL_CHARACTERS: Final = 254
"""What a mail server takes (RFC 5321, 4.5.3.1.3, without the brackets)."""
INTEGER_MAX: Final = 2_147_483_647
"""What a 32-bit column of a database holds."""
YEARS: Final = range(1900, 2200)
"""Years of days, unless a field says otherwise: a day in another year is rather mistyped."""
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


_UMLAUTS: Final = MappingProxyType(
    str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
)


_LETTERS_ALONE: Final = MappingProxyType(
    {place: chr(place).casefold() if chr(place).isalnum() else None for place in range(128)}
)


def squash(text: str) -> str:
    """A header without case, accents, punctuation and spaces: `First-Name *` is `firstname`."""
    if text.isascii():
        return text.translate(_LETTERS_ALONE)
    return normalise(text).replace(" ", "")


UNIT_SIGN: Final = re.compile(
    r"(?:\b(?:us|ca?|au?|hk|nz|r|s))?\$|[\u20ac\u00a3\u00a5\u20b9\u20bd%\u2030]"
    # Not that of a number: `N\u00b0 2`.
    r"|(?<!\bn)(?<!\bn[. ])\u00b0(?:[cf]\b)?",
    re.IGNORECASE,
)
"""A sign of a unit or currency in a header."""


PERCENT: Final = frozenset(("%", "percent", "prozent", "pct"))
"""The unit of which a hundred are one."""


def unit_signs(text: str) -> frozenset[str]:
    """Return the signs of units and currencies in a header, in capitals: `%`, `\u20ac`, `US$`."""
    return frozenset(map(str.upper, UNIT_SIGN.findall(text)))


def written(text: str) -> Iterator[str]:
    """A text, and the way it is typed on a keyboard without umlauts."""
    yield text
    spelled_out = text.translate(_UMLAUTS)
    if spelled_out != text:
        yield spelled_out


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
    """Milliseconds, from hours:minutes:seconds, a number with a unit, or a spreadsheet's time."""
    ENTITY = auto()
    """A row of another table, which is found by its text."""
    BOOLEAN = auto()
    """Yes or no, in four languages; a blank cell is neither."""
    TIME = auto()
    """A time of day."""
    TIMESTAMP = auto()
    """A day and a time of day: in UTC if the field has a zone, else as the file has it."""
    MONEY = auto()
    """An exact number, beside which a currency may stand."""
    PHONE = auto()
    """Digits, with a plus sign in front of a country's code."""


NUMBERS: Final = frozenset({ColumnKind.DECIMAL, ColumnKind.INTEGER, ColumnKind.MONEY})
"""Kinds whose cells may have decimal points or commas."""
DAYS: Final = frozenset({ColumnKind.DATE, ColumnKind.TIMESTAMP})
"""Kinds whose cells have an order of day and month."""
Clock = Literal["hh:mm", "mm:ss"]
Bound = int | Decimal | date | time
"""The smallest or largest value of a field, as a value of its kind; a length of time has
milliseconds, and a day with a time its local time."""
_ORDERED: Final = (
    NUMBERS | DAYS | frozenset({ColumnKind.PLACE, ColumnKind.DURATION, ColumnKind.TIME})
)

_MOST_CHARACTERS: Final[Mapping[ColumnKind, int]] = MappingProxyType(
    {
        ColumnKind.CODE: CODE_CHARACTERS,
        ColumnKind.MAIL: MAIL_CHARACTERS,
        ColumnKind.TEXT: LINE_CHARACTERS,
    }
)


@dataclass(frozen=True)
class FieldSpec:
    """One column of a table.

    Attributes:
        name: As programs call it: a column of the table in the database, or FIRST_NAME.
        kind: How cells are read.
        required: A blank cell is a problem, and so is a file without the column.
        aliases: Other headers for it, in English and German; compared normalised.
        max_length: Characters a text may have; None: as many as its kind allows.
        minimum: Smallest value.
        choices: Value to the other ways to write it.
        blank: What a blank cell means.
        filled: A blank cell is a problem where the file has the column.
        units: Units that its header may name beside it; None: any that does not scale the values.
            Of a duration, a bare number is in the first of them, unless its header names another
            one.
        words: What stands for a number or date to the number or date: `frei` is a fee of 0.
        part: The day that a year alone, or a month and a year, means; None: they are no dates.
        past: Years of two digits are years that have been.
        title: As people call it.
        target: `table.column` that its values go to.
        either: A row or file with this other field can do without.
        beside: Headers that mean it only in the company of another field: `Name` is the last
            name where there is a column for the first.
        instead: Headers that mean it where neither it nor `either` has a column of its own.
        examples: Cells that are right.
        resolver: Name of the resolver that finds what cells refer to.
        creates: A person may have a missing candidate created.
        maximum: Largest value.
        pattern: What a whole text has to match; see `compiled_pattern`.
        blanks: Texts that count as a blank cell here, beside those that always do.
        currency: Code of the currency of its amounts; None: a sign beside one says nothing.
        zone: Name of the zone of its local times; None: they have none, and no offset either.
        unknown: What happens to a value that names no row, of a field with a resolver.
        clock: What two numbers with a colon are, of a duration; None: a cell must not say so.
    """

    name: str
    kind: ColumnKind = ColumnKind.TEXT
    required: bool = False
    aliases: tuple[str, ...] = ()
    max_length: int | None = None
    minimum: Bound | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    blank: str | None = None
    filled: bool = False
    units: tuple[str, ...] | None = None
    words: Mapping[str, int | float] = field(default_factory=lambda: MappingProxyType({}))
    part: Literal["first", "last"] | None = None
    past: bool = False
    title: str = ""
    target: str = ""
    either: str | None = None
    beside: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    instead: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    resolver: str | None = None
    creates: bool = False
    maximum: Bound | None = None
    pattern: str | None = None
    blanks: tuple[str, ...] = ()
    currency: str | None = None
    zone: str | None = None
    unknown: Literal["ask", "create", "refuse"] = "ask"
    clock: Clock | None = None

    def __post_init__(self) -> None:
        if (self.kind is ColumnKind.ENTITY) != (self.resolver is not None):
            raise ValueError(f"{self.name}: a field of kind ENTITY has a resolver, and no other")
        is_bounded = self.minimum is not None or self.maximum is not None
        if is_bounded and self.kind not in _ORDERED:
            raise ValueError(f"{self.name}: values of kind {self.kind.name} have no order")

    @cached_property
    def is_limited(self) -> bool:
        """Whether a value may be refused that is right for its kind."""
        return (self.minimum, self.maximum, self.pattern) != (None, None, None)

    @cached_property
    def blank_texts(self) -> frozenset[str]:
        """Texts of `blanks`, in lower case."""
        return frozenset(each.strip().lower() for each in self.blanks)

    @property
    def is_needed(self) -> bool:
        """Whether a blank cell is a problem, whatever else its row holds."""
        return self.required and self.either is None

    @cached_property
    def characters(self) -> int:
        """Characters a text may have."""
        return self.max_length or _MOST_CHARACTERS.get(self.kind, TEXT_CHARACTERS)

    @property
    def table(self) -> str:
        """Table that its values go to."""
        return self.target.partition(".")[0]

    @property
    def column(self) -> str:
        """Column that its values go to."""
        return self.target.partition(".")[2]

    @cached_property
    def own_headers(self) -> frozenset[str]:
        """Squashed headers that are its own name."""
        return _squashed((self.name, self.title))

    @cached_property
    def other_headers(self) -> frozenset[str]:
        """Squashed headers that mean it as well."""
        return _squashed(self.aliases) - self.own_headers

    @property
    def headers(self) -> frozenset[str]:
        """Squashed headers that mean it by themselves."""
        return self.own_headers | self.other_headers

    @cached_property
    def is_percent(self) -> bool:
        """Whether its values are percentages: `10%` is 10."""
        return not PERCENT.isdisjoint(each.strip().lower() for each in self.units or ())

    @cached_property
    def signs(self) -> frozenset[str]:
        """Signs of units in its headers."""
        return unit_signs(" ".join((self.title, *self.aliases)))

    @cached_property
    def title_words(self) -> Sequence[str]:
        """The longest word of each header.

        A word that holds another one of them is omitted: the shorter word finds it as well.
        """
        words = sorted({max(each.split(), key=len) for each in self.wordings if each})
        return [word for word in words if not any(each in word for each in words if each != word)]

    @cached_property
    def headers_beside(self) -> Mapping[str, str]:
        """Squashed header to the field that must be there as well."""
        return {squash(header): other for header, other in self.beside.items()}

    @cached_property
    def headers_instead(self) -> frozenset[str]:
        """Squashed headers that mean it in a file without columns of its own."""
        return _squashed(self.instead)

    @cached_property
    def wordings(self) -> Sequence[str]:
        """Normalised headers, for comparing by likeness."""
        headers = (self.name, self.title, *self.aliases, *self.beside)
        return list(dict.fromkeys(normalise(form) for each in headers for form in written(each)))

    @cached_property
    def years(self) -> range:
        """The years in which its days are, unless its bounds allow more."""
        bounds = [each.year for each in (self.minimum, self.maximum) if isinstance(each, date)]
        return range(min([YEARS.start, *bounds]), max([YEARS[-1], *bounds]) + 1)

    @cached_property
    def choice_of(self) -> Mapping[str, str]:
        """Normalised spelling to value."""
        return {
            normalise(spelling): value
            for value, spellings in self.choices.items()
            for spelling in (value, *spellings)
        }

    @cached_property
    def meaning_of(self) -> Mapping[str, int | float]:
        """Normalised word to the number that it means."""
        return {normalise(word): meaning for word, meaning in self.words.items()}


def _squashed(headers: Iterable[str]) -> frozenset[str]:
    return frozenset(squash(form) for header in headers for form in written(header) if form)


def text(name: str, *aliases: str, max_length: int | None = None) -> FieldSpec:
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
    return FieldSpec(name, ColumnKind.CODE, required, aliases, blank=blank, units=units)


def amount(name: str, *aliases: str, units: tuple[str, ...] | None = None) -> FieldSpec:
    """A decimal that is not negative: a rate, a price, hours."""
    return FieldSpec(name, ColumnKind.DECIMAL, aliases=aliases, minimum=0, units=units)
