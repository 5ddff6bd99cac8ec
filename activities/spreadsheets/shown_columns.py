"""What whole columns of an upload show about the cells in them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from workflows.shared.amounts import count_currencies
from workflows.shared.cells import Cell, is_filled
from workflows.shared.conversion import ticks_of
from workflows.shared.durations import hours_of
from workflows.shared.fields import NUMBERS, ColumnKind, FieldSpec
from workflows.shared.notations import Notation
from workflows.shared.shares import Shares
from workflows.spreadsheets.mappings import ColumnMapping, MappingStatus
from workflows.spreadsheets.runs import UNUSED, UnusedCells


class ShownColumns:
    """What columns of times, numbers and truth values show in all rows, and the first rows do not.

    Whether 3:45, 12 % or x is in question depends on any other row.

    Attributes:
        hours: The most hours that times of each field write out.
        ticks: Fields whose truth values are ticks and crosses.
        shares: What the numbers of each field show of percentages.
        currencies: How often the amounts of each field name a currency, if the type gives none.

    Args:
        mapped: Field of each column, by place.
    """

    def __init__(self, mapped: Mapping[int, FieldSpec]) -> None:
        self._times: dict[str, int] = {}
        self._truths: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._amounts: dict[str, int] = {}
        for place, each in mapped.items():
            if each.kind is ColumnKind.DURATION:
                self._times[each.name] = place
            elif each.kind is ColumnKind.BOOLEAN:
                self._truths[each.name] = place
            elif each.kind in (ColumnKind.DECIMAL, ColumnKind.INTEGER) and not each.is_percent:
                self._numbers[each.name] = place
            if each.kind in NUMBERS and each.currency is None:
                self._amounts[each.name] = place
        self.hours: dict[str, int] = {}
        self.ticks: dict[str, Notation] = {}
        self.shares = {name: Shares() for name in self._numbers}
        self.currencies = {name: Counter[str]() for name in self._amounts}

    def places(self, *, has_signs: bool) -> Collection[int]:
        """Return the columns to look at, if a number has a sign or a currency, or none has."""
        signed = (*self._numbers.values(), *self._amounts.values()) if has_signs else ()
        return {*self._times.values(), *self._truths.values(), *signed}

    def add(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Look at the cells of the next rows."""

        def cells(place: int) -> Sequence[Cell]:
            return [row[place] for row in rows if place < len(row)]

        for name, place in self._times.items():
            if (hours := hours_of(cells(place))) is not None:
                self.hours[name] = max(hours, self.hours.get(name, hours))
        for name, place in self._truths.items():
            self.ticks.update((name, found) for found in ticks_of(cells(place)))
        for name, place in self._numbers.items():
            self.shares[name].add(cells(place))
        for name, place in self._amounts.items():
            count_currencies(cells(place), self.currencies[name])


class UnusedColumns:
    """Counts what columns hold that mean nothing so far.

    Args:
        columns: Those of the file, or none.
    """

    def __init__(self, columns: Sequence[ColumnMapping]) -> None:
        self._columns = [each for each in columns if each.status is MappingStatus.UNMATCHED]
        self._values = Counter[int]()

    def add(self, cells: Sequence[Cell]) -> None:
        """Look at the next row."""
        for each in self._columns:
            if each.index < len(cells) and is_filled(cells[each.index]):
                self._values[each.index] += 1

    def forget(self) -> None:
        """Begin anew."""
        self._values.clear()

    def found(self) -> tuple[UnusedCells, ...]:
        """The first of those that hold something, and one more if there are others."""
        every = (
            UnusedCells(index=each.index, values=self._values[each.index])
            for each in self._columns
            if self._values[each.index]
        )
        return tuple(islice(every, UNUSED + 1))
