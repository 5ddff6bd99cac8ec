"""Rows of a list that are no people: repeated headers, totals and footers.

A row with a name, a bib or a member number is a row. It is skipped in three cases only, and a
person sees each, and can have it imported all the same.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from contracts.spreadsheets import ColumnMapping, MappingStatus
from domain.spreadsheets.fields import KEYS
from domain.spreadsheets.records import SkippedRow
from domain.spreadsheets.remarks import NAMES, remark_on_name
from domain.tabular.habits import number_readings_of
from domain.tabular.rows import Cell, is_filled
from domain.tabular.values import readable
from domain.tabular.words import footer_of, is_totals_word

DOCFLOW: Final = "docflow"
"""Who leaves rows out that no person has looked at."""
REPEATED: Final = "repeats the header"
TOTAL: Final = "is a total: a word for totals in place of a name, and sums of the rows above"
FOOTER: Final = "is the footer of a printed page, as on other pages"
NO_NAME: Final = "holds one cell and no name; it is taken for a note"
NO_NAME_TOTAL: Final = "holds no name; it is taken for a total"
SUSPECT: Final = "looks like a total or a note; it is imported unless you leave it out"
ODD_NAME: Final = "holds an odd name; it is imported unless you leave it out"
NAME_ALONE: Final = "holds nothing but a name; it is imported unless you leave it out"
REASONS: Final = (REPEATED, TOTAL, FOOTER, NO_NAME, NO_NAME_TOTAL, SUSPECT, ODD_NAME, NAME_ALONE)
SHOWN: Final = 200
"""Rows whose cells are kept for a person to see; of further ones the line and the reason."""
_REMARKS: Final = 1_000
"""Rows with a remark that are kept."""
_CELLS: Final = 8
_CHARACTERS: Final = 60
_SUMMED: Final = 100
"""Rows that are compared with sums."""
_TITLES: Final = 2


class SkippedRows:
    """Finds the rows of a list that are no people.

    Args:
        columns: What the columns of the file mean.
    """

    def __init__(self, columns: Sequence[ColumnMapping]) -> None:
        self._titles = {column.index: _bare(column.header) for column in columns}
        mapped = [each for each in columns if each.target and each.status != MappingStatus.IGNORED]
        self._keys = [column.index for column in mapped if column.target in KEYS]
        self._names = frozenset(column.index for column in mapped if column.target in NAMES)
        self._rows = 0
        self._alone: list[tuple[int, Sequence[Cell]]] = []
        self._found: dict[int, SkippedRow] = {}
        self._footers: dict[str, dict[int, str]] = defaultdict(dict)
        self._totals: dict[int, Sequence[Cell]] = {}

    def add(self, line: int, cells: Sequence[Cell]) -> None:
        """Look at the next row."""
        self._look_at_row(line, cells)
        if line not in self._found:
            self._look_at_names(line, cells)

    def _look_at_row(self, line: int, cells: Sequence[Cell]) -> None:
        keys = [(i, cells[i]) for i in self._keys if i < len(cells) and is_filled(cells[i])]
        if len(keys) > 1 or not self._keys:
            if keys and self._is_title(*keys[0]) and self._repeats(cells):
                self._note(line, cells, REPEATED)
            return
        if not keys:
            if reason := _nameless([cell for cell in cells if is_filled(cell)]):
                self._note(line, cells, reason)
        elif self._is_title(*keys[0]) and self._repeats(cells):
            self._note(line, cells, REPEATED)
        elif isinstance(key := keys[0][1], str):
            self._look_at_key(line, cells, keys[0][0], key)

    def _look_at_names(self, line: int, cells: Sequence[Cell]) -> None:
        """Note names that may be none; they are imported."""
        self._rows += 1
        filled = {i for i, cell in enumerate(cells) if is_filled(cell)}
        if len(self._alone) < _REMARKS and filled and filled <= self._names:
            self._alone.append((line, cells))
        names = (str(cells[i]) for i in sorted(self._names & filled))
        if len(self._found) < _REMARKS and any(map(remark_on_name, names)):
            self._note(line, cells, ODD_NAME, is_skipped=False)

    def _is_title(self, place: int, cell: Cell) -> bool:
        return isinstance(cell, str) and _bare(cell) == self._titles.get(place)

    def _repeats(self, cells: Sequence[Cell]) -> bool:
        filled = [i for i, cell in enumerate(cells) if is_filled(cell)]
        return len(filled) >= _TITLES and all(self._is_title(i, cells[i]) for i in filled)

    def found(self, rows: Iterable[tuple[int, Sequence[Cell]]]) -> Sequence[SkippedRow]:
        """What was found, by line.

        Args:
            rows: Line and cells of all rows again, from the first.
        """
        if 2 * len(self._alone) < self._rows:
            for line, cells in self._alone:
                self._note(line, cells, NAME_ALONE, is_skipped=False)
        for lines in self._footers.values():
            if len(set(lines.values())) > 1:
                for line in lines:
                    row = self._found[line]
                    self._found[line] = row._replace(reason=FOOTER, is_skipped=True)
        if self._totals:
            for line in self._sums(rows):
                self._found[line] = self._found[line]._replace(reason=TOTAL, is_skipped=True)
        return [self._found[line] for line in sorted(self._found)]

    def _look_at_key(self, line: int, cells: Sequence[Cell], place: int, key: str) -> None:
        is_total, footer = is_totals_word(key), footer_of(key)
        if not is_total and footer is None:
            return
        others = [cell for i, cell in enumerate(cells) if i != place and is_filled(cell)]
        if is_total and others and not any(map(_has_letters, others)):
            if len(self._totals) < _SUMMED:
                self._totals[line] = cells
        elif others:
            return
        elif footer is not None:
            self._footers[footer][line] = key
        self._note(line, cells, SUSPECT, is_skipped=False)

    def _sums(self, rows: Iterable[tuple[int, Sequence[Cell]]]) -> Collection[int]:
        """Lines of possible totals each of whose numbers is a sum, or the number, of rows above."""
        wanted = sorted(self._totals)
        columns = sorted({i for cells in self._totals.values() for i in range(len(cells))})
        since: Mapping[int, list[Decimal]] = {i: [Decimal(0), Decimal(0)] for i in columns}
        count = part = 0
        proven: list[int] = []
        for line, cells in rows:
            if line > wanted[-1]:
                break
            if line in self._totals:
                numbers = {i: _numbers(cell) for i, cell in enumerate(cells) if is_filled(cell)}
                known = {Decimal(count), Decimal(part)}
                if all(
                    i in self._keys or not values.isdisjoint({*since[i], *known})
                    for i, values in numbers.items()
                ):
                    proven.append(line)
                    part = 0
                    for each in since.values():
                        each[1] = Decimal(0)
                    continue
            if line in self._found and self._found[line].is_skipped:
                continue
            count, part = count + 1, part + 1
            for i in columns:
                if i < len(cells) and len(values := _numbers(cells[i])) == 1:
                    [value] = values
                    since[i][0] += value
                    since[i][1] += value
        return proven

    def _note(
        self, line: int, cells: Sequence[Cell], reason: str, *, is_skipped: bool = True
    ) -> None:
        shown: list[str] = []
        if len(self._found) < SHOWN:
            texts = (readable(cell, _CHARACTERS) for cell in cells)
            shown = [text for text in texts if text][:_CELLS]
        self._found[line] = SkippedRow(line, reason, is_skipped, shown)


def _nameless(filled: Sequence[Cell]) -> str | None:
    """What a row without a name is, if it is no row with a fault."""
    texts = [cell for cell in filled if isinstance(cell, str) and _has_letters(cell)]
    if len(texts) != 1:
        return None
    if len(filled) == 1 and len(texts[0].split()) > 1:
        return NO_NAME
    return NO_NAME_TOTAL if is_totals_word(texts[0].partition(":")[0]) else None


def _numbers(cell: Cell) -> set[Decimal]:
    """Each number that a cell may mean."""
    return set(number_readings_of(cell))


def _has_letters(cell: Cell) -> bool:
    if not isinstance(cell, str):
        return False
    return any(map(str.isalpha, cell)) and not _numbers(cell)


def _bare(text: str) -> str:
    return text.strip().casefold()
