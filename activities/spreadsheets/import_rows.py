"""Status rows of imports: read, held for a transaction, with their contexts and their trail.

An import that is held for the length of a transaction.

A caller that changes an import locks its status row first, and then, where rows of the
organisation's tables are written, the organisation. Of two attempts at one step the second
therefore waits, and sees what the first has done; two imports of one organisation take turns.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import (
    BindParameter,
    ColumnDefault,
    ColumnElement,
    Executable,
    Select,
    Table,
    bindparam,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets.records import (
    AvailableContext,
    ImportFilter,
    ImportSorting,
    Page,
    SpreadsheetRow,
    UndoView,
)
from adapters.database.bulk.engine import acquire_advisory_lock
from adapters.database.engine import Database
from adapters.database.models.base import DOMAIN, is_stamped, key_of, known_as
from adapters.database.models.spreadsheets import (
    COUNTS,
    TARGETS,
    custom_lists,
    decisions,
    events,
    membership_periods,
    races,
    spreadsheet_imports,
    spreadsheet_values,
)
from adapters.database.records import clean
from adapters.types.tables import as_found, key_of_version, target_of
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.fields import SheetMark
from workflows.spreadsheets.mappings import (
    FINAL,
    Alternative,
    DecisionRecord,
    MappingStatus,
    SpreadsheetState,
)
from workflows.spreadsheets.names import QUESTIONS
from workflows.spreadsheets.runs import RowCounts

EVERY_IMPORT: Final = ImportFilter()
MOST_COUNTED: Final = 10_000
"""Imports that a list counts: counting ten million takes the database seconds."""
_NEWEST: Final = (spreadsheet_imports.c.created_at.desc(), spreadsheet_imports.c.id.desc())
_ORDERS: Final[Mapping[ImportSorting, Sequence[ColumnElement[Any]]]] = {
    ImportSorting.NEWEST: _NEWEST,
    ImportSorting.OLDEST: (spreadsheet_imports.c.created_at, spreadsheet_imports.c.id),
    ImportSorting.FILENAME: (spreadsheet_imports.c.filename, *_NEWEST),
}
_LARGE: Final = frozenset({"preview", "fields"})
"""Columns of the status row that a status is read without."""


class SqlSpreadsheetStatuses:
    """Status rows of imports; every method raises `Unavailable` when the database is down.

    Apart from `get` and `list`, nothing asks whose import it is: callers look it up first. One
    that is not there is empty. Pages count from 0.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, uuid: str, organisations: Collection[int]) -> SpreadsheetRow | None:
        """The status of an import; None when it is none of these organisations'."""
        row = await self._status(uuid)
        return None if row is None or row.organisation_id not in organisations else _status(row)

    async def list(
        self,
        organisations: Collection[int],
        wanted: ImportFilter = EVERY_IMPORT,
        *,
        page: int = 0,
        size: int = 20,
        most_counted: int = MOST_COUNTED,
    ) -> Page[SpreadsheetRow]:
        """Imports of these organisations; the total is counted up to `most_counted`."""
        conditions = _conditions(organisations, wanted)
        query = select(*_status_columns()).where(*conditions).order_by(*_ORDERS[wanted.sorting])
        async with self._database.reading() as connection:
            total = (await connection.execute(_count_to(most_counted + 1, conditions))).scalar_one()
            rows = await connection.execute(paged(query, page, size))
            items = [_status(row) for row in rows]
        return Page(items, min(total, most_counted), has_more=total > most_counted)

    async def newest(
        self,
        organisations: Collection[int],
        wanted: ImportFilter,
        *,
        behind: tuple[datetime, str] | None = None,
        limit: int = 50,
    ) -> Sequence[SpreadsheetRow]:
        """Imports of these organisations, the newest first.

        Args:
            organisations: Whose.
            wanted: Which of them; their order does not count.
            behind: Creation and uuid of the last one of the page before; None: the first page.
            limit: At most so many.
        """
        conditions = _conditions(organisations, wanted)
        if behind is not None:
            imports = spreadsheet_imports.c
            last = select(imports.id).where(imports.uuid == behind[1]).scalar_subquery()
            key = tuple_(imports.created_at, imports.id)
            conditions.append(key < tuple_(bindparam("at", behind[0]), last))
        query = select(*_status_columns()).where(*conditions).order_by(*_NEWEST).limit(limit)
        async with self._database.reading() as connection:
            return [_status(row) for row in await connection.execute(query)]

    async def undo(self, uuid: str) -> UndoView | None:
        """Progress of an undo; None: none has begun."""
        row = await self._status(uuid)
        if row is None or row.undo_state is None:
            return None
        return UndoView(
            state=row.undo_state,
            reason=row.undo_reason,
            deleted=row.undo_deleted,
            restored=row.undo_restored,
            left_alone=row.undo_left_alone,
            by=row.undo_by,
            requested_at=row.undo_requested_at,
            finished_at=row.undo_finished_at,
        )

    async def _status(self, uuid: str) -> Any:
        async with self._database.reading() as connection:
            return (await connection.execute(reading_status(), {"uuid": uuid})).one_or_none()


def _conditions(organisations: Collection[int], wanted: ImportFilter) -> list[ColumnElement[bool]]:
    imports = spreadsheet_imports.c
    conditions: list[ColumnElement[bool]] = [imports.organisation_id.in_(sorted(organisations))]
    for column, value in (
        (imports.state, wanted.state),
        (imports.import_type, wanted.import_type),
        (imports.context_id, wanted.context_id),
        (imports.by, wanted.by),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.text:
        conditions.append(imports.filename.icontains(clean(wanted.text), autoescape=True))
    return conditions


def _count_to(most: int, conditions: Sequence[ColumnElement[bool]]) -> Select[int]:
    some = select(spreadsheet_imports.c.id).where(*conditions).limit(most)
    return select(func.count()).select_from(some.subquery())


def count(table: Table, *conditions: ColumnElement[bool]) -> Select[int]:
    """How many rows of a table fit."""
    return select(func.count()).select_from(table).where(*conditions)


def paged(query: Select[*tuple[Any, ...]], page: int, size: int) -> Select[*tuple[Any, ...]]:
    """One page of a query; pages count from 0."""
    return query.limit(size).offset(page * size)


def _status_columns() -> list[ColumnElement[Any]]:
    return [column for column in spreadsheet_imports.c if column.name not in _LARGE]


@lru_cache
def reading_status() -> Select[*tuple[Any, ...]]:
    """Reads the status of the import `uuid`."""
    mine = spreadsheet_imports.c.uuid == bindparam("uuid")
    return select(*_status_columns()).where(mine)


def counts_of(row: Any) -> RowCounts:
    """Counts from a status row."""
    return RowCounts(**{name: getattr(row, name) for name in COUNTS})


def _status(row: Any) -> SpreadsheetRow:
    return SpreadsheetRow.model_validate(
        {
            **row._asdict(),
            "counts": counts_of(row),
            "layout": json.loads(row.layout or "{}"),
            "report": row.report and json.loads(row.report),
        }
    )


MOST: Final = 200
"""Rows of each table that are named, the newest."""


async def read_contexts(
    connection: AsyncConnection, organisations: Collection[int]
) -> Sequence[AvailableContext]:
    """What imports of these organisations can belong to, the newest first."""
    return [
        AvailableContext(table=table, id=row.id, name=row.name, organisation_id=row.organisation_id)
        for table, query in _queries(organisations).items()
        for row in await connection.execute(query.order_by(_IDS[table].desc()).limit(MOST))
    ]


async def read_names(
    connection: AsyncConnection,
    organisations: Collection[int],
    wanted: Collection[tuple[str, int]],
) -> Mapping[tuple[str, int], str]:
    """Names of some events, periods and races, each wanted by table and id."""
    ids: dict[str, list[int]] = defaultdict(list)
    for table, id in wanted:
        ids[table].append(id)
    return {
        (table, row.id): row.name
        for table, query in _queries(organisations).items()
        if table in ids
        for row in await connection.execute(query.where(_IDS[table].in_(ids[table])))
    }


_IDS: Final[Mapping[str, ColumnElement[int]]] = {
    table.name: table.c.id for table in (events, membership_periods, races, custom_lists)
}


def _queries(organisations: Collection[int]) -> Mapping[str, Select[*tuple[Any, ...]]]:
    """What imports of some organisations can belong to, by table."""
    mine = sorted(organisations)
    owned = {
        table.name: select(table.c.id, table.c.name, table.c.organisation_id).where(
            table.c.organisation_id.in_(mine)
        )
        for table in (custom_lists, events, membership_periods)
    }
    return {
        **owned,
        races.name: select(
            races.c.id,
            (events.c.name + ": " + races.c.name).label("name"),
            events.c.organisation_id,
        )
        .join(events, events.c.id == races.c.event_id)
        .where(events.c.organisation_id.in_(mine)),
    }


def target_table(name: str, now: Mapping[str, Table] = MappingProxyType({})) -> Table:
    """A table that rows of spreadsheets go to.

    Args:
        name: Of the table.
        now: Tables that may have changed since their version, as they are now.

    Raises:
        ValueError: There is none of that name: a mistake of an import type.
    """
    from adapters.database.models.every import metadata

    if name in now:
        return now[name]
    if name in TARGETS:
        return metadata.tables[name]
    if name not in DOMAIN:
        raise ValueError(f"{name} is not a table that spreadsheets can fill")
    return DOMAIN[name]


async def tables_now(
    connection: AsyncConnection, declared: DeclaredType | None
) -> Mapping[str, Table]:
    """The table of a version that this process knows, with the kinds of its columns now.

    Raises:
        RuleViolation: A column does not keep the values of the version any more.
    """
    if declared is None or declared.target is not None:
        return {}
    key = key_of_version(declared)
    return {key: await as_found(connection, DOMAIN[key])}


def table_name(table: Table) -> str:
    """What `target_table` has a table under."""
    return known_as(table) if is_stamped(table) else table.name


def is_elsewhere(table: Table) -> bool:
    """Whether rows of a target table go into a table of a team, or a file."""
    return is_stamped(table) and target_of(known_as(table)) is not None


def natural_key(table: Table) -> tuple[str, ...]:
    """Columns that name a row of a target table."""
    return key_of(table) if is_stamped(table) else TARGETS[table.name]


def defaults_of(table: Table, given: Collection[str]) -> dict[str, Any]:
    """What new rows have in columns that are not given."""
    found = {
        column.name: column.default.arg
        for column in table.c
        if column.name not in given and isinstance(column.default, ColumnDefault)
    }
    return {
        name: each.value if isinstance(each, BindParameter) else each
        for name, each in found.items()
    }


@lru_cache(maxsize=256)
def parents_of(name: str) -> dict[str, Table]:
    """Columns of a target table that refer to other tables."""
    return {key.parent.name: key.column.table for key in target_table(name).foreign_keys}


@lru_cache(maxsize=256)
def children_of(name: str) -> tuple[tuple[Table, str], ...]:
    """Tables and their columns that refer to a target table."""
    from adapters.database.models.every import metadata

    table = target_table(name)
    return tuple(
        (key.parent.table, key.parent.name)
        for other in metadata.tables.values()
        for key in other.foreign_keys
        if key.column.table is table
    )


PIPELINE: Final = "spreadsheets"
_PSEUDONYM: Final = re.compile(r"person [0-9]+")
_ALTERNATIVES: Final = TypeAdapter(tuple[Alternative, ...])


async def add(
    connection: AsyncConnection,
    run: str,
    lines: Iterable[DecisionRecord],
    version: int | None = None,
) -> None:
    """Add lines to the trail of a run; those that are there stay as they are.

    Args:
        connection: In a transaction.
        run: Id of the workflow.
        lines: What was decided.
        version: Of the mappings that the lines become. A worker that dies before it can report that
            it took an answer takes it again, later: the version is the same, the moment is not.
    """
    rows = [_row(run, line, version) for line in lines]
    if rows:
        adding = insert(decisions).on_conflict_do_nothing(index_elements=["workflow_id", "digest"])
        await connection.execute(adding, rows)


async def pseudonymise(connection: AsyncConnection, run: str) -> None:
    """Keep of a trail what was decided about which fields, and of people numbers alone.

    A second call changes nothing in lines that the first has left.
    """
    rows = (
        await connection.execute(
            select(decisions.c.id, decisions.c.kind, decisions.c.subject, decisions.c.by)
            .where(decisions.c.workflow_id == run)
            .order_by(decisions.c.id)
        )
    ).all()
    numbers: dict[str, str] = {}
    for row in rows:
        if _PSEUDONYM.fullmatch(row.by):
            numbers[row.by] = row.by
    for row in rows:
        numbers.setdefault(row.by, f"person {len(numbers) + 1}")
    changes = [
        {
            "own": row.id,
            "who": numbers[row.by],
            # Of a value only its field is kept: values and headers may name a person.
            "what": row.subject.partition(":")[0] if row.kind == "value" else "",
        }
        for row in rows
        if row.by and not _PSEUDONYM.fullmatch(row.by)
    ]
    if not changes:
        return
    change = (
        update(decisions)
        .where(decisions.c.id == bindparam("own"))
        .values(by=bindparam("who"), subject=bindparam("what"), alternatives="[]")
    )
    await connection.execute(change, changes)
    of_people = decisions.c.subject.in_(sorted(QUESTIONS))
    await connection.execute(
        update(decisions)
        .where(
            decisions.c.workflow_id == run,
            of_people,
            decisions.c.decision.not_in(("ignored", "created", "confirmed", "taken back")),
        )
        .values(decision="a person")
    )
    await connection.execute(
        update(decisions)
        .where(decisions.c.workflow_id == run, decisions.c.kind.in_(("reassign", "cancel")))
        .values(decision="")
    )


def latest(lines: Sequence[DecisionRecord]) -> datetime | None:
    """When the last of some decisions was made."""
    return max((line.at for line in lines), default=None)


def dump_alternatives(alternatives: Sequence[Alternative]) -> str:
    """Alternatives as JSON."""
    kept = [each.model_copy(update={"name": clean(each.name)}) for each in alternatives]
    return _ALTERNATIVES.dump_json(tuple(kept)).decode()


def load_alternatives(text: str) -> tuple[Alternative, ...]:
    """Alternatives from JSON."""
    return _ALTERNATIVES.validate_json(text)


def _row(run: str, line: DecisionRecord, version: int | None) -> dict[str, Any]:
    recorded = {
        "kind": line.kind,
        "subject": clean(line.subject),
        "decision": clean(line.decision),
        "by": clean(line.by),
    }
    moment = line.at.isoformat() if version is None else version
    digest = hashlib.sha256(json.dumps([*recorded.values(), moment]).encode())
    return {
        "pipeline": PIPELINE,
        "workflow_id": run,
        **recorded,
        "at": line.at,
        "confidence": line.confidence,
        "alternatives": dump_alternatives(line.alternatives),
        "digest": digest.digest(),
    }


@dataclass(frozen=True)
class LockedImport:
    """A status row, locked until the transaction ends.

    Attributes:
        id: What the rows of the import's other tables are filed under.
        row: The status row as it was when it was locked.
    """

    id: int
    row: Any

    @property
    def state(self) -> SpreadsheetState:
        """Where the import stands."""
        return SpreadsheetState(self.row.state)

    @property
    def ended(self) -> bool:
        """Whether nothing more may happen to it but undo and purge."""
        return self.state in FINAL

    @property
    def purged(self) -> bool:
        """Whether what was kept for it is gone, and must not come back."""
        return self.row.purged_at is not None

    @property
    def mark(self) -> SheetMark:
        """How far its rows have come."""
        return mark_of(self.row)


async def lock(connection: AsyncConnection, uuid: str) -> LockedImport | None:
    """Lock an import; None when there is none."""
    row = (await connection.execute(_locking(), {"uuid": uuid})).one_or_none()
    return None if row is None else LockedImport(row.id, row)


async def lock_known(connection: AsyncConnection, uuid: str) -> LockedImport:
    """Lock an import that must be there.

    Raises:
        LookupError: It is not: its run began without `open`.
    """
    opened = await lock(connection, uuid)
    if opened is None:
        raise LookupError(f"there is no import {uuid}")
    return opened


async def acquire_organisation_lock(connection: AsyncConnection, organisation_id: int) -> None:
    """Wait until no other import writes rows of the organisation."""
    await acquire_advisory_lock(connection, f"spreadsheets/{organisation_id}")


async def save(
    connection: AsyncConnection, opened: LockedImport, values: Mapping[str, Any]
) -> None:
    """Change columns of the status row; its revision rises."""
    parameters = {"own_id": opened.id, "updated_at": datetime.now(UTC), **values}
    await connection.execute(_saving(tuple(values)), parameters)


async def counted_values(connection: AsyncConnection, opened: LockedImport) -> dict[str, int]:
    """Figures of the import's values as the status row has them."""
    row = (
        await connection.execute(
            _counting(), {"own_id": opened.id, "open": MappingStatus.UNMATCHED.value}
        )
    ).one()
    return {"values_total": row.total, "open_values": row.open}


def mark_of(row: Any) -> SheetMark:
    """The progress mark from a status row."""
    return SheetMark(
        round=row.mark_round,
        chunk=row.mark_chunk,
        cursor=row.mark_cursor,
        offset=row.mark_offset,
        counts=counts_of(row),
        finished=row.round_ended,
    )


@lru_cache
def _locking() -> Select[Any]:
    return (
        select(spreadsheet_imports)
        .where(spreadsheet_imports.c.uuid == bindparam("uuid"))
        .with_for_update()
    )


@lru_cache(maxsize=64)
def _saving(names: tuple[str, ...]) -> Executable:
    table = spreadsheet_imports
    changes: dict[str, Any] = {name: bindparam(name) for name in names}
    return (
        update(table)
        .where(table.c.id == bindparam("own_id"))
        .values(revision=table.c.revision + 1, **{"updated_at": bindparam("updated_at"), **changes})
    )


@lru_cache
def _counting() -> Select[int, int]:
    values = spreadsheet_values
    return select(
        func.count().label("total"),
        func.count().filter(values.c.status == bindparam("open")).label("open"),
    ).where(values.c.import_id == bindparam("own_id"))
