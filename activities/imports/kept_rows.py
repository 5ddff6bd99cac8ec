"""Rows of a table between the two looks at it: what is quicker to keep is not read again."""

import marshal
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, cast

from domain.tabular.rows import Cell

KEPT_ROWS: Final = 20_000
"""So many rows are kept in memory."""
KEPT_CELLS: Final = 400_000
"""Some 40 MB."""

Row = tuple[int, list[Cell]]


class KeptRows:
    """Keeps rows, the first of them in memory and all of many in a file.

    A text is read again as quickly as such a file, a workbook takes three times as long. The rows
    of a call of `rows` may be changed; those of another are as they were.

    Args:
        folder: Scratch folder of the step.
        held: Closes the file.
        memory: Keep few rows in memory.
        aside: Keep many rows in a file.
    """

    def __init__(self, folder: Path, held: ExitStack, *, memory: bool, aside: bool) -> None:
        self._folder = folder
        self._held = held
        self._memory = memory
        self._aside = aside
        self._rows: list[Row] = []
        self._file: IO[bytes] | None = None
        self._parts: list[tuple[int, bool]] = []
        """Size of each, and whether it is pickled."""
        self._given_up = False

    def add(self, rows: Sequence[Row]) -> None:
        """The next rows; not empty."""
        if self._given_up:
            return
        if self._file is None:
            self._rows.extend(rows)
            if self._memory and _are_few(self._rows):
                return
            rows, self._rows = self._rows, []
            if not self._aside:
                self._given_up = True
                return
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - `held` closes it
            self._file = self._held.enter_context(file)
        try:
            part, pickled = marshal.dumps(cast("Any", rows)), False
        except ValueError:  # days and formulas, which only the slower format knows
            part, pickled = pickle.dumps(rows, protocol=pickle.HIGHEST_PROTOCOL), True
        self._file.write(part)
        self._parts.append((len(part), pickled))

    def rows(self) -> Iterator[Row] | None:
        """All rows from the first on; None: they have to be read again."""
        if self._given_up:
            return None
        if self._file is None:
            return ((line, list(cells)) for line, cells in self._rows)
        return chain.from_iterable(self._read(self._file))

    def _read(self, file: IO[bytes]) -> Iterator[Iterable[Row]]:
        position = 0
        for size, pickled in self._parts:
            file.seek(position)
            part = file.read(size)
            position += size
            # Written above, into a file without a name.
            yield pickle.loads(part) if pickled else marshal.loads(part)  # noqa: S301, S302


def _are_few(rows: Sequence[Row]) -> bool:
    return len(rows) <= KEPT_ROWS and len(rows) * len(rows[-1][1]) <= KEPT_CELLS
