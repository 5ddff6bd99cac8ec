"""What a column of a spreadsheet may mean."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal

from contracts.spreadsheets import FIELD_TITLE, FieldFacts
from domain.tabular.fields import (
    CODE_CHARACTERS,
    LINE_CHARACTERS,
    TEXT_CHARACTERS,
    ColumnKind,
    FieldSpec,
    normalise,
)

MAIL_CHARACTERS: Final = 254
"""What a mail server takes (RFC 5321, 4.5.3.1.3, without the brackets)."""
KEYS: Final = frozenset(("FIRST_NAME", "LAST_NAME", "BIB", "MEMBER_NO"))
"""Fields that make a line of a list a row, whatever else it holds."""
_UMLAUTS: Final = MappingProxyType(
    str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
)


def squash(text: str) -> str:
    """A header without case, accents, punctuation and spaces: `First-Name *` is `firstname`."""
    return normalise(text).replace(" ", "")


def written(text: str) -> Iterator[str]:
    """A text, and the way it is typed on a keyboard without umlauts."""
    yield text
    spelled_out = text.translate(_UMLAUTS)
    if spelled_out != text:
        yield spelled_out


_MOST_CHARACTERS: Final[Mapping[ColumnKind, int]] = MappingProxyType(
    {
        ColumnKind.CODE: CODE_CHARACTERS,
        ColumnKind.MAIL: MAIL_CHARACTERS,
        ColumnKind.TEXT: LINE_CHARACTERS,
    }
)


@dataclass(frozen=True)
class SheetField:
    """One field of an import type.

    Attributes:
        name: As programs call it: FIRST_NAME.
        title: As people call it.
        target: `table.column` that its values go to.
        kind: How cells are read.
        required: A blank cell is a problem, and so is a file without the column.
        either: A row or file with this other field can do without.
        aliases: Other headers for it, in English and German.
        beside: Headers that mean it only in the company of another field: `Name` is the last
            name where there is a column for the first.
        instead: Headers that mean it where neither it nor `either` has a column of its own.
        examples: Cells that are right.
        resolver: Name of the resolver that finds what cells refer to.
        creates: A person may have a missing candidate created.
        max_length: Characters of a text.
        minimum: Smallest number.
        choices: Value to the other ways to write it.
        words: What stands for a number or date to the number or date: `frei` is a fee of 0.
        part: The day that a year alone, or a month and a year, means; None: they are no dates.
        past: Years of two digits are years that have been.
    """

    name: str
    title: str
    target: str
    kind: ColumnKind = ColumnKind.TEXT
    required: bool = False
    either: str | None = None
    aliases: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    instead: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    resolver: str | None = None
    creates: bool = False
    max_length: int | None = None
    minimum: int | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    part: Literal["first", "last"] | None = None
    past: bool = False

    def __post_init__(self) -> None:
        if (self.kind is ColumnKind.ENTITY) != (self.resolver is not None):
            raise ValueError(f"{self.name}: a field of kind ENTITY has a resolver, and no other")

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
    def spec(self) -> FieldSpec:
        """How the document imports would read it."""
        return FieldSpec(
            self.name,
            self.kind,
            self.required and self.either is None,
            max_length=self.max_length or _MOST_CHARACTERS.get(self.kind, TEXT_CHARACTERS),
            minimum=self.minimum,
            choices=self.choices,
            words=self.words,
            part=self.part,
            past=self.past,
        )

    @property
    def facts(self) -> FieldFacts:
        """What a run knows about it."""
        return FieldFacts(
            name=self.name,
            required=self.required,
            resolver=self.resolver,
            creates=self.creates,
            title=self.title[:FIELD_TITLE],
            either=self.either,
        )


def _squashed(headers: Iterable[str]) -> frozenset[str]:
    return frozenset(squash(form) for header in headers for form in written(header))
