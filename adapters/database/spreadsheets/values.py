"""Distinct values of the fields whose cells refer to other tables, and what they mean."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import BigInteger, Executable, Select, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    spreadsheet_imports,
    spreadsheet_values,
)
from adapters.database.spreadsheets import (
    audit_trail,
    memory,
    people,
    value_decisions,
    value_rules,
)
from adapters.database.spreadsheets.locked_import import (
    LockedImport,
    counted_values,
    lock_known,
    save,
)
from adapters.database.spreadsheets.value_decisions import SHOWN
from contracts.spreadsheets import (
    OPEN_VALUES,
    Alternative,
    CellMapping,
    CellRule,
    CellSummary,
    DecideCells,
    DecisionRecord,
    MappingStatus,
    OpenValue,
)
from domain.spreadsheets.match_keys import search_key
from domain.spreadsheets.records import Entity, FoundValue
from domain.spreadsheets.value_rules import rule_for_all

PAGE: Final = 1_000
_ASKED: Final = 500
"""Parameters of one IN; SQLite bounds their number."""


async def add_values(
    connection: AsyncConnection,
    bulk: BulkEngine,
    opened: LockedImport,
    found: Sequence[FoundValue],
    *,
    count: str,
) -> None:
    """Add distinct values to an import; those that are there keep what is decided about them.

    Args:
        connection: In a transaction.
        bulk: Of this database.
        opened: The import.
        found: The values.
        count: What happens to the rows counted for a value that is there: `set`, `add`, `keep`.
    """
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for value in found:
        row = _row(opened.id, value)
        known = merged.setdefault((row["field"], row["value"]), row)
        if known is not row:
            known["rows"] += row["rows"]
    if not merged:
        return
    insert = bulk.insert_statement(spreadsheet_values)
    rows = spreadsheet_values.c.rows
    keys = ["import_id", "field", "value"]
    if count == "keep":
        statement = insert.on_conflict_do_nothing(index_elements=keys)
    else:
        total = insert.excluded.rows if count == "set" else rows + insert.excluded.rows
        statement = insert.on_conflict_do_update(index_elements=keys, set_={"rows": total})
    await connection.execute(statement, list(merged.values()))


async def save_values(
    connection: AsyncConnection, bulk: BulkEngine, uuid: str, found: Sequence[FoundValue]
) -> None:
    """Add distinct values; one that is there keeps its decision and gets this count."""
    opened = await lock_known(connection, uuid)
    if opened.purged or not found:
        return
    await add_values(connection, bulk, opened, found, count="set")
    await save(connection, opened, await counted_values(connection, opened))


async def summary(connection: AsyncConnection, import_id: int | None) -> CellSummary:
    """Figures and the first open values; zeros for an import that is not there."""
    values = spreadsheet_values
    mine = values.c.import_id == import_id
    is_open = values.c.status == MappingStatus.UNMATCHED.value
    total, open_ = (
        await connection.execute(select(func.count(), func.count().filter(is_open)).where(mine))
    ).one()
    if not open_:
        return CellSummary(total=total)
    first = await connection.execute(
        select(values.c.id, values.c.field, values.c.value, values.c.rows)
        .where(mine, is_open)
        .order_by(values.c.id)
        .limit(OPEN_VALUES)
    )
    return CellSummary(
        total=total,
        open=open_,
        first_open=tuple(
            OpenValue(id=row.id, field=row.field, value=row.value, rows=row.rows) for row in first
        ),
    )


async def decide(
    connection: AsyncConnection,
    bulk: BulkEngine,
    order: DecideCells,
    targets: Mapping[int, Entity],
    rule_targets: Sequence[Entity | None],
) -> CellSummary:
    """Take checked decisions with their trail, all or none.

    Decisions of a version that was written before are not taken again; remembering what is
    decided is the same however often it happens.

    Raises:
        LookupError: A decision names a value that is not of this import.
    """
    opened = await lock_known(connection, order.order.uuid)
    if opened.purged:
        return await summary(connection, opened.id)
    if order.version > opened.row.values_version:
        ids = [decision.id for decision in order.decisions]
        known = {row.id: row for row in await _rows(connection, opened.id, ids)}
        if lost := [id for id in ids if id not in known]:
            raise LookupError(f"there is no value {lost[0]} in this import")
        alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for decision in order.decisions:
            change = value_decisions.decided(decision, known[decision.id], targets.get(decision.id))
            alike.setdefault(tuple(change), []).append(change)
        for names, changes in alike.items():
            await connection.execute(_deciding(names), changes)
        lines = [
            value_decisions.line(order, decision, known[decision.id], targets.get(decision.id))
            for decision in order.decisions
        ]
        rules: list[tuple[CellRule, Entity | None]] = [
            (rule_for_all(decision, known[decision.id].field, known[decision.id].question), None)
            for decision in order.decisions
            if decision.for_all
        ]
        rules += zip(order.rules, rule_targets, strict=True)
        for rule, target in rules:
            count = await value_rules.apply(connection, opened.id, rule, target)
            lines.append(value_decisions.line_of_rule(order, rule, count, target))
        if order.confirm:
            decision = "values"
            lines.append(
                DecisionRecord(kind="confirm", decision=decision, by=order.by, at=order.at)
            )
        await audit_trail.add(connection, bulk, opened.row.workflow_id, lines)
        await save(
            connection,
            opened,
            {
                "values_version": order.version,
                "version": max(opened.row.version, order.version),
                "decided_at": order.at,
                **await counted_values(connection, opened),
            },
        )
    if order.confirm:
        await memory.learn_values(connection, bulk, opened, order.at, order.by)
        await people.remember(connection, bulk, opened, order.at)
    return await summary(connection, opened.id)


async def some_mappings(
    connection: AsyncConnection, import_id: int | None, ids: Sequence[int]
) -> Sequence[CellMapping]:
    """Mappings of an import by id."""
    return [mapping_of(row) for row in await _rows(connection, import_id, ids)]


async def all_mappings(database: Database, uuid: str) -> AsyncIterator[Sequence[CellMapping]]:
    """Every mapping of an import by id, a page at a time, each read by itself."""
    after = 0
    while True:
        async with database.reading() as connection:
            parameters = {"uuid": uuid, "after": after}
            rows = (await connection.execute(_paging(), parameters)).all()
        if not rows:
            return
        yield [mapping_of(row) for row in rows]
        after = rows[-1].id


def mapping_of(row: Any) -> CellMapping:
    """A mapping from its row."""
    return CellMapping(
        id=row.id,
        field=row.field,
        value=row.value,
        status=MappingStatus(row.status),
        target_id=row.target_id,
        target_name=row.target_name,
        create=row.create,
        confidence=row.confidence,
        alternatives=audit_trail.load_alternatives(row.alternatives),
        rows=row.rows,
        question=row.question,
        reason=row.reason,
    )


def _row(import_id: int, value: FoundValue) -> dict[str, Any]:
    known = value.target_id is not None or value.create
    status = MappingStatus.AUTO_MATCHED if known else MappingStatus.UNMATCHED
    if value.ignored:
        status = MappingStatus.IGNORED
    alternatives = [
        Alternative(name=clean(name)[:SHOWN], score=score, id=id)
        for id, name, score in value.alternatives[:3]
    ]
    found = alternatives[0] if value.question and alternatives else None
    if value.target_id is not None:
        name = clean(value.target_name or "")[:SHOWN]
        found = Alternative(name=name, score=value.confidence, id=value.target_id)
    return {
        "import_id": import_id,
        "field": value.field,
        "value": clean(value.value),
        "search_key": clean(search_key(value.value)),
        "status": status.value,
        "target_id": value.target_id,
        "target_name": None if value.target_name is None else clean(value.target_name)[:SHOWN],
        "create": value.create,
        "confidence": value.confidence,
        "alternatives": audit_trail.dump_alternatives(alternatives),
        "rows": value.rows,
        "question": value.question,
        "reason": value.reason,
        "found_id": found.id if found else None,
        "found_name": found.name if found else None,
    }


async def _rows(
    connection: AsyncConnection, import_id: int | None, ids: Sequence[int]
) -> Sequence[Any]:
    values = spreadsheet_values
    found: list[Any] = []
    for start in range(0, len(ids), _ASKED):
        query = select(values).where(
            values.c.import_id == import_id, values.c.id.in_(ids[start : start + _ASKED])
        )
        found.extend(await connection.execute(query.order_by(values.c.id)))
    return found


@lru_cache(maxsize=8)
def _deciding(names: tuple[str, ...]) -> Executable:
    return (
        update(spreadsheet_values)
        .where(spreadsheet_values.c.id == bindparam("own_id"))
        .values({name: bindparam(name) for name in names if name != "own_id"})
    )


@lru_cache
def _paging() -> Select[Any]:
    imports, values = spreadsheet_imports, spreadsheet_values
    import_id = select(imports.c.id).where(imports.c.uuid == bindparam("uuid")).scalar_subquery()
    return (
        select(values)
        .where(
            values.c.import_id == import_id,
            values.c.id > bindparam("after", type_=BigInteger),
        )
        .order_by(values.c.id)
        .limit(PAGE)
    )
