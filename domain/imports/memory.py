"""What a report of rejected rows remembers for the day it comes back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.tabular.notations import Notation
from domain.tabular.rows import Cell

_TITLE: Final = "docflow report"
_NOTATION: Final = "notation"
_COLUMN: Final = "column"
_OPEN: Final = "open"


@dataclass(frozen=True, slots=True)
class ReportMemory:
    """What was settled about the columns of a document.

    Attributes:
        notations: Field to how its column writes numbers or dates; None: that was open.
        columns: Title to the field that a person said it means.
    """

    notations: Mapping[str, Notation | None] = field(default_factory=dict[str, Notation | None])
    columns: Mapping[str, str] = field(default_factory=dict[str, str])

    def rows(self) -> list[tuple[str, str, str]]:
        """As rows of a sheet."""
        return [
            (_TITLE, "1", ""),
            *(
                (_NOTATION, name, _OPEN if notation is None else notation.name)
                for name, notation in self.notations.items()
            ),
            *((_COLUMN, title, name) for title, name in self.columns.items()),
        ]


def read_memory(rows: Iterable[Sequence[Cell]]) -> ReportMemory:
    """What a sheet remembers; nothing where it is another one."""
    notations: dict[str, Notation | None] = {}
    columns: dict[str, str] = {}
    known = {notation.name: notation for notation in Notation}
    for number, cells in enumerate(rows):
        if number == 0 and cells[:1] != [_TITLE]:
            break
        if len(cells) < 3:
            continue
        kind, name, value = (str(cell) for cell in cells[:3])
        if kind == _NOTATION and (value == _OPEN or value in known):
            notations[name] = known.get(value)
        elif kind == _COLUMN:
            columns[name] = value
    return ReportMemory(notations, columns)
