"""Columns of a spreadsheet: as they were found, as people left them, as they are remembered."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Executable, bindparam, delete, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.models.spreadsheet_reviews import spreadsheet_review_operations
from adapters.database.models.spreadsheets import spreadsheet_columns
from adapters.database.spreadsheets import audit_trail, memory
from adapters.database.spreadsheets.locked_import import (
    LockedImport,
    lock_known,
    save,
)
from contracts.spreadsheets import Analysis, ColumnMapping, SaveColumns
from domain.spreadsheets.records import Preview, SkippedRow


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


async def save_columns(connection: AsyncConnection, bulk: BulkEngine, save_: SaveColumns) -> None:
    """Write the mappings of a version, unless a later one is written; add to the trail."""
    opened = await lock_known(connection, save_.uuid)
    if opened.purged:
        return
    await audit_trail.add(connection, bulk, opened.row.workflow_id, save_.trail, save_.version)
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
        by = save_.trail[-1].by if save_.trail else opened.row.by
        await memory.learn_columns(connection, bulk, opened, save_.columns, at, by)
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
        "alternatives": audit_trail.dump_alternatives(column.alternatives),
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
