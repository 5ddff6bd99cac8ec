"""Columns of a spreadsheet: as they were found, as people left them, as they are remembered."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Executable, bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.spreadsheets import remembered_columns, spreadsheet_columns
from adapters.database.spreadsheets import audit_trail
from adapters.database.spreadsheets.locked_import import LockedImport, Tools, lock_known, save
from contracts.spreadsheets import Analysis, ColumnMapping, MappingStatus, SaveColumns
from domain.spreadsheets.match_keys import header_key
from domain.spreadsheets.records import Preview


async def save_analysis(
    connection: AsyncConnection, uuid: str, analysis: Analysis, preview: Preview, version: int
) -> None:
    """Replace columns and preview; nothing when a later version is written already."""
    opened = await lock_known(connection, uuid)
    if opened.purged or version < opened.row.columns_version:
        return
    columns = spreadsheet_columns
    await connection.execute(delete(columns).where(columns.c.import_id == opened.id))
    samples = [*preview.samples, *((),) * len(analysis.columns)]
    rows = [
        {"import_id": opened.id, **_values(column), "samples": _dump(values)}
        for column, values in zip(analysis.columns, samples, strict=False)
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


async def save_columns(connection: AsyncConnection, tools: Tools, save_: SaveColumns) -> None:
    """Write the mappings of a version, unless a later one is written; add to the trail."""
    opened = await lock_known(connection, save_.uuid)
    if opened.purged:
        return
    await audit_trail.add(connection, tools, opened.row.workflow_id, save_.trail, save_.version)
    if save_.version < opened.row.columns_version:
        return
    rows = [{"own_id": values.pop("id"), **values} for values in map(_values, save_.columns)]
    if rows:
        await connection.execute(
            _saving(tuple(rows[0])), [{"own": opened.id} | row for row in rows]
        )
    decided = audit_trail.latest(save_.trail)
    if save_.remember:
        at = decided or datetime.now(UTC)
        await _remember(connection, tools, opened, save_.columns, at)
    more = {} if decided is None else {"decided_at": decided}
    await save(connection, opened, _versions(opened, save_.version) | more)


async def remembered(
    connection: AsyncConnection, organisation_id: int, import_type: str, headers: Sequence[str]
) -> Mapping[str, str]:
    """Field of each of these headers that people decided about, under the header as it is asked
    for.

    Rows of older releases are spelled in another way; of two for one key the later one counts.
    """
    memory = remembered_columns
    rows = await connection.execute(
        select(memory.c.header, memory.c.target)
        .where(
            memory.c.organisation_id == organisation_id,
            memory.c.import_type == import_type,
        )
        .order_by(memory.c.decided_at, memory.c.header)
    )
    targets = {header_key(row.header): row.target for row in rows}
    keys = {header: header_key(header) for header in headers}
    return {header: targets[key] for header, key in keys.items() if key in targets}


async def _remember(
    connection: AsyncConnection,
    tools: Tools,
    opened: LockedImport,
    columns: Sequence[ColumnMapping],
    at: datetime,
) -> None:
    rows = {
        header_key(clean(column.header)): {
            "organisation_id": opened.row.organisation_id,
            "import_type": opened.row.import_type,
            "header": header_key(clean(column.header)),
            "target": column.target,
            "decided_at": at,
        }
        for column in columns
        if column.status is MappingStatus.MANUAL_MATCHED and column.target and column.header.strip()
    }
    if not rows:
        return
    insert = tools.writer.insert(remembered_columns)
    await connection.execute(
        insert.on_conflict_do_update(
            index_elements=["organisation_id", "import_type", "header"],
            set_={name: insert.excluded[name] for name in ("target", "decided_at")},
        ),
        list(rows.values()),
    )


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
        "alternatives": audit_trail.dump_alternatives(column.alternatives),
    }


def _versions(opened: LockedImport, version: int) -> dict[str, int]:
    return {"columns_version": version, "version": max(opened.row.version, version)}


def _dump(values: Sequence[str]) -> str:
    return json.dumps([clean(value) for value in values], ensure_ascii=False)


def _dump_preview(preview: Preview) -> str:
    kept = asdict(preview) | {
        "sheets": [clean(sheet) for sheet in preview.sheets],
        "rows": [(line, [clean(cell) for cell in cells]) for line, cells in preview.rows],
        "samples": [[clean(value) for value in values] for values in preview.samples],
    }
    return json.dumps(kept, ensure_ascii=False)
