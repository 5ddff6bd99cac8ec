"""Reads the top of a spreadsheet, and what the database knows of its context."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, dropwhile, islice
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from temporalio import activity

from activities.shared.failures import Heartbeater, WorkerThread, translate_failures
from activities.shared.scratch import fetched
from activities.spreadsheets.column_matching import (
    HEADER_WITHIN,
    NO_HEADER,
    NO_ROWS,
    ONLY_HEADERS,
    SheetHeader,
    column_name,
    column_titles,
    find_header,
    has_rivals,
    match_columns,
    rows_above,
)
from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.staging import Plan
from activities.spreadsheets.staging import is_blank as holds_nothing
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.types.base import SheetType
from activities.spreadsheets.value_mapping import VALUE_CHARACTERS, ValueBook, resolver_of, scope_of
from adapters.files.documents import FileDocuments
from adapters.ports.blobs import Blobs
from adapters.ports.documents import Table
from workflows.shared.cells import Cell, cell_text, is_blank, listed_lines, readable
from workflows.shared.declared_types import ORGANISATION, refuse_strategy
from workflows.shared.errors import InvalidDocument, RuleViolation
from workflows.shared.fields import FieldSpec
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.fields import Preview, facts_of
from workflows.spreadsheets.mappings import (
    CANDIDATE_FIELDS,
    CANDIDATES,
    COLUMNS,
    Candidate,
    CellMapping,
    CellSummary,
    ColumnMapping,
    FieldCandidates,
    HiddenParts,
    Layout,
)
from workflows.spreadsheets.names import SAME_BIB
from workflows.spreadsheets.people import PERSON, PeopleAnswers, decided
from workflows.spreadsheets.runs import SHEETS_NAMED, Analysis, AnalysisInput, SpreadsheetInput


class Subject(Protocol):
    """Whose import it is and what it brings: an order, or its status row."""

    @property
    def organisation_id(self) -> int:
        """The organisation."""
        ...

    @property
    def import_type(self) -> str:
        """Name of the import type."""
        ...

    @property
    def context_id(self) -> int | None:
        """Event, membership period or race."""
        ...

    @property
    def type_digest(self) -> str | None:
        """Version of a declared type."""
        ...

    @property
    def scope(self) -> Mapping[str, str]:
        """What all rows of a declared type share."""
        ...


async def sheet_type_of(types: SheetTypes, subject: Subject) -> SheetType:
    """The type of an import, in the version that it began with.

    Raises:
        RuleViolation: There is no such import type.
    """
    return await types.get(subject.import_type, subject.type_digest)


async def fields_of(
    store: SqlSpreadsheetStore, types: SheetTypes, subject: Subject
) -> tuple[FieldSpec, ...]:
    """Every field that a column may mean, the organisation's custom lists included.

    Raises:
        RuleViolation: There is no such import type.
    """
    lists = await store.custom_lists(subject.organisation_id)
    return (await sheet_type_of(types, subject)).fields_for(lists)


def with_candidates(
    summary: CellSummary, fields: Iterable[FieldSpec], context: ImportContext
) -> CellSummary:
    """A summary with the first candidates of its open values."""
    resolvers = {each.name: each.resolver for each in fields if each.resolver is not None}
    names = dict.fromkeys(value.field for value in summary.first_open if value.field in resolvers)
    candidates = tuple(
        FieldCandidates(
            field=name,
            total=len(context.entities.get(resolvers[name], ())),
            first=tuple(
                Candidate(id=each.id, name=each.name[:VALUE_CHARACTERS])
                for each in resolver_of(resolvers[name]).candidates(context, "")[:CANDIDATES]
            ),
        )
        for name in list(names)[:CANDIDATE_FIELDS]
    )
    return summary.model_copy(update={"candidates": candidates})


def scope_of_rows(subject: Subject) -> Mapping[str, str]:
    """What all rows of an upload share."""
    return {**subject.scope, ORGANISATION: str(subject.organisation_id)}


async def load_context(
    store: SqlSpreadsheetStore,
    types: SheetTypes,
    subject: Subject,
    today: date,
    *,
    only: Collection[str] | None = None,
) -> ImportContext:
    """Load what cells may refer to, and the decisions on their values before.

    Args:
        store: Tables.
        types: The import types there are.
        subject: Whose import it is.
        today: The day that dates are compared with.
        only: Names of the fields that are asked about; all of the type when absent.

    Raises:
        RuleViolation: There is no such import type.
    """
    lists = await store.custom_lists(subject.organisation_id)
    bare = ImportContext(
        *(subject.organisation_id, subject.context_id, today),
        custom_lists=lists,
        scope=scope_of_rows(subject),
    )
    kind = await sheet_type_of(types, subject)
    referring = [
        field
        for field in kind.fields_for(lists)
        if field.resolver is not None and (only is None or field.name in only)
    ]
    scopes = {
        scope.kind: scope for scope in (scope_of(field, bare, kind.referred) for field in referring)
    }
    return replace(
        bare,
        entities={name: await store.entities(scope) for name, scope in scopes.items()},
        remembered={
            field.name: await store.remembered_values(
                subject.organisation_id, subject.import_type, field.name
            )
            for field in referring
        },
    )


async def people_answers(
    store: SqlSpreadsheetStore, order: SpreadsheetInput, decided: Mapping[str, CellMapping]
) -> PeopleAnswers:
    """What is decided about people, in this import and before.

    Args:
        store: Tables.
        order: The import.
        decided: Question to what was answered in this import.
    """
    await store.index_people(order.organisation_id)
    answers = PeopleAnswers(order.uuid, decided)
    chosen = await store.people_by_id(order.organisation_id, sorted(answers.chosen()))
    return PeopleAnswers(
        order.uuid,
        decided,
        {each.id: each.key for each in chosen},
        await store.remembered_people(order.organisation_id),
    )


PREVIEW_ROWS: Final = 20
"""From the header on."""
SAMPLED_ROWS: Final = 1_000
"""Rows below the header that are looked at: a column without a header that is blank in all of
them is a ghost."""
SAMPLES: Final = 5
EVIDENCE: Final = 50
"""Distinct values of a column that say what it means."""
BLANKS: Final = 5
"""Texts of a column that are named because they count as blank."""
_SAMPLE_CHARACTERS: Final = 100
_PREVIEW_CHARACTERS: Final = 200
_SHEET_CHARACTERS: Final = 100
_NAMED: Final = 5

Row = tuple[int, list[Cell]]


@dataclass(frozen=True, slots=True)
class _Top:
    """What was read of a file."""

    format: str
    layout: Layout
    """As found."""
    sheets: Sequence[str]
    header: SheetHeader
    rows: Sequence[Row]
    """The first rows below the header that hold anything."""
    other_sheets: tuple[str, ...]
    """Further sheets that hold something."""
    lines_above: tuple[int, ...]
    """Lines of another table above the header."""
    hidden_columns: frozenset[int]
    """Places of columns that the owner's program does not show."""
    hidden_rows: Sequence[int]
    """Lines of rows among `rows` that it does not show."""
    hidden_sheet: bool
    width: int
    """Fields of the header of a text table; 0: it is a sheet, or has no header."""

    def hidden(self, columns: Sequence[ColumnMapping]) -> HiddenParts:
        """What is read although the owner's program does not show it."""
        return HiddenParts(
            rows=len(self.hidden_rows),
            lines=listed_lines(self.hidden_rows),
            columns=tuple(
                each.id for each in columns if each.target and each.index in self.hidden_columns
            ),
            sheet=self.hidden_sheet,
        )

    def titles(self) -> list[tuple[int, str]]:
        """Place and title of each column that holds anything.

        Raises:
            InvalidDocument: There are more than can be mapped.
        """
        titles = column_titles(self.header.cells, [cells for _, cells in self.rows], self.width)
        rest = titles[COLUMNS:]
        if rest:
            named = ", ".join(
                repr(title)
                if title == (letters := column_name(index))
                else f"{title!r} ({letters})"
                for index, title in rest[:_NAMED]
            )
            more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
            raise InvalidDocument(
                f"{len(titles)} columns hold something, and at most {COLUMNS} can be mapped; "
                f"remove the rest from the file: {named}{more}"
            )
        return titles

    def preview(
        self,
        titles: Sequence[tuple[int, str]],
        columns: Sequence[ColumnMapping],
        fields: Mapping[str, FieldSpec],
    ) -> Preview:
        """What a person sees of it."""
        targets = [fields.get(column.target or "") for column in columns]
        width = 1 + max((index for index, _ in titles), default=-1)
        first = self.header.cells or [column_name(index) for index in range(width)]
        rows = [(self.header.line, first), *self.rows[: PREVIEW_ROWS - 1]]
        hidden = self.hidden(columns)
        return Preview(
            self.format,
            self.sheets,
            [
                (line, [readable(cell, _PREVIEW_CHARACTERS) for cell in cells[:width]])
                for line, cells in rows
            ],
            [self.distinct(index, SAMPLES) for index, _ in titles],
            [self._blanks(index, field) for (index, _), field in zip(titles, targets, strict=True)],
            self.other_sheets,
            self.lines_above,
            hidden.rows,
            hidden.lines,
            [each.header for each in columns if each.id in hidden.columns],
            hidden.sheet,
        )

    def distinct(self, index: int, limit: int) -> Sequence[str]:
        """The first values of a column that differ, as a person sees them."""
        found: dict[str, None] = {}
        for cells in self._reaching(index):
            if text := readable(cells[index], _SAMPLE_CHARACTERS):
                found[text] = None
                if len(found) == limit:
                    break
        return list(found)

    def _blanks(self, index: int, field: FieldSpec | None) -> Sequence[str]:
        """The first texts of a column that count as blank, each once."""
        spec = None if field is None else field
        texts = dict.fromkeys(cell_text(cells[index]).strip() for cells in self._reaching(index))
        return [text for text in texts if is_blank(text, spec)][:BLANKS]

    def _reaching(self, index: int) -> Iterator[Sequence[Cell]]:
        return (cells for _, cells in self.rows if index < len(cells))


class SpreadsheetAnalysis:
    """Looks at uploaded files.

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
        self._blobs = blobs
        self._documents = documents
        self._types = types
        self._scratch = scratch

    @activity.defn(name="spreadsheets.analyse")
    @translate_failures
    async def analyse(self, work: AnalysisInput) -> Analysis:
        """Find the header, match the columns, and save both with a preview.

        A second run finds the same and saves it again; one that comes after a later version of
        the mappings changes nothing.

        Raises:
            ApplicationError: `UnreadableDocument` when no table can be read from the file,
                `InvalidDocument` when it has no header or too many columns, `Permanent` when
                type or context of the import are not there; see `activities.shared.failures`.
        """
        order = work.order
        await self._check_context(order)
        fields = await fields_of(self._store, self._types, order)
        kind = await sheet_type_of(self._types, order)
        if kind.declared is not None:
            refuse_strategy(kind.declared, kind.declared.strategy)
        async with (
            Heartbeater(),
            fetched(self._blobs, order.source.name, self._scratch, expected=order.source) as path,
            WorkerThread() as thread,
        ):
            given = (path, order.filename, work.layout, fields, kind.row_keys)
            top = await thread.run(lambda: self._read(*given))
            titles = top.titles()
            remembered = await self._store.remembered_columns(
                order.organisation_id, order.import_type, [title for _, title in titles]
            )
            values = [top.distinct(index, EVIDENCE) for index, _ in titles]
            columns = await thread.run(lambda: match_columns(titles, fields, remembered, values))
            analysis = Analysis(
                layout=top.layout,
                columns=columns,
                fields=tuple(facts_of(each) for each in fields),
                other_sheets=top.other_sheets,
                lines_above=top.lines_above,
                hidden=top.hidden(columns),
                row_keys=tuple(kind.needed_keys),
                needs_all_columns=kind.declared is not None and kind.declared.unmapped == "refuse",
                has_rivals=has_rivals(columns),
            )
            preview = top.preview(titles, columns, {each.name: each for each in fields})
            await self._store.save_analysis(order, analysis, preview, work.version)
        return analysis

    async def _check_context(self, order: SpreadsheetInput) -> None:
        context = (await sheet_type_of(self._types, order)).context
        if context is None:
            return
        if order.context_id is None:
            if context.required:
                raise RuleViolation(
                    f"an import of type {order.import_type} needs its {context.title}"
                )
            return
        if not await self._store.context_exists(
            context.table, order.context_id, order.organisation_id
        ):
            raise RuleViolation(
                f"there is no {context.title} {order.context_id} in this organisation"
            )

    def _read(
        self,
        path: Path,
        filename: str,
        layout: Layout,
        fields: Sequence[FieldSpec],
        key: Collection[str],
    ) -> _Top:
        with self._documents.open_table(
            path,
            filename=filename,
            sheet=layout.sheet,
            encoding=layout.encoding,
            delimiter=layout.delimiter,
        ) as source:
            rows = source.rows()
            if layout.no_header:
                top = []
            elif layout.header_line is None:
                top = list(islice(rows, HEADER_WITHIN))
            else:
                wanted = layout.header_line
                # Rows beside it may belong to it.
                top = list(islice(dropwhile(lambda row: row[0] < wanted - 2, rows), 5))
            header = NO_HEADER
            if not layout.no_header:
                header = find_header(top, fields, key=key, header_line=layout.header_line)
            below = (
                row
                for row in chain(top, rows)
                if row[0] > header.line and not holds_nothing(row[1])
            )
            sampled = list(islice(below, SAMPLED_ROWS))
            found = _as_found(source, header.line)
            lines = {line for line, _ in sampled}
            hidden_rows = [line for line in source.hidden_rows if line in lines]
            hidden_columns = frozenset(source.hidden_columns)
            lines_of_header = range(header.first, header.line + 1)
            width = max((source.widths.get(line, 0) for line in lines_of_header), default=0)
        sheets = self._documents.sheets(path, filename=filename)[:SHEETS_NAMED]
        others = [name for name in sheets if name != (found.sheet or source.sheet)]
        filled = tuple(name for name in others if self._holds_rows(path, filename, name))
        if not sampled and not (filled and layout.sheet is None):
            raise InvalidDocument(ONLY_HEADERS if header.cells else NO_ROWS)
        above = () if layout.no_header else rows_above(top, header, fields)
        return _Top(
            *(source.format, found, sheets, header, sampled, filled, above),
            *(hidden_columns, hidden_rows, source.is_hidden, width),
        )

    def _holds_rows(self, path: Path, filename: str, sheet: str) -> bool:
        """Whether there is more in a sheet than a row of headers; one with a long name counts."""
        if len(sheet) > _SHEET_CHARACTERS:
            return True
        with self._documents.open_table(path, filename=filename, sheet=sheet) as source:
            filled = (row for row in source.rows() if not holds_nothing(row[1]))
            return len(list(islice(filled, 2))) == 2


def _as_found(source: Table, header_line: int) -> Layout:
    # A name that cannot be asked for is that of the first sheet, which is read without a name.
    sheet = source.sheet if len(source.sheet or "") <= _SHEET_CHARACTERS else None
    return Layout(
        sheet=sheet,
        encoding=source.encoding,
        delimiter=source.delimiter,
        header_line=header_line or None,
        no_header=not header_line,
    )


async def load_plan(
    store: SqlSpreadsheetStore,
    types: SheetTypes,
    order: SpreadsheetInput,
    edits: Edits,
    today: date,
    *,
    made: Mapping[int, int] = MappingProxyType({}),
    counting: bool = False,
) -> Plan:
    """Load what is decided about the values and people of an import.

    Args:
        store: Tables.
        types: The import types there are.
        order: The import.
        edits: Corrections of its review.
        today: The day that dates are compared with.
        made: Mapping to the row that was made for it.
        counting: Values were not collected ahead: their rows are counted on the way.
    """
    fields = await fields_of(store, types, order)
    mapped = {column.target for column in edits.columns if column.target}
    context = await load_context(store, types, order, today, only=mapped)
    sheet_type = await sheet_type_of(types, order)
    own, referred = sheet_type.own_references, sheet_type.referred
    book = ValueBook(fields, context, counting=counting, own=own, referred=referred)
    people: dict[str, CellMapping] = {}
    bibs: dict[str, CellMapping] = {}
    async for page in store.mappings(order.uuid):
        people |= decided(PERSON, page)
        bibs |= decided(SAME_BIB, page)
        book.load(
            mapping.model_copy(update={"target_id": made[mapping.id]})
            if mapping.id in made
            else mapping
            for mapping in page
        )
    answers = PeopleAnswers()
    if sheet_type.is_about_people:
        answers = replace(await people_answers(store, order, people), bibs=bibs)
    return Plan(sheet_type, fields, edits.columns, context, book, answers, edits)
