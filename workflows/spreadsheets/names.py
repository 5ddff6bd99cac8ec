"""Names and bibs as sheets hold them, and what is remarked about an odd one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from workflows.shared.cells import Cell, KeyOccurrences, repair_garbled
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.notations import part_of_date
from workflows.spreadsheets.fields import FoundValue
from workflows.spreadsheets.mappings import CellMapping
from workflows.spreadsheets.people import FILE_ROWS, PERSON, Identity, KnownPerson

_NO_NAME: Final = re.compile(r"\s*(?:[-\u2010-\u2015\u2212]+|\.)\s*")
_SUFFIX: Final = re.compile(r"(?:jr|sr|jun|sen|[ivx]+|ph\.? ?d|m\.? ?d|esq)\.?", re.IGNORECASE)


def stored_name(cell: Cell) -> Cell:
    """A name; None if only a dash or a dot stands in its place."""
    return None if isinstance(cell, str) and _NO_NAME.fullmatch(cell) else cell


def given_and_family(cell: Cell) -> tuple[Cell, Cell]:
    """First and last name of `Ferreira, Jo\u00e3o`; another text is one name, the last."""
    if not isinstance(cell, str) or cell.count(",") != 1:
        return None, cell
    family, given = map(str.strip, cell.split(","))
    if not family or not given or _SUFFIX.fullmatch(given):
        return None, cell
    return given, family


NAMES: Final = ("FIRST_NAME", "LAST_NAME")
MARKUP: Final = "holds a code of a web page, such as &uuml;"
GARBLED: Final = "was saved in a wrong encoding"
DIGITS: Final = "is a name with digits"
INITIALS: Final = "holds initials alone"
NO_DAY: Final = "has no day; the first or last day is stored"
REMARKS: Final = (MARKUP, GARBLED, DIGITS, INITIALS, NO_DAY)
_MARKUP: Final = re.compile(r"&(?:[A-Za-z]{2,8}|#[0-9]{2,6}|#x[0-9A-Fa-f]{2,5});")
_INITIALS: Final = re.compile(r"\s*(?:[^\W\d_]\.\s*)+")


def remark_on(field: FieldSpec, cell: Cell) -> str | None:
    """Return what a person should look at in a cell; None: nothing."""
    if part_of_date(field, cell) is not None:
        return NO_DAY
    if not isinstance(cell, str) or field.kind is not ColumnKind.TEXT:
        return None
    return remark_on_name(cell) if field.name in NAMES else _remark_on_text(cell)


def remark_on_name(text: str) -> str | None:
    """Return why a name may be none, or a wrong one; None: it looks like one."""
    if any(map(str.isdigit, text)) and not _MARKUP.search(text):
        return DIGITS
    return INITIALS if _INITIALS.fullmatch(text) else _remark_on_text(text)


def _remark_on_text(text: str) -> str | None:
    if _MARKUP.search(text):
        return MARKUP
    return None if repair_garbled(text) is None else GARBLED


def remarks_on(fields: Mapping[int, FieldSpec], cells: Sequence[Cell]) -> Mapping[int, str]:
    """Return what a person should look at in a row, by column.

    Args:
        fields: Field of each column, by its id, which is its place from 1.
        cells: The cells of the row.
    """
    read = ((id, each) for id, each in fields.items() if id <= len(cells))
    found = ((id, remark_on(each, cells[id - 1])) for id, each in read)
    return {id: remark for id, remark in found if remark is not None}


BIB: Final = "BIB"
"""Name of the field whose values are bibs."""
BIBS: Final = "bibs"
"""Kind of what answers about bibs refer to: who keeps one."""
SAME_BIB: Final = FieldSpec(
    "SAME_BIB",
    ColumnKind.ENTITY,
    title="Same bib",
    target="event_participants.bib",
    resolver=BIBS,
    creates=True,
)
"""Whether a row has a bib that another person has too. No column means it, as with `PERSON`."""
QUESTIONS: Final = MappingProxyType({each.name: each for each in (PERSON, SAME_BIB)})
"""Fields whose values are questions about rows, by name: nothing in a column means them."""
REASON: Final = "another person has the same bib"
_TEXT_CHARACTERS: Final = 200
_LIKELY: Final = 0.5


class Bearer(NamedTuple):
    """A row with a bib, and the person that it is about."""

    line: int
    bib: str
    identity: Identity
    key: str | None
    """Of the person; None: it is not known yet."""

    @property
    def question(self) -> str:
        """As people see it; the same whenever the row is read."""
        return f"{self.bib}: {self.identity.text}"[:_TEXT_CHARACTERS]


@dataclass(frozen=True, slots=True)
class BibAnswer:
    """What becomes of the bib of a row.

    Attributes:
        waits: A person has to answer first.
        empty: The row goes in without a bib.
    """

    waits: bool = False
    empty: bool = False


_KEPT: Final = BibAnswer()


class BibMatcher:
    """Finds rows with a bib that another person has, part by part, in order.

    Args:
        decided: Question to what was answered.
        seen: Bibs of the rows so far.
    """

    def __init__(self, decided: Mapping[str, CellMapping], seen: KeyOccurrences) -> None:
        self._decided = decided
        self._seen = seen
        self._found: list[FoundValue] = []

    def match(
        self, bearers: Sequence[Bearer], known: Sequence[KnownPerson], *, counted: bool = False
    ) -> Sequence[BibAnswer]:
        """Take the next rows that may go in, of which no two are about the same person.

        Args:
            bearers: The rows that have a bib.
            known: People in the database, with the bibs that they have.
            counted: The rows were taken before a restart: what was asked then is not asked again.
        """
        answers = [self._answered(each) for each in bearers]
        bearing = [
            each
            for each, answer in zip(bearers, answers, strict=True)
            if answer is None or not answer.empty
        ]
        lines = [each.line for each in bearing]
        occurrences = self._seen.add([each.bib for each in bearing], lines)
        first = {line: met for line, (_, met) in zip(lines, occurrences, strict=True)}
        holders = _holders(known)
        return [
            answer or self._one(each, first[each.line], holders.get(each.bib, ()), counted=counted)
            for each, answer in zip(bearers, answers, strict=True)
        ]

    def take_found(self) -> list[FoundValue]:
        """Questions about bibs since this was asked last."""
        taken, self._found = self._found, []
        return taken

    def _answered(self, bearer: Bearer) -> BibAnswer | None:
        answer = self._decided.get(bearer.question)
        return None if answer is None else BibAnswer(empty=not answer.create)

    def _one(
        self, bearer: Bearer, first: int, holders: Sequence[KnownPerson], *, counted: bool
    ) -> BibAnswer:
        if bearer.key is None or counted:
            # Asked once it is known whom the row is about.
            return _KEPT
        others = [each for each in holders if each.key != bearer.key]
        keeps: tuple[int, str] | None = None
        if first != bearer.line:
            keeps = FILE_ROWS + first, f"row {first}"
        elif others:
            keeps = others[0].id, others[0].identity.text
        if keeps is None:
            return _KEPT
        id, name = keeps
        self._found.append(
            FoundValue(
                SAME_BIB.name,
                bearer.question,
                1,
                alternatives=((id, f"stays with {name}"[:_TEXT_CHARACTERS], _LIKELY),),
                question=SAME_BIB.name,
                reason=REASON,
            )
        )
        return BibAnswer(waits=True)


def bearers_of(
    lines: Sequence[int],
    bibs: Sequence[Any],
    identities: Sequence[Identity | None],
    keys: Mapping[int, str | None],
    places: Iterable[int],
) -> Mapping[int, Bearer]:
    """The rows at some places that have a bib and are about a person, by place."""
    return {
        i: Bearer(lines[i], bib, who, keys.get(i))
        for i in places
        if isinstance(bib := bibs[i], str) and (who := identities[i]) is not None
    }


def _holders(known: Sequence[KnownPerson]) -> Mapping[str, Sequence[KnownPerson]]:
    holders: dict[str, list[KnownPerson]] = {}
    for each in known:
        for bib in each.bibs:
            holders.setdefault(bib, []).append(each)
    return holders
