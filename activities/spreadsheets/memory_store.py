"""What people decided, remembered for the next file."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Executable,
    Table,
    bindparam,
    delete,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import import_rows
from activities.spreadsheets.import_rows import (
    LockedImport,
    count,
    lock_known,
    paged,
    save,
)
from activities.spreadsheets.records import LearntColumn, LearntEdit, LearntValue, Page
from activities.spreadsheets.review_rules import RememberedEdit
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    remembered_columns,
    remembered_edits,
    remembered_values,
    spreadsheet_columns,
    spreadsheet_review_operations,
    spreadsheet_values,
)
from adapters.database.records import clean
from workflows.shared.cells import is_blank
from workflows.shared.contracts import Record
from workflows.spreadsheets.fields import (
    Preview,
    RememberedValue,
    SkippedRow,
    header_key,
    value_key,
)
from workflows.spreadsheets.mappings import ColumnMapping, MappingStatus
from workflows.spreadsheets.names import QUESTIONS
from workflows.spreadsheets.reviews import OPERATION, ReviewOperation, about_columns, remap_columns
from workflows.spreadsheets.runs import Analysis, SaveColumns

R = TypeVar("R", bound=Record)

_DECIDED = (MappingStatus.MANUAL_MATCHED, MappingStatus.IGNORED)
_BY_A_PERSON = 1.0
"""Confidence of a column that a person left out; one that was left out again has less."""
_SHOWN = 200


async def columns_of(
    connection: AsyncConnection, organisation_id: int, import_type: str, headers: Sequence[str]
) -> Mapping[str, str | None]:
    """Field of each of these headers that people decided about, under the header as it is asked
    for; None for one that they left out.

    Rows of older releases are spelled in another way; of two for one key the later one counts.
    """
    memory = remembered_columns
    rows = await connection.execute(
        select(memory.c.header, memory.c.target)
        .where(memory.c.organisation_id == organisation_id, memory.c.import_type == import_type)
        .order_by(memory.c.decided_at, memory.c.header)
    )
    targets = {header_key(row.header): row.target for row in rows}
    keys = {header: header_key(header) for header in headers}
    return {header: targets[key] for header, key in keys.items() if key in targets}


async def values_of(
    connection: AsyncConnection, organisation_id: int, import_type: str, field: str
) -> Mapping[str, RememberedValue]:
    """Key of each value to what people chose for it.

    Rows of older releases are spelled in another way; of two for one key the later one counts.
    """
    memory = remembered_values
    rows = await connection.execute(
        select(memory.c.value, memory.c.target_id, memory.c.target_name)
        .where(
            memory.c.organisation_id == organisation_id,
            memory.c.import_type == import_type,
            memory.c.field == field,
        )
        .order_by(memory.c.decided_at, memory.c.value)
    )
    return {value_key(row.value): RememberedValue(row.target_id, row.target_name) for row in rows}


async def learn_columns(
    connection: AsyncConnection,
    opened: LockedImport,
    columns: Sequence[ColumnMapping],
    at: datetime,
    by: str,
) -> None:
    """Keep what people chose for columns, and which they left out."""
    if opened.row.remembers is False:
        return
    rows = {
        header_key(clean(column.header)): {
            "organisation_id": opened.row.organisation_id,
            "import_type": opened.row.import_type,
            "header": header_key(clean(column.header)),
            "target": column.target,
            "shown": clean(column.header)[:_SHOWN],
            "decided_at": at,
            "decided_by": clean(by),
        }
        for column in columns
        if column.status in _DECIDED
        and (column.target or column.confidence == _BY_A_PERSON)
        and column.header.strip()
    }
    await _write(connection, remembered_columns, list(rows.values()))


async def learn_values(
    connection: AsyncConnection, opened: LockedImport, at: datetime, by: str
) -> None:
    """Keep what people chose for values, and which they left empty; of two spellings the later
    one wins."""
    if opened.row.remembers is False:
        return
    values = spreadsheet_values
    chosen = await connection.execute(
        select(values.c.field, values.c.value, values.c.target_id, values.c.target_name)
        .where(
            values.c.import_id == opened.id,
            values.c.field.not_in(sorted(QUESTIONS)),
            (
                (values.c.status == MappingStatus.MANUAL_MATCHED.value)
                & values.c.target_id.is_not(None)
            )
            | (values.c.status == MappingStatus.IGNORED.value),
        )
        .order_by(values.c.id)
    )
    rows = {
        (row.field, value_key(row.value)): {
            "organisation_id": opened.row.organisation_id,
            "import_type": opened.row.import_type,
            "field": row.field,
            "value": value_key(row.value),
            "target_id": row.target_id,
            "target_name": row.target_name,
            "shown": row.value[:_SHOWN],
            "decided_at": at,
            "decided_by": clean(by),
        }
        for row in chosen
        if row.target_id is not None or not is_blank(row.value)
    }
    await _write(connection, remembered_values, list(rows.values()))


async def _write(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    adding = insert(table)
    await connection.execute(
        adding.on_conflict_do_update(
            index_elements=keys,
            set_={name: adding.excluded[name] for name in rows[0] if name not in keys},
        ),
        list(rows),
    )


class SqlSpreadsheetMemory:
    """What was learnt, for people: to see, correct and forget.

    Every method raises `Unavailable` when the database is down. Nothing asks whose it is but the
    organisations that are passed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def columns(
        self,
        organisations: Sequence[int],
        import_type: str | None = None,
        query: str = "",
        *,
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntColumn]:
        """Headers that were decided about, the newest first."""
        memory = remembered_columns
        wanted = _wanted(memory, organisations, import_type, memory.c.header, header_key(query))
        rows, total = await self._page(memory, wanted, page, size)
        return Page([_shown(LearntColumn, row, "header") for row in rows], total)

    async def values(
        self,
        organisations: Sequence[int],
        import_type: str | None = None,
        query: str = "",
        *,
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntValue]:
        """Values that were decided about, the newest first."""
        memory = remembered_values
        wanted = _wanted(memory, organisations, import_type, memory.c.value, value_key(query))
        rows, total = await self._page(memory, wanted, page, size)
        return Page([_shown(LearntValue, row, "value") for row in rows], total)

    async def learn_column(self, learnt: LearntColumn) -> None:
        """Decide about a header, whatever was decided before."""
        row = {
            "organisation_id": learnt.organisation_id,
            "import_type": learnt.import_type,
            "header": header_key(clean(learnt.header)),
            "target": learnt.target,
            "shown": clean(learnt.header)[:_SHOWN],
            "decided_at": learnt.decided_at,
            "decided_by": clean(learnt.decided_by or ""),
        }
        await self._replace(remembered_columns, row, header_key)

    async def learn_value(self, learnt: LearntValue) -> None:
        """Decide about a value, whatever was decided before."""
        row = {
            "organisation_id": learnt.organisation_id,
            "import_type": learnt.import_type,
            "field": learnt.field,
            "value": value_key(clean(learnt.value)),
            "target_id": learnt.target_id,
            "target_name": None if learnt.target_name is None else clean(learnt.target_name),
            "shown": clean(learnt.value)[:_SHOWN],
            "decided_at": learnt.decided_at,
            "decided_by": clean(learnt.decided_by or ""),
        }
        await self._replace(remembered_values, row, value_key)

    async def forget_column(self, organisation_id: int, import_type: str, header: str) -> bool:
        """Forget a header; False when nothing was known of it."""
        known = {"organisation_id": organisation_id, "import_type": import_type}
        return await self._forget(remembered_columns, known, header_key, header_key(header))

    async def forget_value(
        self, organisation_id: int, import_type: str, field: str, value: str
    ) -> bool:
        """Forget a value of a field; False when nothing was known of it."""
        known = {"organisation_id": organisation_id, "import_type": import_type, "field": field}
        return await self._forget(remembered_values, known, value_key, value_key(value))

    async def _page(
        self, memory: Table, wanted: Sequence[ColumnElement[bool]], page: int, size: int
    ) -> tuple[Sequence[Any], int]:
        keys = [column for column in memory.primary_key]
        query = select(memory).where(*wanted).order_by(memory.c.decided_at.desc(), *keys)
        async with self._database.reading() as connection:
            total = (await connection.execute(count(memory, *wanted))).scalar_one()
            return (await connection.execute(paged(query, page, size))).all(), total

    async def _replace(self, memory: Table, row: Mapping[str, Any], key_of: Any) -> None:
        async with self._database.transaction() as connection:
            last = list(memory.primary_key)[-1].name
            known = {column.name: row[column.name] for column in memory.primary_key}
            key = known.pop(last)
            await _remove(connection, memory, known, key_of, key)
            await _write(connection, memory, [row])

    async def _forget(self, memory: Table, known: Mapping[str, Any], key_of: Any, key: str) -> bool:
        async with self._database.transaction() as connection:
            return await _remove(connection, memory, known, key_of, key)


async def _remove(
    connection: AsyncConnection, memory: Table, known: Mapping[str, Any], key_of: Any, key: str
) -> bool:
    """Remove a row, in whatever way an older release spelled its key."""
    last = list(memory.primary_key)[-1]
    mine = [memory.c[name] == value for name, value in known.items()]
    found = (await connection.execute(select(last).where(*mine))).scalars()
    spelled = [each for each in found if key_of(each) == key]
    for each in spelled:
        await connection.execute(delete(memory).where(*mine, last == each))
    return bool(spelled)


def _wanted(
    memory: Table,
    organisations: Sequence[int],
    import_type: str | None,
    text: ColumnElement[Any],
    key: str,
) -> Sequence[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = [memory.c.organisation_id.in_(sorted(organisations))]
    if import_type is not None:
        wanted.append(memory.c.import_type == import_type)
    if key:
        wanted.append(text.contains(key, autoescape=True))
    return wanted


async def learn(
    connection: AsyncConnection,
    opened: LockedImport,
    headers: Mapping[int, str],
    edits: Sequence[ReviewOperation],
) -> None:
    """Remember the operations that are about columns of the file and nothing else.

    One that is about no column, as a constant for a field without one, is true of files with the
    same headers at most, and is remembered for those.
    """
    if opened.row.remembers is False:
        return
    rows: dict[str, dict[str, Any]] = {}
    shape = _shape(headers.values())
    for position, each in enumerate(edits):
        columns = about_columns(each.operation)
        if columns is None or not all(headers.get(id, "").strip() for id in columns):
            continue
        named = {str(id): headers[id] for id in columns}
        kind = [each.operation.kind, *(header_key(header) for header in named.values())]
        field = getattr(each.operation, "field", None) or getattr(each.operation, "find", None)
        own = [] if columns else [shape]
        about = hashlib.sha256(json.dumps([*kind, field, *own]).encode()).hexdigest()
        rows[about] = {
            "organisation_id": opened.row.organisation_id,
            "import_type": opened.row.import_type,
            "about": about,
            "position": position,
            "body": clean(each.operation.model_dump_json()),
            "headers": clean(json.dumps(named, ensure_ascii=False)),
            "shape": None if columns else clean(json.dumps(shape, ensure_ascii=False)),
            "decided_at": each.at,
            "decided_by": clean(each.by),
        }
    if not rows:
        return
    adding = insert(remembered_edits)
    changed = ("position", "body", "headers", "shape", "decided_at", "decided_by")
    await connection.execute(
        adding.on_conflict_do_update(
            index_elements=["organisation_id", "import_type", "about"],
            set_={name: getattr(adding.excluded, name) for name in changed},
        ),
        list(rows.values()),
    )


async def find(
    connection: AsyncConnection,
    organisation_id: int,
    import_type: str,
    headers: Sequence[tuple[int, str]],
) -> Sequence[RememberedEdit]:
    """What was done to columns of these headers before, or to files of all of these headers; in the
    order it was done."""
    memory = remembered_edits
    rows = await connection.execute(
        select(memory)
        .where(memory.c.organisation_id == organisation_id, memory.c.import_type == import_type)
        .order_by(memory.c.decided_at, memory.c.position)
    )
    ids = {header_key(header): id for id, header in reversed(headers)}
    shape = _shape([header for _, header in headers])
    found: list[RememberedEdit] = []
    for row in rows:
        named: dict[str, str] = json.loads(row.headers)
        places = {int(id): ids.get(header_key(header)) for id, header in named.items()}
        here = {before: now for before, now in places.items() if now is not None}
        if len(here) < len(places) or (row.shape is not None and json.loads(row.shape) != shape):
            continue
        operation = remap_columns(OPERATION.validate_json(row.body), here)
        known = ReviewOperation(
            id=0, version=0, operation=operation, by=row.decided_by, at=row.decided_at
        )
        found.append(
            RememberedEdit(
                known,
                list(named.values()),
                row.decided_by,
                row.decided_at,
                is_of_file=row.shape is not None,
            )
        )
    return found


async def learnt(
    connection: AsyncConnection,
    organisations: Sequence[int],
    import_type: str | None,
    page: int,
    size: int,
) -> Page[LearntEdit]:
    """What is remembered of whole columns, the newest first."""
    memory = remembered_edits
    wanted: list[ColumnElement[bool]] = [memory.c.organisation_id.in_(sorted(organisations))]
    if import_type is not None:
        wanted.append(memory.c.import_type == import_type)
    order = (memory.c.decided_at.desc(), memory.c.position, memory.c.about)
    query = select(memory).where(*wanted).order_by(*order)
    total = (await connection.execute(count(memory, *wanted))).scalar_one()
    rows = (await connection.execute(paged(query, page, size))).all()
    return Page([_learnt(row) for row in rows], total)


async def forget(
    connection: AsyncConnection, organisation_id: int, import_type: str, about: str
) -> None:
    """No longer suggest one of them; nothing happens where there is none."""
    memory = remembered_edits
    await connection.execute(
        delete(memory).where(
            memory.c.organisation_id == organisation_id,
            memory.c.import_type == import_type,
            memory.c.about == about,
        )
    )


def _shown(record: type[R], row: Any, name: str) -> R:
    """What was learnt of a header or a value, as it stood in the file."""
    fields = row._asdict()
    text, by = row.shown or fields[name], row.decided_by or None
    return record.model_validate({**fields, name: text, "decided_by": by})


def _learnt(row: Any) -> LearntEdit:
    return LearntEdit.model_validate(
        {
            **row._asdict(),
            "headers": json.loads(row.headers),
            "operation": json.loads(row.body),
            "file_headers": json.loads(row.shape or "[]"),
        }
    )


def _shape(headers: Iterable[str]) -> list[str]:
    """The headers of a file, whatever their order, case and punctuation."""
    return sorted(header_key(header) for header in headers if header.strip())


async def save_analysis(
    connection: AsyncConnection, uuid: str, analysis: Analysis, preview: Preview, version: int
) -> None:
    """Replace columns and preview; nothing when a later version is written already."""
    opened = await lock_known(connection, uuid)
    if opened.purged or version < opened.row.columns_version:
        return
    columns = spreadsheet_columns
    await connection.execute(delete(columns).where(columns.c.import_id == opened.id))
    # Of an earlier layout: its lines may be others now.
    decided = spreadsheet_review_operations
    await connection.execute(delete(decided).where(decided.c.import_id == opened.id))
    samples = [*preview.samples, *((),) * len(analysis.columns)]
    blanks = [*preview.blanks, *((),) * len(analysis.columns)]
    rows = [
        {
            "import_id": opened.id,
            **_values(column),
            "samples": _dump(values),
            "blanks": _dump(nothing),
        }
        for column, values, nothing in zip(analysis.columns, samples, blanks, strict=False)
    ]
    if rows:
        await connection.execute(columns.insert(), rows)
    await save(
        connection,
        opened,
        {
            "layout": clean(analysis.layout.model_dump_json()),
            "fields": json.dumps([field.model_dump() for field in analysis.fields]),
            "preview": _dump_preview(preview),
            **_versions(opened, version),
        },
    )


async def save_hidden_rows(connection: AsyncConnection, uuid: str, rows: int, lines: str) -> None:
    """Put into the preview how many rows of the whole file are hidden, and the first lines."""
    opened = await lock_known(connection, uuid)
    if opened.purged or opened.row.preview is None:
        return
    more = {"hidden_rows": rows, "hidden_lines": lines}
    kept = json.loads(opened.row.preview) | more
    await save(connection, opened, {"preview": json.dumps(kept, ensure_ascii=False)})


async def save_skipped_rows(
    connection: AsyncConnection, uuid: str, rows: Sequence[SkippedRow]
) -> None:
    """Put into the preview which rows of the whole file are no people, or may be none."""
    opened = await lock_known(connection, uuid)
    if opened.purged or opened.row.preview is None:
        return
    found = [[row.line, row.reason, row.is_skipped, list(map(clean, row.cells))] for row in rows]
    kept = json.loads(opened.row.preview) | {"skipped": found}
    await save(connection, opened, {"preview": json.dumps(kept, ensure_ascii=False)})


async def save_columns(connection: AsyncConnection, save_: SaveColumns) -> None:
    """Write the mappings of a version, unless a later one is written; add to the trail."""
    opened = await lock_known(connection, save_.uuid)
    if opened.purged:
        return
    await import_rows.add(connection, opened.row.workflow_id, save_.trail, save_.version)
    if save_.version < opened.row.columns_version:
        return
    rows = [{"own_id": values.pop("id"), **values} for values in map(_values, save_.columns)]
    if rows:
        await connection.execute(
            _saving(tuple(rows[0])), [{"own": opened.id} | row for row in rows]
        )
    decided = import_rows.latest(save_.trail)
    if save_.remember:
        at = decided or datetime.now(UTC)
        by = save_.trail[-1].by if save_.trail else opened.row.by
        await learn_columns(connection, opened, save_.columns, at, by)
    more = {} if decided is None else {"decided_at": decided}
    await save(connection, opened, _versions(opened, save_.version) | more)


@lru_cache(maxsize=1)
def _saving(names: tuple[str, ...]) -> Executable:
    columns = spreadsheet_columns
    return (
        update(columns)
        .where(columns.c.import_id == bindparam("own"), columns.c.id == bindparam("own_id"))
        .values({name: bindparam(name) for name in names if name != "own_id"})
    )


def _values(column: ColumnMapping) -> dict[str, Any]:
    return {
        "id": column.id,
        "position": column.index,
        "header": clean(column.header),
        "target": column.target,
        "status": column.status.value,
        "confidence": column.confidence,
        "why": clean(column.why),
        "alternatives": import_rows.dump_alternatives(column.alternatives),
    }


def _versions(opened: LockedImport, version: int) -> dict[str, int]:
    return {"columns_version": version, "version": max(opened.row.version, version)}


def _dump(values: Sequence[str]) -> str:
    return json.dumps([clean(value) for value in values], ensure_ascii=False)


def _dump_preview(preview: Preview) -> str:
    kept = asdict(preview) | {
        "sheets": [clean(sheet) for sheet in preview.sheets],
        "other_sheets": [clean(sheet) for sheet in preview.other_sheets],
        "hidden_columns": [clean(header) for header in preview.hidden_columns],
        "rows": [(line, [clean(cell) for cell in cells]) for line, cells in preview.rows],
        "samples": [[clean(value) for value in values] for values in preview.samples],
        "blanks": [[clean(value) for value in values] for values in preview.blanks],
    }
    return json.dumps(kept, ensure_ascii=False)
