"""What docflow has learnt of people's decisions, and values of an import as a spreadsheet."""

import asyncio
import threading
import uuid as uuids
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from activities.shared.failures import from_thread
from activities.spreadsheets.analysis import load_context, sheet_type_of
from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.records import (
    LearntColumn,
    LearntEdit,
    LearntValue,
    Page,
    SpreadsheetRow,
)
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.value_mapping import resolver_of, scope_of
from adapters.ports.errors import UnreadableDocument
from workers.shared.services.errors import Forbidden, Refused, WrongState, no_role
from workers.shared.services.identity import MAPPER, VIEWER, Identity, require_role
from workers.spreadsheets.queries import FieldView, ReportFile
from workers.spreadsheets.statuses import LARGEST_PAGE
from workers.spreadsheets.upload_form import Upload
from workflows.shared.cells import Cell, cell_text
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import FieldSpec, text
from workflows.spreadsheets.fields import header_key, value_key
from workflows.spreadsheets.mappings import (
    DECISIONS,
    CellDecision,
    CellMapping,
    MappingsAnswer,
    MappingStatus,
    SpreadsheetState,
)
from workflows.spreadsheets.names import QUESTIONS, SAME_BIB
from workflows.spreadsheets.people import PERSON
from workflows.spreadsheets.runs import status_label


class SpreadsheetMemory:
    """Decisions that hold for the next files of an organisation.

    Each method is given who asks; what an organisation that is not theirs has learnt does not
    exist for them.

    Args:
        store: Tables.
        types: The import types there are.
    """

    def __init__(self, store: SqlSpreadsheetStore, types: SheetTypes) -> None:
        self._store = store
        self._memory = store.memory
        self._types = types

    async def columns(
        self,
        who: Identity,
        *,
        organisation: int | None = None,
        import_type: str | None = None,
        query: str = "",
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntColumn]:
        """Headers that were decided about, the newest first."""
        return await self._memory.columns(
            _mine(who, organisation), import_type, query, page=page, size=min(size, LARGEST_PAGE)
        )

    async def values(
        self,
        who: Identity,
        *,
        organisation: int | None = None,
        import_type: str | None = None,
        query: str = "",
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntValue]:
        """Values that were decided about, the newest first."""
        return await self._memory.values(
            _mine(who, organisation), import_type, query, page=page, size=min(size, LARGEST_PAGE)
        )

    async def edits(
        self,
        who: Identity,
        *,
        organisation: int | None = None,
        import_type: str | None = None,
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntEdit]:
        """Changes of whole columns that are suggested in reviews, the newest first."""
        return await self._store.reviews.learnt(
            _mine(who, organisation), import_type, page, min(size, LARGEST_PAGE)
        )

    async def forget_edit(
        self, who: Identity, organisation: int | None, import_type: str, about: str
    ) -> None:
        """No longer suggest a change; nothing happens where there is none of this key.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: The organisation is not theirs.
        """
        await self._store.reviews.forget_learnt(_owner(who, organisation), import_type, about)

    async def learn_column(
        self,
        who: Identity,
        organisation: int | None,
        import_type: str,
        header: str,
        target: str | None,
    ) -> LearntColumn:
        """Decide what a header means from now on.

        Args:
            who: Who decides.
            organisation: For whom; None: the first one of theirs.
            import_type: Name of the import type.
            header: As in files.
            target: The field; None: such columns are left out.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: There is no such type or field, the organisation is not theirs, or the header
                is blank.
        """
        owner = _owner(who, organisation)
        fields = await self._fields(owner, import_type)
        if not header_key(header):
            raise Refused("header: is blank")
        if target is not None and target not in fields:
            raise Refused(f"target: {import_type} has no field {target}")
        learnt = LearntColumn(
            organisation_id=owner,
            import_type=import_type,
            header=header,
            target=target,
            decided_by=who.subject,
            decided_at=datetime.now(UTC),
        )
        await self._memory.learn_column(learnt)
        return learnt

    async def learn_value(
        self,
        who: Identity,
        organisation: int | None,
        import_type: str,
        field: str,
        value: str,
        target_name: str | None,
    ) -> LearntValue:
        """Decide what a value means from now on.

        Args:
            who: Who decides.
            organisation: For whom; None: the first one of theirs.
            import_type: Name of the import type.
            field: Name of the field.
            value: As in files.
            target_name: Name of the row that it means, in whatever event; None: it is left empty.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: There is no such type, field or row, the organisation is not theirs, or the
                value is blank.
        """
        owner = _owner(who, organisation)
        known = (await self._fields(owner, import_type)).get(field)
        if known is None or known.resolver is None:
            raise Refused(f"field: {import_type} has no field {field} that refers to rows")
        if not value_key(value):
            raise Refused("value: is blank")
        id = None if target_name is None else await self._row_id(owner, known, target_name)
        learnt = LearntValue(
            organisation_id=owner,
            import_type=import_type,
            field=field,
            value=value,
            target_id=id,
            target_name=target_name,
            decided_by=who.subject,
            decided_at=datetime.now(UTC),
        )
        await self._memory.learn_value(learnt)
        return learnt

    async def forget_column(
        self, who: Identity, organisation: int | None, import_type: str, header: str
    ) -> None:
        """Forget what a header means; nothing happens where nothing was known of it.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: The organisation is not theirs.
        """
        await self._memory.forget_column(_owner(who, organisation), import_type, header)

    async def forget_value(
        self, who: Identity, organisation: int | None, import_type: str, field: str, value: str
    ) -> None:
        """Forget what a value means; nothing happens where nothing was known of it.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: The organisation is not theirs.
        """
        await self._memory.forget_value(_owner(who, organisation), import_type, field, value)

    async def _fields(self, organisation: int, import_type: str) -> dict[str, FieldSpec]:
        try:
            kind = await self._types.get(import_type)
        except RuleViolation as error:
            raise Refused(f"import_type: {error}") from error
        lists = await self._store.custom_lists(organisation)
        return {each.name: each for each in kind.fields_for(lists)}

    async def _row_id(self, organisation: int, field: FieldSpec, name: str) -> int | None:
        """The row of a name; None where rows belong to an event, each of which has its own."""
        today = datetime.now(UTC).date()
        bare = ImportContext(organisation, None, today)
        scope = scope_of(field, bare)
        rows = await self._store.entities(scope)
        if not rows:
            return None
        found = resolver_of(scope.kind).resolve(
            name, ImportContext(organisation, None, today, {scope.kind: rows})
        )
        if found.target is None:
            raise Refused(f"target_name: there is no {field.title} {name!r}")
        return found.target.id


def _mine(who: Identity, organisation: int | None) -> Sequence[int]:
    if not who.may_read:
        raise no_role()
    return [id for id in who.where(VIEWER) if organisation in (None, id)]


def _owner(who: Identity, organisation: int | None) -> int:
    if not who.may_write:
        raise Forbidden("your roles allow reading only; ask for the role mapper")
    owner = next(iter(who.where(MAPPER)), None) if organisation is None else organisation
    if owner is None or owner not in who.organisations:
        raise Refused("organisation_id: is not one of yours")
    require_role(who, MAPPER, owner)
    return owner


NUMBER: Final = "number (do not change)"
"""Header of the column that says which value it is."""
VALUE: Final = "value"
MEANING: Final = "meaning"
_HEADERS: Final = (NUMBER, "field", VALUE, "rows", "suggestion", MEANING, "also possible")
_IGNORE, _CREATE, _CONFIRM = "(leave empty)", "(add)", "(as suggested)"
_OTHER, _LEAVE_OUT = "(another person)", "(leave the row out)"
_WITHOUT, _BOTH = "(import without the bib)", "(both have it)"
_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys((_IGNORE, _LEAVE_OUT, _WITHOUT), "ignore"),
    **dict.fromkeys((_CREATE, _OTHER, _BOTH), "create"),
    _CONFIRM: "confirm",
}
_OF_QUESTIONS: Final[Mapping[str, tuple[str, str]]] = {
    PERSON.name: (_OTHER, _LEAVE_OUT),
    SAME_BIB.name: (_BOTH, _WITHOUT),
}
"""What answers to questions are called, in place of add and leave empty."""
_NAMED: Final = 5
"""Faults of a file that a refusal names."""


class Answers(Protocol):
    """What takes decisions to the run of an import, and finds an import."""

    async def writable(self, who: Identity, uuid: str) -> SpreadsheetRow: ...
    async def kept(self, who: Identity, uuid: str) -> SpreadsheetRow: ...
    async def fields(self, who: Identity, uuid: str) -> Sequence[FieldView]: ...
    async def update_cells(
        self,
        who: Identity,
        uuid: str,
        decisions: Sequence[CellDecision],
        expected_version: int | None = None,
    ) -> MappingsAnswer: ...


_BEFORE_VALUES: Final = frozenset({SpreadsheetState.UPLOADED, SpreadsheetState.COLUMN_MAPPING})


class Answered(NamedTuple):
    """What a file has answered."""

    values: int
    answer: MappingsAnswer | None
    """None: nothing differs from what is decided."""


class _Line(NamedTuple):
    line: int
    value: str
    meaning: str


class SpreadsheetValueFiles:
    """Writes the values of an import into a spreadsheet, and takes their meanings from one."""

    def __init__(
        self,
        answers: Answers,
        store: SqlSpreadsheetStore,
        types: SheetTypes,
        scratch: Path,
        reading: asyncio.Semaphore,
    ) -> None:
        self._answers, self._store, self._types = answers, store, types
        self._scratch, self._reading = scratch, reading

    async def export(self, who: Identity, uuid: str, *, only_open: bool = False) -> ReportFile:
        """The values with their meanings, to be filled in and sent back.

        Raises:
            WrongState: Values have not been collected yet; the file would be empty.
        """
        row = await self._answers.kept(who, uuid)
        if row.state in _BEFORE_VALUES:
            raise WrongState(
                f"values have not been collected yet; the import {status_label(row.state)}"
            )
        fields = {each.name: each for each in await self._answers.fields(who, uuid)}
        path = self._scratch / f"values-{uuids.uuid4().hex}.xlsx"
        stopped = threading.Event()
        pages = from_thread(_wanted(self._store.mappings(uuid), only_open=only_open), stopped)
        try:
            await asyncio.to_thread(_write, path, pages, fields)
        finally:
            stopped.set()
        stem = row.filename.rsplit(".", 1)[0] or "import"
        return ReportFile(path, f"{stem}-values.xlsx")

    async def upload(
        self, who: Identity, uuid: str, upload: Upload, expected_version: int | None = None
    ) -> Answered:
        """Take the meanings of a file that `export` has written; what is blank stays as it is.

        Everything in it is checked before the first value is decided.

        Raises:
            Conflict: Another person has answered since.
            WrongState: Values are not being mapped.
            Refused: It is not an export of this import, or a meaning is unknown; lines are named.
        """
        row = await self._answers.writable(who, uuid)
        if row.state is not SpreadsheetState.CELL_MAPPING:
            raise WrongState(f"values are not being mapped; the import {status_label(row.state)}")
        path = self._scratch / f"values-{uuids.uuid4().hex}"
        try:
            await upload.open()
            with path.open("wb") as file:
                async for piece in upload.file():
                    file.write(piece)
            await upload.finish()
            async with self._reading:
                lines = await asyncio.to_thread(_read, path, upload.filename)
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        decisions = await self._decisions(row, lines)
        answer = None
        version = row.version if expected_version is None else expected_version
        for start in range(0, len(decisions), DECISIONS):
            some = decisions[start : start + DECISIONS]
            answer = await self._answers.update_cells(who, uuid, some, version)
            version = answer.version
        return Answered(len(decisions), answer)

    async def _decisions(
        self, row: SpreadsheetRow, lines: Mapping[int, _Line]
    ) -> Sequence[CellDecision]:
        context = await load_context(self._store, self._types, row, datetime.now(UTC).date())
        kind = await sheet_type_of(self._types, row)
        declared = kind.fields_for(context.custom_lists)
        resolvers = {each.name: each.resolver for each in declared if each.resolver}
        creating = {*QUESTIONS, *(each.name for each in declared if each.creates)}

        def target(mapping: CellMapping, meaning: str) -> int | None:
            for each in mapping.alternatives:
                if each.name == meaning:
                    return each.id
            if mapping.field not in resolvers:
                return None
            found = resolver_of(resolvers[mapping.field]).resolve(meaning, context).target
            return None if found is None else found.id

        decisions: list[CellDecision] = []
        faults: list[str] = []
        known: set[int] = set()
        async for page in self._store.mappings(row.uuid):
            for mapping in page:
                if (line := lines.get(mapping.id)) is None:
                    continue
                known.add(mapping.id)
                if line.value != mapping.value.strip():
                    faults.append(f"line {line.line}: value {mapping.id} is {mapping.value!r}")
                elif line.meaning and line.meaning.casefold() != _meaning(mapping).casefold():
                    word = _WORDS.get(line.meaning.casefold())
                    id = None if word else target(mapping, line.meaning)
                    is_unknown = word is None and id is None
                    if is_unknown or (word == "create" and mapping.field not in creating):
                        faults.append(f"line {line.line}: {line.meaning!r} is not known")
                    given = {word: True} if word else {"target_id": id}
                    decisions.append(CellDecision.model_validate({"id": mapping.id, **given}))
        strange = sorted(lines[id].line for id in lines.keys() - known)
        faults += [f"line {line}: there is no such value in this import" for line in strange]
        if faults:
            more = f"; and {len(faults) - _NAMED} more" if len(faults) > _NAMED else ""
            raise Refused(f"nothing was saved: {'; '.join(faults[:_NAMED])}{more}")
        return decisions


async def _wanted(
    pages: AsyncIterator[Sequence[CellMapping]], *, only_open: bool
) -> AsyncIterator[Sequence[CellMapping]]:
    async for page in pages:
        yield [it for it in page if not only_open or it.status is MappingStatus.UNMATCHED]


def _write(path: Path, pages: Iterator[CellMapping], fields: Mapping[str, FieldView]) -> None:
    from adapters.files.tables.workbooks import write_xlsx

    write_xlsx(
        [text(name) for name in _HEADERS], (_row(it, fields.get(it.field)) for it in pages), path
    )


def _row(mapping: CellMapping, field: FieldView | None) -> tuple[object, ...]:
    suggested = mapping.alternatives[0] if mapping.alternatives else None
    words = [_CONFIRM] if suggested else []
    if mapping.field in _OF_QUESTIONS:
        words += _OF_QUESTIONS[mapping.field]
    else:
        words += [_IGNORE, _CREATE] if field and field.creates else [_IGNORE]
    return (
        mapping.id,
        field.title if field else QUESTIONS[mapping.field].title,
        mapping.value,
        mapping.rows,
        f"{suggested.name} ({suggested.score:.0%})" if suggested else None,
        _meaning(mapping),
        ", ".join(words),
    )


def _meaning(mapping: CellMapping) -> str:
    """What a value means now, as the file says it; "" where that is open."""
    create, ignore = _OF_QUESTIONS.get(mapping.field, (_CREATE, _IGNORE))
    if mapping.status is MappingStatus.IGNORED:
        return ignore
    if mapping.create:
        return create
    return (mapping.target_name or "").strip()


def _read(path: Path, filename: str) -> Mapping[int, _Line]:
    """Number of each value to what the file says about it."""
    from adapters.files.documents import FileDocuments

    try:
        with FileDocuments().open_table(path, filename=filename) as table:
            rows = table.rows()
            _, header = next(rows, (0, list[Cell]()))
            titles = [cell_text(cell).strip() for cell in header]
            if missing := [name for name in (NUMBER, VALUE, MEANING) if name not in titles]:
                raise Refused(f"the file has no column {missing[0]!r}; fill in an export of values")
            places = [titles.index(name) for name in (NUMBER, VALUE, MEANING)]
            return dict(_numbered(rows, places))
    except UnreadableDocument as error:
        raise Refused(f"the file cannot be read: {error}") from error


def _numbered(
    rows: Iterator[tuple[int, list[Cell]]], places: Sequence[int]
) -> Iterator[tuple[int, _Line]]:
    seen: set[int] = set()
    for line, cells in rows:
        number, value, meaning = (
            cell_text(cells[place]).strip() if place < len(cells) else "" for place in places
        )
        if not any((number, value, meaning)):
            continue
        if not number.isascii() or not number.isdecimal():
            raise Refused(f"line {line} has no number in {NUMBER!r}")
        if int(number) in seen:
            raise Refused(f"line {line}: value {number} stands in the file twice")
        seen.add(int(number))
        yield int(number), _Line(line, value, meaning)
