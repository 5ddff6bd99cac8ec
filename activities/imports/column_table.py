"""Tables that are read by columns, and rows that are kept until one of them is."""

import marshal
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import IO, Any, Final, cast

from adapters.files.tables.delimited import Block, TextColumns
from adapters.ports.documents import Table
from workflows.imports.column_scan import (
    NUMBER_DIGITS,
    LetterCases,
    ReadingOptions,
    Survey,
    Surveyed,
    column_text,
    form_of,
)
from workflows.imports.header import TableHeader
from workflows.imports.messages import Strategy, TableMessage
from workflows.imports.row_classification import (
    FoundSheet,
    sorter_of,
)
from workflows.imports.runs import RowChunk
from workflows.imports.types import TableSpec, scope_of
from workflows.imports.validation import KEY_CHARACTERS
from workflows.shared.cells import (
    Cell,
)
from workflows.shared.fields import NUMBERS, ColumnKind, FieldSpec
from workflows.shared.packed_rows import (
    NULL,
    CellForm,
    ColumnText,
    NotPlain,
    PackedLines,
    PackedRows,
    text_of,
)
from workflows.shared.sections import SECTION, SEQUENCE, figures_of

COLUMN_BYTES: Final = 1_000_000
"""Texts from this size on are read by columns: a smaller one is read in less time than it takes
to begin with that."""


TOGETHER: Final = 2
"""How many times as many rows as otherwise go in with one transaction: they take less time."""


_COMPARED: Final = 20
"""First rows that are read in both ways."""


_STRATEGIES: Final = frozenset({Strategy.MERGE, Strategy.CREATE_ONLY})
"""Strategies under which no other row matters for what becomes of one."""


_UNSORTED: Final = NUMBERS | {ColumnKind.PLACE, ColumnKind.DURATION}
"""Kinds whose texts sort in another order than their values."""


def may_be_plain(message: TableMessage, spec: TableSpec, path: Path) -> bool:
    """Whether a document is worth a look, as far as its message and size show."""
    is_large = path.stat().st_size >= COLUMN_BYTES
    return is_large and not (spec.rules or spec.checks) and may_be_packed(message, spec)


def may_be_packed(message: TableMessage, spec: TableSpec) -> bool:
    """Whether no row matters for what becomes of another, so that lines of text are enough."""
    if any(name != SEQUENCE and spec.by_name[name].kind in _UNSORTED for name in spec.key):
        return False
    return (
        message.strategy in _STRATEGIES
        and not message.all_or_nothing
        and spec.period is None
        and spec.unmapped != "keep"
        and not spec.has_references
    )


class ColumnTable:
    """Reads a table by columns; `NotPlain` says that it, or the rest, is to be read row by row.

    What becomes of a cell is found out by the rules for rows, for each distinct cell of a column.

    Attributes:
        surveyed: How the table is written.

    Args:
        source: The table.
        sheet: Its header.
        width: Fields of the header.
        message: What to import.
        spec: What the table holds.
        options: What a person has said about how it is written.
        folder: Scratch folder of the step.
        cases: Is given the codes.
    """

    def __init__(
        self,
        source: Table,
        sheet: FoundSheet,
        width: int,
        message: TableMessage,
        spec: TableSpec,
        options: ReadingOptions,
        folder: Path,
        cases: LetterCases,
    ) -> None:
        header = sheet.header
        if header is None or source.columns is None or header.wrong is not None:
            raise NotPlain
        self._width = width
        self._cases = cases
        self._spec = spec
        self._scope = tuple(scope_of(message, spec)[name] for name in spec.scope)
        with ExitStack() as opened:
            blocks = opened.enter_context(source.columns(header.line, width, folder))
            self._blocks: TextColumns = blocks
            self.surveyed = self._survey(source, header, options)
            self._sorter = sorter_of(spec, self.surveyed.header, self.surveyed.keys)
            self._opened = opened.pop_all()
        present = [field for field in spec.fields if field.name in header.positions]
        self._fields = [field for field in present if field.name not in spec.key]
        self._numbers = spec.numbered and SEQUENCE not in header.positions
        self.columns = (*spec.scope, *spec.key, *(field.name for field in self._fields))
        self._has_sections = SECTION in spec.key and SECTION not in header.positions
        self._figures = figures_of(spec.fields, spec.key, header.positions)
        self._kinds = (
            *(spec.by_name[name].kind for name in spec.key),
            *(field.kind for field in self._fields),
        )

    def close(self) -> None:
        """Give memory and disk back; a second call does nothing."""
        self._opened.close()

    def _survey(self, source: Table, header: TableHeader, options: ReadingOptions) -> Surveyed:
        survey = Survey(self._spec, header)
        below = dropwhile(lambda row: row[0] <= header.line, source.rows())
        first = list(islice(below, _COMPARED))
        for block in self._blocks.blocks():
            _compare(first, block)
            first = []
            filled = [block.filled(position) for position in range(self._width)]
            if not survey.add_distinct(self._distinct(block), filled, block.rows):
                raise NotPlain
        if first:
            raise NotPlain
        return survey.finish(options, source.hidden_columns)

    def chunks(self, start: int, rows: int) -> Iterator[RowChunk]:
        """Rows by the number, from the one at `start` on.

        Raises:
            NotPlain: The rest is to be read row by row.
        """
        done = 0
        for block in self._blocks.blocks():
            texts, zero_led = self._judge(block)
            if done + block.rows > start:
                for lines in block.lines(texts, max(0, start - done), rows):
                    packed = PackedRows(self._scope, self._kinds, sorted(lines), zero_led=zero_led)
                    start += len(lines)
                    yield RowChunk(
                        table=self._spec.table,
                        columns=self.columns,
                        rows=packed,
                        lines=PackedLines(packed),
                        cells=(),
                        rejected=(),
                        cursor=start,
                    )
            done += block.rows

    def _distinct(self, block: Block) -> list[Sequence[str]]:
        return [block.distinct(position) for position in range(self._width)]

    def _judge(self, block: Block) -> tuple[Sequence[ColumnText], bool]:
        """What stands in each line of a block, and whether some code of a key begins with 0."""
        columns = self._distinct(block)
        if not self._sorter.takes_all(columns):
            raise NotPlain
        spec = self._spec
        positions = self.surveyed.header.positions
        self._cases.add(columns[positions[spec.item(positions)]])
        texts = {
            name: self._text(block, spec.by_name[name], position, columns[position])
            for name, position in positions.items()
        }
        if self._has_sections and not any(
            NULL not in texts[name].changed.values() for name in self._figures
        ):
            # A row without figures is a heading, and gives the rows below it their section.
            raise NotPlain
        key = [
            self._key_text(name, texts) for name in spec.key if name in texts or name != SEQUENCE
        ]
        longest = [max(map(len, _codes(columns, column))) for column in key]
        if sum(map(len, self._scope)) + sum(longest) > KEY_CHARACTERS:
            raise NotPlain
        if self._numbers:
            key.append(self._number(block, key))
        elif not block.add_keys(key):
            raise NotPlain
        zero_led = any(self._leads_with_zero(block, column) for column in key)
        return [*key, *(texts[field.name] for field in self._fields)], zero_led

    def _text(
        self, block: Block, field: FieldSpec, position: int, cells: Sequence[str]
    ) -> ColumnText:
        form = form_of(field, self.surveyed)
        if form is CellForm.TEXT:
            return column_text(self._spec, self.surveyed, field, cells, cells)
        cells, formed = zip(*block.formed(position, form), strict=True)
        return column_text(self._spec, self.surveyed, field, cells, formed)

    def _key_text(self, name: str, texts: Mapping[str, ColumnText]) -> ColumnText:
        if name in texts:
            return texts[name]
        return ColumnText(None, constant=text_of(self._spec.by_name[name].blank))

    def _leads_with_zero(self, block: Block, column: ColumnText) -> bool:
        if column.position is None:
            return False
        made = column.changed.values()
        return "\n0" in block.joined(column.position) or any(text[:1] == "0" for text in made)

    def _number(self, block: Block, key: Sequence[ColumnText]) -> ColumnText:
        """Which occurrence of its key each row is."""
        if block.add_keys(key):
            return ColumnText(None, constant="1".zfill(NUMBER_DIGITS))
        if not self._blocks.single:
            raise NotPlain
        block.number(key)
        return ColumnText(None, numbered=True)


def _codes(columns: Sequence[Sequence[str]], column: ColumnText) -> Sequence[str]:
    """The distinct cells of a part of the key, and what some of them become."""
    if column.position is None:
        return (column.constant,)
    return [*columns[column.position], *column.changed.values()]


def _compare(rows: Sequence[tuple[int, Sequence[Cell]]], block: Block) -> None:
    """The first rows must be the same, read in either way.

    Raises:
        NotPlain: They are not.
    """
    top = block.top(len(rows))
    for (line, cells), (number, texts) in zip(rows, enumerate(top, block.first_line), strict=False):
        if line != number or [*cells, *[""] * (len(texts) - len(cells))] != [*texts]:
            raise NotPlain


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
