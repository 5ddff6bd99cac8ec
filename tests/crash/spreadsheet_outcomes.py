"""What a spreadsheet import has left behind, in a form that two runs can be compared in.

Rows of other tables are named by their natural keys: ids depend on who came first.
"""

import zipfile
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sqlalchemy import Select, Table, select

from activities.spreadsheets.sheet_types import discover
from adapters.database.engine import Database
from adapters.database.models.base import metadata
from adapters.database.models.spreadsheets import (
    countries,
    custom_list_items,
    custom_list_values,
    decisions,
    event_categories,
    event_participants,
    persons,
    spreadsheet_columns,
    spreadsheet_files,
    spreadsheet_imports,
    spreadsheet_journal,
    spreadsheet_parked,
    spreadsheet_results,
    spreadsheet_undo_conflicts,
    spreadsheet_values,
)
from tests.crash.spreadsheet_files import Sheet
from workers.shared.resources import Resources
from workflows.shared.contracts import BlobRef

Lines = Sequence[tuple[Any, ...]]
StoredRows = Mapping[str, Lines]

_STATUS = (
    *("state", "sequence", "version", "columns_version", "values_version", "total", "step"),
    *("reason", "assignee", "waiting_since", "created", "updated", "skipped", "error", "parked"),
    *("values_total", "open_values", "mark_round", "mark_chunk", "mark_cursor", "mark_offset"),
    *("round_ended", "layout", "preview", "fields"),
)
_OWN: Mapping[str, tuple[Table, tuple[str, ...]]] = {
    "columns": (
        spreadsheet_columns,
        ("id", "header", "target", "status", "confidence", "alternatives", "samples"),
    ),
    "values": (
        spreadsheet_values,
        (
            *("field", "value", "status", "target_name", "create", "confidence"),
            *("alternatives", "rows"),
        ),
    ),
    "results": (spreadsheet_results, ("line", "outcome", "message", "problems")),
    "parked rows": (spreadsheet_parked, ("line", "offset")),
    "journal": (spreadsheet_journal, ("round", "chunk", "undone")),
    "undo conflicts": (spreadsheet_undo_conflicts, ("line", "table_name", "reason")),
    "files": (spreadsheet_files, ("name",)),
}


async def outcomes_of(resources: Resources, sheet: Sheet, folder: Path) -> StoredRows:
    """Status, mappings, trail, outcome of each row, report, and the rows themselves.

    Args:
        resources: Where it was imported.
        sheet: What was imported.
        folder: For a copy of the report.
    """
    database = resources.database
    imports = spreadsheet_imports
    status = select(*(imports.c[name] for name in _STATUS), imports.c.report, imports.c.id)
    ((*reported, report, own),) = await _rows(database, status.where(imports.c.uuid == sheet.uuid))
    found: dict[str, Lines] = {"status": list(zip(_STATUS, reported, strict=True))}
    for name, (table, columns) in _OWN.items():
        chosen = [table.c[column] for column in columns]
        query = select(*chosen).where(table.c.import_id == own)
        found[name] = await _rows(database, query.order_by(*chosen))
    found["decisions"] = sorted(await _rows(database, _trail(sheet)), key=repr)
    for name, query in _targets(sheet).items():
        found[name] = await _rows(database, query)
    return {**found, "report": await _report(resources, report, folder)}


async def target_rows(database: Database) -> StoredRows:
    """Every row of every table that spreadsheets about people go to, ids included."""
    found: dict[str, Lines] = {}
    tables = {each.table for kind in discover().values() for each in kind.targets}
    for name in sorted({*tables, "custom_list_values"}):
        table = metadata.tables[name]
        found[name] = await _rows(database, select(table).order_by(table.c.id))
    return found


async def parked_rows(database: Database, sheet: Sheet) -> Lines:
    """Rows that wait for a value right now."""
    parked, imports = spreadsheet_parked, spreadsheet_imports
    query = (
        select(parked.c.line, parked.c.offset)
        .join(imports, imports.c.id == parked.c.import_id)
        .where(imports.c.uuid == sheet.uuid)
    )
    return await _rows(database, query.order_by(parked.c.line))


def assert_same(what: str, found: StoredRows, expected: StoredRows) -> None:
    """Two runs have left the same behind.

    Raises:
        AssertionError: They have not; it names the first difference.
    """
    assert found.keys() == expected.keys()
    for name in expected:
        # Naming the first difference takes no time; a diff of 8,000 rows takes for ever.
        pairs = zip_longest(found[name], expected[name])
        for number, (one, other) in enumerate(pairs):
            assert one == other, f"{what}: {name}, number {number}: {one}, undisturbed {other}"


def _trail(sheet: Sheet) -> Select[Any]:
    names = ("kind", "subject", "decision", "by", "confidence", "alternatives")
    return select(*(decisions.c[name] for name in names)).where(
        decisions.c.workflow_id == sheet.run
    )


def _targets(sheet: Sheet) -> Mapping[str, Select[Any]]:
    mine = persons.c.person_key.endswith(f"@{sheet.name}.example.org")
    taking_part = event_participants.join(
        persons, persons.c.id == event_participants.c.person_id
    ).outerjoin(event_categories, event_categories.c.id == event_participants.c.category_id)
    plain = [column for column in persons.c if column.name not in ("id", "country_id")]
    return {
        "persons": select(*plain, countries.c.name)
        .select_from(persons.outerjoin(countries, countries.c.id == persons.c.country_id))
        .where(mine)
        .order_by(persons.c.person_key),
        "participants": select(
            event_participants.c.event_id,
            persons.c.person_key,
            event_categories.c.name,
            *(event_participants.c[name] for name in ("bib", "team", "registered_on", "notes")),
        )
        .select_from(taking_part)
        .where(mine)
        .order_by(persons.c.person_key, event_participants.c.event_id),
        "shirts": select(persons.c.person_key, custom_list_items.c.name)
        .select_from(
            taking_part.join(
                custom_list_values, custom_list_values.c.participant_id == event_participants.c.id
            ).join(
                custom_list_items,
                custom_list_items.c.id == custom_list_values.c.custom_list_item_id,
            )
        )
        .where(mine)
        .order_by(persons.c.person_key),
        "categories": select(event_categories.c.name)
        .where(event_categories.c.event_id == sheet.event_id)
        .order_by(event_categories.c.name),
    }


async def _rows(database: Database, query: Select[Any]) -> Lines:
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def _report(resources: Resources, reference: str, folder: Path) -> Lines:
    """The parts of the report, but for the one that says when it was made."""
    copy = folder / "report.xlsx"
    copy.unlink(missing_ok=True)
    await resources.blobs.download(BlobRef.model_validate_json(reference).name, copy)
    with zipfile.ZipFile(copy) as archive:
        names = [name for name in sorted(archive.namelist()) if name != "docProps/core.xml"]
        return [(name, archive.read(name)) for name in names]
