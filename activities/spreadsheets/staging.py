"""Puts the rows of a spreadsheet aside, once, and reads them from any row on.

Staged rows: one line of JSON each, readable from any row on.

A line is `[number, cell, cell, ...]`: the row's number as the user's program shows it, then its
cells. A date is `{"d":"2024-02-29"}`, a date with time `{"t":"2024-02-29T13:45:00"}`, a formula
without a result `{"f":"=A1"}`; every other cell is what JSON makes of it, so that each comes back
as it was read.
"""

import hashlib
import re
import time
from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic_core import PydanticSerializationError, from_json, to_json
from temporalio import activity

from activities.shared.failures import Heartbeater, WorkerThread, translate_failures
from activities.shared.scratch import SeenKeys, fetched, scratch_folder
from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.file_people import FilePeople
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.shown_columns import ShownColumns, UnusedColumns
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.types.base import SheetType
from activities.spreadsheets.validation import (
    DOCFLOW,
    NO_NAME,
    CheckedRows,
    RowValidator,
    SkippedRows,
    SourceRow,
    ValidatedRows,
)
from activities.spreadsheets.value_mapping import ValueBook, value_text
from adapters.files.documents import FileDocuments
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from workflows.shared.cells import (
    Cell,
    Signed,
    Uncalculated,
    beyond_header,
    filled_down,
    is_filled,
    listed_lines,
    merged_down,
)
from workflows.shared.contracts import BlobRef, Contract, Problem
from workflows.shared.declared_types import standing_keys
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import FieldSpec
from workflows.shared.notations import Notation
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.fields import (
    ParkedRow,
    SheetChunk,
    SheetMark,
    SkippedRow,
)
from workflows.spreadsheets.mappings import ColumnMapping, Layout
from workflows.spreadsheets.names import BibMatcher
from workflows.spreadsheets.people import (
    KnownPerson,
    PeopleAnswers,
    PeopleMatcher,
    PeopleQuery,
)
from workflows.spreadsheets.runs import Staged, StageInput

T = TypeVar("T")

_TAGGED: Final = frozenset({date, datetime, Uncalculated, Signed})
_MARKS: Final = (b'{"d":', b'{"t":', b'{"f":', b'{"s":')
_BUFFER: Final = 1 << 20


def staged_line(number: int, cells: Sequence[Cell]) -> bytes:
    """A row as it is staged.

    Half a surrogate pair, which some encodings let through and none can write, becomes U+FFFD.
    """
    if not _TAGGED.isdisjoint(map(type, cells)):
        cells = cast("Sequence[Cell]", [_tagged(cell) for cell in cells])
    try:
        return to_json([number, *cells]) + b"\n"
    except PydanticSerializationError:
        return to_json([number, *map(_mended, cells)]) + b"\n"


def is_blank(cells: Iterable[Cell]) -> bool:
    """Whether a row holds nothing visible."""
    return not any(map(is_filled, cells))


def _tagged(cell: Cell) -> Cell | dict[str, str]:
    if isinstance(cell, datetime):
        return {"t": cell.isoformat()}
    if isinstance(cell, Signed):
        return {"s": f"{float(cell)!r} {cell.sign}"}
    if isinstance(cell, Uncalculated):
        return {"f": str(_mended(cell))}
    return {"d": cell.isoformat()} if isinstance(cell, date) else cell


def _mended(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    return cell.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _untagged(cell: Any) -> Cell:
    ((tag, text),) = cell.items()
    if tag == "f":
        return Uncalculated(text)
    if tag == "s":
        number, _, sign = text.partition(" ")
        return Signed(float(number), sign)
    return datetime.fromisoformat(text) if tag == "t" else date.fromisoformat(text)


_SIGNS: Final = re.compile(
    rb"[%$]|\xc2[\xa3\xa5]|\xe2\x82|[0-9).,-] ?[A-Za-z]{2}|[A-Za-z]{2}[. ]{0,2}[0-9-]"
)
"""What stands in a staged row if one of its numbers may have a sign or a currency."""
_SIGN_BYTES: Final = 16


class StagedRows:
    """Reads staged rows; blocking, and bounded in memory.

    To be closed; may be passed from thread to thread, one at a time.

    Attributes:
        position: Byte behind the row that was read last.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=_BUFFER)
        self.position = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def has_signs(self) -> bool:
        """Return whether a cell may have a percent sign, or a currency beside a number."""
        self._file.seek(0)
        end = b""
        while block := self._file.read(_BUFFER):
            if _SIGNS.search(end + block):
                return True
            end = block[-_SIGN_BYTES:]
        return False

    def read(self, offset: int = 0) -> Iterator[SourceRow]:
        """Rows from the one that begins at byte `offset` on."""
        self._file.seek(offset)
        self.position = offset
        for line in self._file:
            row = _row(line, self.position)
            self.position += len(line)
            yield row

    def at(self, offsets: Iterable[int]) -> Iterator[SourceRow]:
        """The rows that begin at these bytes."""
        for offset in offsets:
            self._file.seek(offset)
            line = self._file.readline()
            self.position = offset + len(line)
            yield _row(line, offset)

    def pick(self, wanted: Iterable[tuple[int, T]]) -> Iterator[tuple[SourceRow, T]]:
        """Rows by number, each with what was given along; numbers rise."""
        self._file.seek(0)
        self.position = 0
        numbers = iter(wanted)
        asked = next(numbers, None)
        for line in self._file:
            number = int(line[1 : line.find(b",")])
            while asked is not None and asked[0] < number:
                asked = next(numbers, None)
            if asked is None:
                return
            begins = self.position
            self.position += len(line)
            if asked[0] == number:
                yield _row(line, begins), asked[1]


def rows_of(block: bytes) -> Iterator[SourceRow]:
    """The rows of a piece of a staged file."""
    if _holds_tags(block):
        for line in block.splitlines():
            yield _row(line, 0)
        return
    # Without tags a block is read at once; no line break stands within a line.
    lines = b",".join(block.splitlines())
    for number, *cells in cast("list[list[Any]]", from_json(b"[%b]" % lines, cache_strings="keys")):
        yield SourceRow(number, 0, cells)


def _holds_tags(lines: bytes) -> bool:
    # Quotes inside a text are escaped, so that a mark is never part of one.
    return any(mark in lines for mark in _MARKS)


def _row(line: bytes, offset: int) -> SourceRow:
    # Most texts are met once in a file: nothing is gained by looking for their like.
    number, *cells = cast("list[Any]", from_json(line, cache_strings="keys"))
    if _holds_tags(line):
        for place, cell in enumerate(cells):
            if type(cell) is dict:
                cells[place] = _untagged(cell)
    return SourceRow(number, offset, cells)


STEP_SECONDS: Final = 0.3
"""Rows are read for this long at a time: a cancellation request waits no longer."""
SAVE_SECONDS: Final = 1.0
"""Between two notes of how many rows there are."""
_ROWS_BETWEEN_LOOKS: Final = 200


class RowsStaged(Contract):
    """Heartbeat of `spreadsheets.stage`."""

    rows: int


def staged_name(uuid: str, layout: Layout) -> str:
    """Where the rows of an import stand in the blob store, as this layout reads them."""
    digest = hashlib.sha256(layout.model_dump_json().encode()).hexdigest()[:16]
    return f"spreadsheets/{uuid}/rows-{digest}"


@asynccontextmanager
async def fetched_rows(blobs: Blobs, staged: Staged, scratch: Path) -> AsyncGenerator[Path]:
    """Download staged rows for the length of the block.

    A late attempt may put the same bytes in the same place again, so the bytes count and not the
    version of the blob.

    Raises:
        BlobNotFound: They are not there.
        RuleViolation: They are not what was staged.
    """
    with scratch_folder(scratch) as folder:
        path = folder / "rows"
        try:
            found = await blobs.download(staged.rows.name, path)
        except BlobNotFound as error:
            raise BlobNotFound(
                "the rows that were read from the file are not in the blob store any more; "
                "upload the file again"
            ) from error
        if (found.size, found.sha256) != (staged.rows.size, staged.rows.sha256):
            raise RuleViolation(
                "the rows in the blob store have changed since the file was read; "
                "upload the file again"
            )
        yield path


class SpreadsheetStaging:
    """Reads the whole of an uploaded file.

    Args:
        store: Tables.
        blobs: Where files are.
        documents: Opens files.
        types: The import types there are.
        scratch: Folder for temporary files.
    """

    def __init__(
        self,
        store: SqlSpreadsheetStore,
        blobs: Blobs,
        documents: FileDocuments,
        types: SheetTypes,
        scratch: Path,
    ) -> None:
        self._store = store
        self._types = types
        self._blobs = blobs
        self._documents = documents
        self._scratch = scratch

    @activity.defn(name="spreadsheets.stage")
    @translate_failures
    async def stage(self, work: StageInput) -> Staged:
        """Put every row below the header aside that holds anything.

        A second run reads the file again and writes the same bytes to the same place.

        Raises:
            ApplicationError: `UnreadableDocument` when the file turns out damaged on the way;
                see `activities.shared.failures` for the others.
        """
        order = work.order
        async with (
            Heartbeater() as heart,
            fetched(self._blobs, order.source.name, self._scratch, expected=order.source) as path,
        ):
            target = path.with_name("rows")
            kind = await self._types.get(order.import_type, order.type_digest)
            writing = await self._write(work, kind, path, target, heart)
            await self._store.save_total(order.uuid, writing.rows)
            await self._store.save_skipped_rows(order.uuid, writing.skipped)
            if writing.hidden:
                await self._store.save_hidden_rows(
                    order.uuid, len(writing.hidden), listed_lines(writing.hidden)
                )
            name = staged_name(order.uuid, work.layout)
            # Noted first: a blob without a record would outlive every purge.
            noted = BlobRef(name=name, size=target.stat().st_size)
            await self._store.save_file(order.uuid, noted)
            rows = await self._blobs.upload(target, name)
        skipped = sum(row.is_skipped for row in writing.skipped)
        asks = kind.declared is not None and kind.declared.left_out == "ask"
        return Staged(
            rows=rows,
            total=writing.rows,
            width=writing.width,
            hidden_rows=len(writing.hidden),
            hidden_lines=listed_lines(writing.hidden),
            skipped_rows=skipped,
            asks_about_skipped=asks and skipped > 0,
            unused=writing.unused.found(),
        )

    async def _write(
        self, work: StageInput, kind: SheetType, path: Path, target: Path, heart: Heartbeater
    ) -> "_Writing":
        uuid = work.order.uuid
        async with WorkerThread() as thread:
            writing = _Writing(self._documents, work, kind, path, target)
            try:
                await thread.run(writing.open)
                saved = time.monotonic()
                while not await thread.run(writing.step):
                    heart.beat(RowsStaged(rows=writing.rows))
                    if time.monotonic() - saved > SAVE_SECONDS:
                        await self._store.save_total(uuid, writing.rows)
                        saved = time.monotonic()
            finally:
                await thread.run(writing.close)
        return writing


class _Writing:
    """A file on its way from its reader into another file; blocking.

    Attributes:
        rows: Rows staged so far.
        unused: Columns that mean nothing so far.
        hidden: Lines of rows among them that the owner's program does not show, once all are read.
        skipped: Rows that are no people, or may be none, once all are read.
        width: Cells that a row of a text table may have, once all are read; 0: any number.
    """

    def __init__(
        self,
        documents: FileDocuments,
        work: StageInput,
        kind: SheetType,
        path: Path,
        target: Path,
    ) -> None:
        self._documents = documents
        self._work = work
        self._kind = kind
        self._path = path
        self._target = target
        self._held = ExitStack()
        self._source: Iterator[tuple[int, list[Cell]]] = iter(())
        self._is_filled = False
        self.rows = 0
        self.width = 0
        self.hidden: Sequence[int] = ()
        self.skipped: Sequence[SkippedRow] = ()
        self._no_people = self._begin_skipped()
        # A person sees the columns, unless the import goes straight through.
        self.unused = UnusedColumns(work.columns if work.order.auto_start else ())

    def _begin_skipped(self) -> SkippedRows:
        kind = self._kind
        return SkippedRows(
            *(self._work.columns, kind.needed_keys),
            is_list=kind.declared is None,
            keep=kind.declared is not None and kind.declared.left_out == "keep",
            fields=kind.fields,
        )

    def open(self) -> None:
        layout = self._work.layout
        source = self._held.enter_context(
            self._documents.open_table(
                self._path,
                filename=self._work.order.filename,
                sheet=layout.sheet,
                encoding=layout.encoding,
                delimiter=layout.delimiter,
            )
        )
        self._file = self._held.enter_context(self._target.open("wb"))
        self._table = source
        self._source = source.rows()

    def step(self) -> bool:
        """Work for a moment; return whether everything is done."""
        header = self._work.layout.header_line or 0
        ends = time.monotonic() + STEP_SECONDS
        write = self._file.write
        for seen, (line, cells) in enumerate(self._source, start=1):
            if line > header and not is_blank(cells):
                write(staged_line(line, cells))
                self._no_people.add(line, cells)
                self.unused.add(cells)
                self.rows += 1
            if seen % _ROWS_BETWEEN_LOOKS == 0 and time.monotonic() > ends:
                return False
        if not self._is_filled and self._begin_filled(header):
            return False
        if width := self._table.widths.get(header, 0):
            self.width = max(width, *(column.index + 1 for column in self._work.columns), 0)
        hidden = self._table.hidden_rows
        self.hidden = hidden[bisect_right(hidden, header) :]
        self._file.flush()
        with closing(StagedRows(self._target)) as staged:
            rows = ((row.line, row.cells) for row in staged.read())
            self.skipped = self._no_people.found(rows)
        return True

    def _begin_filled(self, header: int) -> bool:
        """Begin anew where cells are merged down, which stands behind the rows of a sheet."""
        begins = merged_down(self._table.merges, header)
        if not begins:
            return False
        self._file.seek(0)
        self._file.truncate()
        self._is_filled, self.rows = True, 0
        self._no_people = self._begin_skipped()
        self.unused.forget()
        self._source = filled_down(self._table.rows(), begins, _fills)
        return True

    def close(self) -> None:
        self._held.close()


def _fills(place: int, value: Cell) -> bool:
    return isinstance(value, str | date)


CHUNK_ROWS: Final = 5_000
"""Rows of one transaction."""
HEAD_ROWS: Final = 1_000
"""Rows that settle how the columns of a file write numbers and dates."""


def keys_of_file(
    sheet_type: SheetType, columns: Sequence[ColumnMapping], rows: Iterable[SourceRow]
) -> frozenset[str]:
    """The keys of some rows, as cells write them."""
    places = [each.index for each in columns if each.target in sheet_type.row_keys]
    return frozenset(
        value_text(row.cells[place]) for row in rows for place in places if place < len(row.cells)
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows of an import are understood.

    Attributes:
        sheet_type: What they are.
        fields: Every field, for this organisation.
        columns: What each column means.
        context: Context of the import.
        book: The meaning of values.
        people: What is decided about people.
        edits: Corrections of a review; None: there was none.
    """

    sheet_type: SheetType
    fields: Sequence[FieldSpec]
    columns: Sequence[ColumnMapping]
    context: ImportContext
    book: ValueBook
    people: PeopleAnswers = field(default_factory=PeopleAnswers)
    edits: Edits | None = None

    def edited(self, rows: Iterator[SourceRow]) -> Iterator[SourceRow]:
        """Rows with the corrections of the review."""
        if not self.edits:
            return rows
        cells = self.edits.cells
        return (row._replace(cells=cells(row.line, row.cells)) for row in rows)

    def excluded(self, line: int) -> str | None:
        """Why a row is left out; None: it is not."""
        if self.edits is None or line not in self.edits.excluded:
            return None
        reason, by = self.edits.reasons.get(line, ""), self.edits.excluded[line]
        return reason if by == DOCFLOW else f"left out in the review by {by}"

    def is_heading(self, line: int) -> bool:
        """Return whether a skipped row is a heading, skipped by docflow or by a person."""
        return self.edits is not None and self.edits.reasons.get(line) == NO_NAME

    @property
    def _notations(self) -> Mapping[str, Notation]:
        """Field of each column whose notation a person has chosen."""
        chosen = {} if self.edits is None else self.edits.notations
        return {str(each.target): chosen[each.id] for each in self.columns if each.id in chosen}

    def columns_to_show(self) -> ShownColumns:
        """Nothing shown yet of the columns of times and numbers."""
        by_name = {each.name: each for each in self.fields}
        targets = {each.index: by_name.get(str(each.target)) for each in self.columns}
        return ShownColumns({place: each for place, each in targets.items() if each is not None})

    def note_own(self, rows: Iterable[SourceRow], validator: RowValidator) -> None:
        """Find the keys of all rows that go in as they are edited, if cells may refer to them.

        Args:
            rows: The rows of the file that were not cut in the wrong places.
            validator: Tells which rows are right by themselves.
        """
        if self.book.own:
            kept = (row for row in self.edited(iter(rows)) if self.excluded(row.line) is None)
            self.book.note_own(standing_keys(self._right_rows(kept, validator)))

    def _right_rows(
        self, rows: Iterator[SourceRow], validator: RowValidator
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """Key of each row that is right by itself, and the rows of the file that it refers to."""
        places = {str(each.target): each.index for each in self.columns if each.target}
        declared = self.sheet_type.declared
        key = None if declared is None else places.get(declared.key[0])
        own = {name: places[name] for name in self.book.own if name in places}
        while key is not None and (some := list(islice(rows, CHUNK_ROWS))):
            checked = validator.check(some, counted=True)
            for i, row in enumerate(some):
                if i not in checked.bad and key < len(row.cells):
                    cells = ((n, row.cells[p]) for n, p in own.items() if p < len(row.cells))
                    needs = (self.book.names_own(name, cell) for name, cell in cells)
                    yield value_text(row.cells[key]), [each for each in needs if each]

    def show(self, shown: ShownColumns, rows: Iterable[SourceRow]) -> None:
        """Look at rows as they are edited."""
        rows = self.edited(iter(rows))
        while some := list(islice(rows, CHUNK_ROWS)):
            shown.add([row.cells for row in some])

    def validator(
        self,
        seen: SeenKeys | None,
        head: Sequence[SourceRow],
        file: FilePeople | None,
        bibs: SeenKeys | None = None,
        shown: ShownColumns | None = None,
    ) -> RowValidator:
        """A validator for these rows.

        Args:
            seen: The natural keys of the rows before.
            head: The first rows.
            file: The people of the rows before.
            bibs: The bibs of the rows before; None: nothing is asked about bibs.
            shown: What columns show in all rows; None: the first rows tell.
        """
        return RowValidator(
            self.sheet_type,
            self.fields,
            self.columns,
            self.context,
            self.book,
            seen,
            head,
            PeopleMatcher(self.people, file),
            None if bibs is None else BibMatcher(self.people.bibs, bibs),
            shown,
            self._notations,
        )


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows that are read and checked, but not settled: their people have to be looked up.

    Attributes:
        checked: The rows.
        query: What to look up; None: nothing.
        cursor: Rows consumed once they are in.
        offset: Bytes of the staged file consumed; in later rounds line of the last row.
        parked: The rows as they were parked; None: they are read for the first time.
        excluded: Rows that are left out, and why.
        left_keys: First parts of their keys, if rows that the file lacks are removed.
    """

    checked: CheckedRows
    query: PeopleQuery | None
    cursor: int
    offset: int
    parked: Mapping[int, ParkedRow] | None
    excluded: Sequence[tuple[int, str]] = ()
    left_keys: Sequence[str] = ()


class SheetReader:
    """Reads the rows of one round, chunk by chunk.

    In round 0 every row of the file, behind those that are in; later the rows that were parked.
    The same rows give the same chunks whenever they are read.

    Args:
        path: The staged file.
        plan: How rows are understood.
        mark: How far this round has come.
        parked: Rows to read; None: all of the file.
        chunk_rows: Rows of a chunk.
        width: Cells that a row may have; 0: any number.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        mark: SheetMark,
        parked: Iterator[ParkedRow] | None = None,
        chunk_rows: int = CHUNK_ROWS,
        width: int = 0,
    ) -> None:
        self._path = path
        self._plan = plan
        self._width = width
        self._cut: dict[int, Problem] = {}
        self._round = mark.round
        self._number = mark.chunk
        self._wanted = mark.cursor
        self._cursor = 0 if parked is None else mark.cursor
        self._parked = parked
        self._chunk_rows = chunk_rows
        self._waited: dict[int, ParkedRow] = {}
        self._held = ExitStack()
        self._headings: list[Sequence[Cell]] = []
        self._rows: Iterator[SourceRow] = iter(())

    def open(self) -> None:
        """Open the file, and settle how it is written."""
        self._staged = self._held.enter_context(closing(StagedRows(self._path)))
        head = list(islice(self._plan.edited(self._staged.read()), HEAD_ROWS))
        # Of two parked rows of one key the second was refused when it was read first.
        seen = SeenKeys(self._path.parent) if self._parked is None else None
        file = FilePeople(self._path.parent) if self._parked is None else None
        # Of parked rows too: those that went in before are in the database.
        bibs = SeenKeys(self._path.parent)
        for each in filter(None, (seen, file, bibs)):
            self._held.callback(each.close)
        shown = self._plan.columns_to_show()
        if shown.places(has_signs=bool(self._plan.edits) or self._staged.has_signs()):
            self._plan.show(shown, self._staged.read())
        self._validator = self._plan.validator(seen, head, file, bibs, shown)
        rows, width = self._staged.read(), self._width
        uncut = (row for row in rows if not beyond_header(row.line, row.cells, width))
        self._plan.note_own(uncut, self._validator)
        if self._parked is None:
            self._rows = self._plan.edited(self._noting_cut(self._staged.read()))
        else:
            waited = self._staged.at(row.offset for row in self._noted(self._parked))
            self._rows = self._plan.edited(waited)

    def close(self) -> None:
        """Close the file."""
        self._held.close()

    def pass_over(self) -> ReadRows | None:
        """The next rows that went in before, to be passed; None when there are no more."""
        left = min(self._chunk_rows, self._wanted - self._cursor)
        rows = list(islice(self._rows, left)) if left > 0 else []
        return self._read(rows, counted=True) if rows else None

    def passed(self, read: ReadRows, known: Sequence[KnownPerson]) -> None:
        """Learn what later rows can be duplicates of."""
        self._validator.pass_checked(read.checked, known)

    def read(self) -> ReadRows | None:
        """The next rows, or None when there are none."""
        rows = list(islice(self._rows, self._chunk_rows))
        return self._read(rows) if rows else None

    def chunk(self, read: ReadRows, known: Sequence[KnownPerson] = ()) -> SheetChunk:
        """What rows become, given the people that their query found."""
        validated = self.settle(read, known)
        chunk = SheetChunk(
            number=self._number,
            round=self._round,
            cursor=read.cursor,
            offset=read.offset,
            lines=validated.lines,
            main=validated.main,
            targets=validated.targets,
            errors=validated.errors,
            skipped=sorted([*validated.skipped, *read.excluded]),
            parked=validated.parked,
            found=validated.found,
            left_keys=read.left_keys,
        )
        self._number += 1
        return chunk

    def settle(self, read: ReadRows, known: Sequence[KnownPerson]) -> ValidatedRows:
        """Find out whom rows are about, and what they become."""
        return self._validator.settle(read.checked, known, read.parked)

    def _read(self, rows: Sequence[SourceRow], *, counted: bool = False) -> ReadRows:
        self._cursor += len(rows)
        last = rows[-1].line
        reasons = ((row.line, self._plan.excluded(row.line)) for row in rows)
        excluded = {line: reason for line, reason in reasons if reason is not None}
        headings = self._headings_above(rows, excluded) if self._parked is None else None
        left_keys = self._left_keys(rows, excluded) if excluded else ()
        if excluded:
            rows = [row for row in rows if row.line not in excluded]
        checked = self._validator.check(rows, counted=counted, headings=headings)
        for i, row in enumerate(rows):
            if row.line in self._cut and i not in checked.blank:
                checked.problems[i].append(self._cut[row.line])
        self._cut.clear()
        is_first = self._parked is None
        return ReadRows(
            checked,
            self._validator.query(checked),
            self._cursor,
            self._staged.position if is_first else last,
            None if is_first else {row.line: self._waited.pop(row.line) for row in rows},
            sorted(excluded.items()),
            left_keys,
        )

    def _left_keys(self, rows: Sequence[SourceRow], excluded: Mapping[int, str]) -> Sequence[str]:
        """First parts of the keys of rows that are left out, if rows of other keys are removed."""
        declared = self._plan.sheet_type.declared
        if declared is None or declared.strategy != "replace":
            return ()
        places = {each.index for each in self._plan.columns if each.target == declared.first_key}
        left = [row for row in rows if row.line in excluded]
        values = self._validator.check_cells(left, places).values.get(declared.first_key, ())
        return sorted({str(value) for value in values if value is not None})

    def _headings_above(
        self, rows: Sequence[SourceRow], excluded: Mapping[int, str]
    ) -> Sequence[Sequence[Sequence[Cell]]]:
        """Cells of the skipped headings right above each row that is not left out."""
        found: list[Sequence[Sequence[Cell]]] = []
        for row in rows:
            if row.line not in excluded:
                found.append(self._headings)
                self._headings = []
            elif self._plan.is_heading(row.line):
                self._headings.append(row.cells)
        return found

    def _noting_cut(self, rows: Iterable[SourceRow]) -> Iterator[SourceRow]:
        """Rows as they stand in the file; those of more cells than the header are noted."""
        for row in rows:
            if cut := beyond_header(row.line, row.cells, self._width):
                self._cut[row.line] = cut
            yield row

    def _noted(self, parked: Iterator[ParkedRow]) -> Iterator[ParkedRow]:
        for row in parked:
            self._waited[row.line] = row
            yield row
