"""What becomes of a table in either pipeline, as plain data."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import select
from temporalio.exceptions import ApplicationError

from activities.imports.table_reader import TableReader
from activities.imports.tables import own_tables
from adapters.database.models.every import metadata
from adapters.files.documents import FileDocuments
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import message_of
from tests.support.spreadsheets.activities import (
    EVENT,
    ORGANISATION,
    SpreadsheetSetup,
    StagedSpreadsheet,
    open_spreadsheet_setup,
)
from workflows.imports.messages import TableMessage
from workflows.shared.errors import InvalidDocument
from workflows.spreadsheets.decisions import missing_fields
from workflows.spreadsheets.mappings import CellMapping, ColumnMapping

Outcome = dict[str, Any]
_CONTEXT: Final = 9
_MAIN: Final = {
    "EVENT_PARTICIPANT": "event_participants",
    "MEMBERSHIP": "memberships",
    "RESULT": "race_results",
}
_NOT_SHOWN: Final = frozenset(
    (
        *("id", "person_id", "person_key", "name_key", "mail_key", "organisation_id"),
        *("event_id", "race_id", "membership_period_id"),
    )
)
"""Columns that show nothing of the file."""


def of_import(path: Path, type: str, **fields: Any) -> Outcome:
    """Read a file as an import does."""
    if type in ("mto", "estimation_master"):
        fields.setdefault("service_id", "S1")
    message = cast(TableMessage, message_of(type, blob_name="in/file", **fields))
    spec = own_tables()[message.document_type]
    reader = TableReader(FileDocuments(), path, message, spec, chunk_rows=7)
    columns: Sequence[str] = ()
    rows: list[Any] = []
    problems: list[Any] = []
    try:
        reader.open()
        while (chunk := reader.next_chunk()) is not None:
            columns = chunk.columns
            rows += [[line, *row] for line, row in zip(chunk.lines, chunk.rows, strict=True)]
            problems += [
                [each.line, each.sheet, each.column, each.value, each.reason]
                for rejected in chunk.rejected
                for each in rejected.problems
            ]
    except InvalidDocument as refused:
        return {"refused": str(refused)}
    finally:
        reader.close()
    found = reader.findings
    return _plain(
        {
            "fields": list(columns),
            "titles": reader.titles,
            "rows": rows,
            "problems": problems,
            "skipped": [
                [each.line, each.sheet, each.value, each.reason]
                for row in found.skipped
                for each in row.problems
            ],
            "notes": found.sentences(10_000),
            "encoding": reader.guessed_encoding,
        }
    )


async def of_spreadsheet(path: Path, type: str, folder: Path) -> Outcome:
    """Take a file through the steps of a spreadsheet, as far as it goes without an answer."""
    folder.mkdir()
    url = fresh_url()
    async with open_spreadsheet_setup(url, folder) as setup:
        await _fill(setup)
        context = EVENT if type == "EVENT_PARTICIPANT" else _CONTEXT
        try:
            prepared = await setup.prepare(
                path.read_bytes(), filename=path.name, import_type=type, context_id=context
            )
        except ApplicationError as refused:
            return {"refused": refused.message}
        return _plain(await _seen(setup, prepared, type))


async def _seen(setup: SpreadsheetSetup, prepared: StagedSpreadsheet, type: str) -> Outcome:
    analysis = prepared.analysis
    missing = missing_fields(prepared.columns, analysis.fields)
    [(preview,)] = await setup.select("spreadsheet_imports", "preview")
    outcome = {
        "layout": analysis.layout.model_dump(exclude_defaults=True),
        "above": analysis.lines_above,
        "columns": [_column(each) for each in prepared.columns],
        "missing": missing,
        "staged": prepared.staged.total,
        "skipped": [row[:3] for row in json.loads(preview).get("skipped", ())],
    }
    if missing:
        return outcome
    await prepared.collect()
    pages = [page async for page in setup.store.mappings(prepared.order.uuid)]
    await prepared.process()
    return {
        **outcome,
        "values": [_value(each) for page in pages for each in page],
        "problems": await setup.select("spreadsheet_results", "line outcome message"),
        "rows": await _rows(setup, _MAIN[type]),
    }


def _column(column: ColumnMapping) -> list[Any]:
    suggested = [[each.name, round(each.score, 2), each.why] for each in column.alternatives]
    fits = [column.target, column.status.value, round(column.confidence, 2), column.why]
    return [column.index, column.header, *fits, suggested]


def _value(value: CellMapping) -> list[Any]:
    suggested = [[each.name, round(each.score, 2)] for each in value.alternatives]
    means = [value.status.value, value.target_name, round(value.confidence, 2), value.question]
    return [value.field, value.value, *means, suggested]


async def _rows(setup: SpreadsheetSetup, main: str) -> list[dict[str, Any]]:
    persons, table = metadata.tables["persons"], metadata.tables[main]
    held = persons.join(table, persons.c.id == table.c.person_id)
    shown = [
        each.label(f"{each.table.name}.{each.name}")
        for each in (*persons.c, *table.c)
        if each.name not in _NOT_SHOWN
    ]
    async with setup.database.reading() as connection:
        query = select(*shown).select_from(held).order_by(table.c.id)
        found = (await connection.execute(query)).mappings()
        return [{k: v for k, v in row.items() if v is not None} for row in found]


async def _fill(setup: SpreadsheetSetup) -> None:
    own = {"organisation_id": ORGANISATION}
    named = {
        "membership_periods": [{"id": _CONTEXT, **own, "name": "2026"}],
        "membership_types": [
            {"id": id, **own, "name": name, "spellings": "[]"}
            for id, name in enumerate(("Erwachsene", "Familie", "Jugend"), start=1)
        ],
        "races": [{"id": _CONTEXT, "event_id": EVENT, "name": "Half marathon"}],
    }
    async with setup.database.transaction() as connection:
        for name, rows in named.items():
            await connection.execute(metadata.tables[name].insert(), rows)


def _plain(value: Any) -> Any:
    """Data as JSON has it; what is empty is left out."""
    match value:
        case Mapping():
            found = {str(name): _plain(each) for name, each in value.items()}
            return {name: each for name, each in found.items() if each not in (None, [], {}, "")}
        case str() | bool() | int() | float() | None:
            return value
        case Decimal():
            return f"{value.normalize():f}"
        case date():
            return value.isoformat()
        case _:
            return [_plain(each) for each in value]
