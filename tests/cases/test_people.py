"""Lists of people as clubs and timekeepers have them: what goes in, and what does not and why."""

import json
import tomllib
from collections.abc import AsyncGenerator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import select

from adapters.database.models.every import metadata
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import (
    EVENT,
    NOW,
    ORGANISATION,
    SpreadsheetSetup,
    StagedSpreadsheet,
    open_spreadsheet_setup,
)
from workflows.spreadsheets.decisions import missing_fields
from workflows.spreadsheets.mappings import CellDecision, ColumnMapping, MappingStatus
from workflows.spreadsheets.reviews import DecideRows

FOLDER: Final = Path(__file__).parent
CASES: Final[Mapping[str, Any]] = tomllib.loads((FOLDER / "people.toml").read_text())
MEMBERSHIP_TYPES: Final = {
    "Erwachsene": 1,
    "Familie": 2,
    "Jugend": 3,
    "Ehrenmitglied": 4,
    "F\u00f6rderer": 5,
}
MAIN: Final = {
    "RESULT": "race_results",
    "MEMBERSHIP": "memberships",
    "EVENT_PARTICIPANT": "event_participants",
}


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncGenerator[SpreadsheetSetup]:
    url = fresh_url()
    async with open_spreadsheet_setup(url, tmp_path) as setup:
        own = {"organisation_id": ORGANISATION}
        types = [
            {"id": id, **own, "name": name, "spellings": "[]"}
            for name, id in MEMBERSHIP_TYPES.items()
        ]
        async with setup.database.transaction() as connection:
            for name, rows in (
                ("membership_periods", [{"id": 9, **own, "name": "2026"}]),
                ("membership_types", types),
                ("races", [{"id": 9, "event_id": EVENT, "name": "Half marathon"}]),
            ):
                await connection.execute(metadata.tables[name].insert(), rows)
        yield setup


@pytest.mark.parametrize("name", CASES)
async def test_lists_of_people(setup: SpreadsheetSetup, name: str) -> None:
    case = CASES[name]
    prepared = await _prepared(setup, name, case)
    missing = _missing(prepared)
    await _decide_rows(prepared, case)
    cells = await prepared.collect()
    assert {"missing": missing, "open": cells.open} == {
        "missing": case.get("missing", []),
        "open": len(case.get("values", {})),
    }
    if values := case.get("values"):
        ids = await prepared.ids()
        decisions = (
            CellDecision(id=ids[text], target_id=MEMBERSHIP_TYPES[said])
            for text, said in values.items()
        )
        await prepared.decide_these(tuple(decisions))
    processed = await prepared.process()
    messages = await setup.select("spreadsheet_results", "line outcome message")
    said = {str(line): text for line, outcome, text in messages if outcome not in _IN}
    expected = {**case.get("skipped", {}), **case.get("errors", {})}
    assert (processed.parked, said) == (case.get("parked", 0), expected)
    [(preview,)] = await setup.select("spreadsheet_imports", "preview")
    found = json.loads(preview).get("skipped", ())
    noted = {str(line): reason for line, reason, is_skipped, _ in found if not is_skipped}
    assert noted == case.get("noted", {})
    assert await _rows(setup, case) == [tuple(row) for row in case["rows"]]


_IN: Final = ("CREATED", "UPDATED")


async def _prepared(
    setup: SpreadsheetSetup, name: str, case: Mapping[str, Any]
) -> StagedSpreadsheet:
    content = (
        case["content"].encode() if "content" in case else (FOLDER / "people" / name).read_bytes()
    )
    context = 7 if case["type"] == "EVENT_PARTICIPANT" else 9
    prepared = await setup.prepare(
        content, filename=name, import_type=case["type"], context_id=context
    )
    by_hand = case.get("columns", {})
    columns = tuple(_decided(each, by_hand.get(each.header)) for each in prepared.columns)
    analysis = prepared.analysis.model_copy(update={"columns": columns})
    return StagedSpreadsheet(setup, prepared.order, analysis, prepared.staged)


def _decided(column: ColumnMapping, field: str | None) -> ColumnMapping:
    if field is None:
        return column
    return column.model_copy(update={"target": field, "status": MappingStatus.MANUAL_MATCHED})


async def _decide_rows(prepared: StagedSpreadsheet, case: Mapping[str, Any]) -> None:
    """Keep rows that look like no people, or leave rows out."""
    for version, (name, keep) in enumerate((("kept", True), ("left_out", False)), start=2):
        if lines := case.get(name):
            work = DecideRows(
                uuid=prepared.order.uuid,
                version=version,
                rows=tuple(lines),
                keep=keep,
                by="anna",
                at=NOW,
            )
            for _ in range(2):
                await environment().run(prepared.setup.lifecycle.decide_rows, work)


def _missing(prepared: StagedSpreadsheet) -> list[str]:
    return list(missing_fields(prepared.columns, prepared.analysis.fields))


async def _rows(setup: SpreadsheetSetup, case: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    main, persons = metadata.tables[MAIN[case["type"]]], metadata.tables["persons"]
    held = persons.join(main, persons.c.id == main.c.person_id)
    query = select(persons, main).select_from(held).order_by(main.c.id)
    names = [*(f"person {column.name}" for column in persons.c), *(c.name for c in main.c)]
    async with setup.database.reading() as connection:
        found = (await connection.execute(query)).all()
    rows = [dict(zip(names, map(_plain, row), strict=True)) for row in found]
    wanted = [name if name in main.c else f"person {name}" for name in case["shown"].split()]
    return [tuple(row[name] for name in wanted) for row in rows]


def _plain(value: Any) -> Any:
    """As the table of cases writes it."""
    if value is None:
        return ""
    return str(value) if isinstance(value, date) else float(value) if _is_decimal(value) else value


def _is_decimal(value: Any) -> bool:
    return type(value).__name__ == "Decimal"
