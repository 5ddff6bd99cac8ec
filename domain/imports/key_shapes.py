"""What the keys of a table look like, so that a text which is none shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, cast

from domain.imports.tables import TableSpec
from domain.tabular.fields import normalise
from domain.tabular.rows import Cell
from domain.tabular.words import may_hold_words, word_of

_FEWEST: Final = 2
"""Keys without which nothing is usual."""
_USUAL: Final = 0.9
_LAST: Final = itemgetter(-1)


@dataclass(frozen=True, slots=True)
class KeyShape:
    """What nearly all keys have in common.

    Attributes:
        digits: They hold a digit.
        solid: They hold no blank.
    """

    digits: bool = False
    solid: bool = False

    def fits(self, text: str) -> bool:
        """Whether a text looks like the keys."""
        text = text.strip()
        if self.digits and not any(map(str.isdigit, text)):
            return False
        return not self.solid or not any(map(str.isspace, text))


class KeyShapes:
    """Collects the keys of rows that hold something else as well.

    Args:
        place: Position of the first column of the key.
        spec: What the table holds: its titles are not keys.
    """

    def __init__(self, place: int, spec: TableSpec) -> None:
        self._place = place
        self._spec = spec
        self._keys = self._with_digits = self._solid = 0

    def add(self, rows: Sequence[Sequence[Cell]], columns: Sequence[Sequence[Cell]]) -> None:
        """Take the next rows.

        Args:
            rows: Cells of each.
            columns: The same cells by column.
        """
        if self._are_solid_with_digits(columns):
            self._keys += len(rows)
            self._with_digits += len(rows)
            self._solid += len(rows)
            return
        for cells in rows:
            key = cells[self._place] if self._place < len(cells) else None
            if key is None or lone_place(cells) is not None:
                continue
            text = str(key).strip()
            has_digits = any(map(str.isdigit, text))
            if not has_digits and self._is_no_key(text):
                continue
            self._keys += 1
            self._with_digits += has_digits
            self._solid += not any(map(str.isspace, text))

    def _are_solid_with_digits(self, columns: Sequence[Sequence[Cell]]) -> bool:
        """Whether all rows hold something else, and a key that ends with a digit; quick."""
        if self._place >= len(columns) or not are_filled(columns[self._place]):
            return False
        texts = list(map(str.strip, cast("Sequence[str]", columns[self._place])))
        if not all(map(str.isdigit, map(_LAST, texts))) or len("".join(texts).split()) != 1:
            return False
        others = (cells for place, cells in enumerate(columns) if place != self._place)
        return any(map(are_filled, others))

    def _is_no_key(self, text: str) -> bool:
        if may_hold_words((text,)) and word_of(text) is not None:
            return True
        return normalise(text) in self._spec.by_header

    def usual(self) -> KeyShape:
        """What nearly all of them have in common."""
        if self._keys < _FEWEST:
            return KeyShape()
        least = _USUAL * self._keys
        return KeyShape(self._with_digits >= least, self._solid >= least)


def are_filled(cells: Sequence[Cell]) -> bool:
    """Whether all cells are texts that hold something; quick."""
    return set(map(type, cells)) == {str} and all(map(str.strip, cast("Sequence[str]", cells)))


def lone_place(cells: Sequence[Cell], but: int | None = None) -> int | None:
    """Position of the only cell of a row that holds something; None: several do, or none.

    Args:
        cells: Of the row.
        but: Position that does not count.
    """
    found = None
    for place, cell in enumerate(cells):
        if cell is None or place == but or (isinstance(cell, str) and not cell.strip()):
            continue
        if found is not None:
            return None
        found = place
    return found
