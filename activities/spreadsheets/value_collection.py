"""The distinct values of a staged file; blocking."""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from activities.spreadsheets.staged_rows import StagedRows
from domain.spreadsheets.validation import SourceRow
from domain.spreadsheets.value_book import ValueBook, value_text
from domain.tabular.rows import Cell

DISTINCT_VALUES: Final = 10_000
"""Values of a field that are collected ahead; further ones are met while rows are processed."""
STEP_SECONDS: Final = 0.3
"""Rows and values are looked at for this long at a time: a cancellation request waits no longer."""
_ROWS_OF_A_LOOK: Final = 2_000
_VALUES_OF_A_LOOK: Final = 50


class ValueCollector:
    """Counts distinct values, then resolves them; blocking.

    Attributes:
        rows: Rows looked at so far.
        resolved: Values resolved so far.

    Args:
        path: The staged file.
        places: Field to the place of its column.
        book: Resolves the values, and has found them afterwards.
        left_out: Lines of rows that do not count.
    """

    def __init__(
        self,
        path: Path,
        places: Mapping[str, int],
        book: ValueBook,
        left_out: Collection[int] = (),
    ) -> None:
        self._staged = StagedRows(path)
        self._source = self._staged.read()
        self._places = places
        self._book = book
        self._left_out = left_out
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in places}
        self._pending: Iterator[tuple[str, str, int]] | None = None
        self.rows = 0
        self.resolved = 0

    def step(self) -> bool:
        """Work for a moment; return whether everything is done."""
        ends = time.monotonic() + STEP_SECONDS
        while time.monotonic() < ends:
            if self._pending is None:
                rows = list(islice(self._source, _ROWS_OF_A_LOOK))
                self._count(rows)
                if not rows:
                    self._pending = self._values()
            else:
                values = list(islice(self._pending, _VALUES_OF_A_LOOK))
                for name, text, count in values:
                    self._book.meaning(name, text, count)
                self.resolved += len(values)
                if not values:
                    return True
        return False

    def close(self) -> None:
        """Close the file."""
        self._staged.close()

    def _count(self, rows: Sequence[SourceRow]) -> None:
        self.rows += len(rows)
        if self._left_out:
            rows = [row for row in rows if row.line not in self._left_out]
        for name, place in self._places.items():
            known = self._counts[name]
            met = _distinct([row.cells[place] for row in rows if len(row.cells) > place])
            for text, count in met.items():
                if text in known or len(known) < DISTINCT_VALUES:
                    known[text] += count

    def _values(self) -> Iterator[tuple[str, str, int]]:
        for name, counts in self._counts.items():
            for text, count in counts.items():
                yield name, text, count


def _distinct(cells: Sequence[Cell]) -> Counter[str]:
    """Texts of cells, and how many there are of each; blanks left out."""
    counts: Counter[str] = Counter()
    if bool in set(map(type, cells)):
        # True equals 1: each has to become a text before they are counted.
        cells = [value_text(cell) for cell in cells]
    for cell, count in Counter(cells).items():
        if text := value_text(cell):
            counts[text] += count
    return counts
