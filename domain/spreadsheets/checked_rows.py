"""Rows of a spreadsheet on their way: as staged, checked without the database, and settled."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

from contracts.problems import Problem
from domain.spreadsheets.people import Identity
from domain.spreadsheets.people_matching import Resolved
from domain.spreadsheets.records import FoundValue, ParkedRow, TargetRows
from domain.spreadsheets.types.base import SheetRows
from domain.tabular.rows import Cell


class SourceRow(NamedTuple):
    """A row of the staged file."""

    line: int
    """As the user's program shows it, from 1."""
    offset: int
    """Byte of the staged file where the row begins."""
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Some rows of a spreadsheet; the fields are those of a chunk."""

    lines: Sequence[int]
    main: str
    targets: Sequence[TargetRows]
    errors: Sequence[tuple[int, Sequence[Problem]]]
    skipped: Sequence[tuple[int, str]]
    parked: Sequence[ParkedRow]
    found: Sequence[FoundValue]


class CheckedRows:
    """Rows as far as they are checked without the database."""

    def __init__(self, source: Sequence[SourceRow]) -> None:
        self.source = source
        self.identities: Sequence[Identity | None] = ()
        """Who each row is about, where its type is about people; None: it cannot be read."""
        self.people: dict[int, Resolved] = {}
        """The person of each row that has one."""
        self.left_out: set[int] = set()
        """Rows that a person decided to leave out."""
        self.values: dict[str, Sequence[Any]] = {}
        self.problems: dict[int, list[Problem]] = defaultdict(list)
        self.blank: set[int] = set()
        self.waiting: set[int] = set()
        """Rows with a value without a known meaning."""
        self.unclear: set[tuple[int, str]] = set()
        """Cells that a row rule cannot check."""
        self.open: dict[int, list[tuple[str, str | None]]] = defaultdict(list)
        """Header and text of cells without a known meaning."""
        self.same_bib: dict[int, tuple[str, str]] = {}
        """Header and text of bibs that another person has too, of rows that wait for an answer."""
        self.flaws: dict[int, list[tuple[str, str | None, str]]] | None = None
        """Header, text and fault of cells, in the place of problems where only cells are checked:
        a review may have as many of them as cells, and a problem for each takes half a second."""

    @property
    def bad(self) -> set[int]:
        """Rows that are not written, whatever is answered."""
        return self.problems.keys() | self.blank

    @property
    def rows(self) -> SheetRows:
        """All of them, whatever is wrong with them."""
        return SheetRows(len(self.source), self.values)

    def without(self, *left_out: Collection[int]) -> tuple[SheetRows, list[int]]:
        """Some of the rows, and their places."""
        places = range(len(self.source))
        if not any(left_out):
            return self.rows, list(places)
        kept = [not any(i in some for some in left_out) for i in places]
        return self.rows.only(kept), list(compress(places, kept))
