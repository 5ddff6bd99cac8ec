"""What a report of rejected rows remembers for the day it comes back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.tabular.notations import Notation
from domain.tabular.rows import Cell

_TITLE: Final = "docflow report"
_NOTATION: Final = "notation"
_COLUMN: Final = "column"
_PERCENTAGE: Final = "percentage"
_DOTTED: Final = "dotted"
_OPEN: Final = "open"


@dataclass(frozen=True, slots=True)
class ReportMemory:
    """What was settled about the columns of a document.

    Attributes:
        notations: Field to how its column writes numbers or dates; None: that was open.
        columns: Title to the field that a person said it means.
        percentages: Fields whose values have a percent sign.
        dotted: Dates with dots do not say their order.
    """

    notations: Mapping[str, Notation | None] = field(default_factory=dict[str, Notation | None])
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    percentages: frozenset[str] = frozenset()
    dotted: bool = False

    def rows(self) -> list[tuple[str, str, str]]:
        """As rows of a sheet."""
        return [
            (_TITLE, "1", ""),
            *(
                (_NOTATION, name, _OPEN if notation is None else notation.name)
                for name, notation in self.notations.items()
            ),
            *((_COLUMN, title, name) for title, name in self.columns.items()),
            *((_PERCENTAGE, name, "") for name in sorted(self.percentages)),
            *([(_DOTTED, "", "")] if self.dotted else []),
        ]


def read_memory(rows: Iterable[Sequence[Cell]]) -> ReportMemory:
    """What a sheet remembers; nothing where it is another one."""
    notations: dict[str, Notation | None] = {}
    columns: dict[str, str] = {}
    percentages: set[str] = set()
    dotted = False
    known = {notation.name: notation for notation in Notation}
    for number, cells in enumerate(rows):
        if number == 0 and cells[:1] != [_TITLE]:
            break
        texts = [str(cell or "") for cell in cells[:3]]
        kind, name, value = texts + [""] * (3 - len(texts))
        if kind == _NOTATION and (value == _OPEN or value in known):
            notations[name] = known.get(value)
        elif kind == _COLUMN:
            columns[name] = value
        elif kind == _PERCENTAGE:
            percentages.add(name)
        dotted = dotted or kind == _DOTTED
    return ReportMemory(notations, columns, frozenset(percentages), dotted)
