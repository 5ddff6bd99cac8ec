"""Orders, chunks and readings for tests of the spreadsheet store."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database
from adapters.database.models.every import metadata
from stack.sample_club import SampleClub
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.fields import SheetChunk, SheetMark, TargetRows
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.spreadsheets.runs import (
    RowCounts,
    SpreadsheetInput,
    SpreadsheetResult,
    StatusRecord,
    UndoInput,
    workflow_id,
)

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def order(club: SampleClub | None = None, **fields: Any) -> SpreadsheetInput:
    """An order of a new import."""
    given = {
        "uuid": str(uuid.uuid4()),
        "organisation_id": 1,
        "import_type": "EVENT_PARTICIPANT",
        "context_id": None if club is None else club.event_id,
        "source": BlobRef(name="spreadsheets/upload/file", size=100, sha256="ab" * 32),
        "filename": "runners.xlsx",
        "by": "anna",
        "notify": "anna@example.org",
        **fields,
    }
    return SpreadsheetInput(**given)


def record(of: SpreadsheetInput, sequence: int, state: str, **fields: Any) -> StatusRecord:
    """A transition, a minute after the one before."""
    at = NOW + timedelta(minutes=sequence)
    return StatusRecord(
        **{
            "uuid": of.uuid,
            "sequence": sequence,
            "state": SpreadsheetState(state),
            "at": at,
            **fields,
        }
    )


@dataclass(frozen=True)
class StoredSpreadsheet:
    """An import whose rows are people of the sample club's event."""

    store: SqlSpreadsheetStore
    order: SpreadsheetInput
    club: SampleClub

    @property
    def uuid(self) -> str:
        return self.order.uuid

    async def write(
        self, *runners: "Runner", number: int = 0, round: int = 0, line: int = 2, **more: Any
    ) -> SheetMark:
        """Write one chunk; lines follow each other."""
        chunk = self.chunk(*runners, number=number, round=round, line=line, **more)
        return await self.store.write(self.uuid, chunk, dry_run=self.order.dry_run)

    def chunk(
        self, *runners: "Runner", number: int = 0, round: int = 0, line: int = 2, **more: Any
    ) -> SheetChunk:
        last = line + len(runners)
        targets = {"targets": targets_of(self.club, runners), **more}
        return SheetChunk(
            **{
                "number": number,
                "round": round,
                "cursor": last,
                "offset": last,
                "lines": range(line, last),
                "main": "event_participants",
                **targets,
            }
        )

    async def end(self, state: str = "COMPLETED", **more: Any) -> RowCounts:
        """Bring the import to its end."""
        result = SpreadsheetResult(uuid=self.uuid, state=SpreadsheetState(state), **more)
        return await self.store.finish(result, record(self.order, 100, state))

    async def undo(self, *lines: int) -> Any:
        """Take it back as the undo step does; no lines: all of it."""
        order = undo_order(self.order).model_copy(update={"lines": lines})
        assert await self.store.begin_undo(order) is None
        while await self.store.undo_chunk(order):
            pass
        return await self.store.end_undo(order)


@dataclass(frozen=True)
class Runner:
    """A row of a spreadsheet; None is a blank cell."""

    key: str
    last_name: str | None = None
    city: str | None = None
    birthdate: Any = None
    category: int | None = None
    bib: str | None = None
    shirt: int | None = None


async def opened(store: SqlSpreadsheetStore, club: SampleClub, **fields: Any) -> StoredSpreadsheet:
    """A new import, opened."""
    new = order(club, **fields)
    await store.open(new, workflow_id(new.uuid), NOW)
    return StoredSpreadsheet(store, new, club)


def targets_of(club: SampleClub, runners: Sequence[Runner]) -> list[TargetRows]:
    """What runners become: a person, a participant, and the size of a shirt."""
    everybody = range(len(runners))
    shirts = [place for place, runner in enumerate(runners) if runner.shirt is not None]
    return [
        TargetRows(
            "persons",
            ("organisation_id", "person_key", "last_name", "city", "birthdate"),
            [
                (club.organisation_id, runner.key, runner.last_name, runner.city, runner.birthdate)
                for runner in runners
            ],
            everybody,
        ),
        TargetRows(
            "event_participants",
            ("event_id", "category_id", "bib"),
            [(club.event_id, runner.category, runner.bib) for runner in runners],
            everybody,
            {"person_id": "persons"},
        ),
        TargetRows(
            "custom_list_values",
            ("custom_list_id", "custom_list_item_id"),
            [(club.shirts_list_id, runners[place].shirt) for place in shirts],
            shirts,
            {"participant_id": "event_participants"},
        ),
    ]


def undo_order(of: SpreadsheetInput, **fields: Any) -> UndoInput:
    """A request to undo, a day later."""
    return UndoInput(
        **{
            "uuid": of.uuid,
            "organisation_id": of.organisation_id,
            "by": "berta",
            "filename": of.filename,
            "requested_at": NOW + timedelta(days=1),
            **fields,
        }
    )


async def table(database: Database, name: str, columns: str) -> list[tuple[Any, ...]]:
    """These columns of every row, in the order of the columns."""
    target = metadata.tables[name]
    chosen = [target.c[column] for column in columns.split()]
    async with database.reading() as connection:
        rows = await connection.execute(select(*chosen).order_by(*chosen))
        return [tuple(row) for row in rows]


async def people(database: Database) -> list[tuple[Any, ...]]:
    """Every person by key: key, last name, city."""
    return await table(database, "persons", "person_key last_name city")


async def everything(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the tables that spreadsheets fill."""
    names = ("persons", "event_participants", "custom_list_values")
    return {
        name: await table(database, name, " ".join(metadata.tables[name].c.keys()))
        for name in names
    }


async def results(database: Database, uuid: str) -> list[tuple[int, str, str | None]]:
    """Line, outcome and message of each row of an import."""
    found = metadata.tables["spreadsheet_results"]
    imports = metadata.tables["spreadsheet_imports"]
    query = (
        select(found.c.line, found.c.outcome, found.c.message)
        .join(imports, imports.c.id == found.c.import_id)
        .where(imports.c.uuid == uuid)
        .order_by(found.c.line)
    )
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]
