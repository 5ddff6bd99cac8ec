"""Distinct values of fields that refer to other tables, and what decisions make of them."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import import_rows, memory_store, people_store
from activities.spreadsheets.import_rows import LockedImport, counted_values, lock_known, save
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import spreadsheet_imports, spreadsheet_values
from adapters.database.records import clean
from workflows.spreadsheets.decisions import answered, described, rule_for_all
from workflows.spreadsheets.fields import Entity, FoundValue, search_key
from workflows.spreadsheets.mappings import (
    OPEN_VALUES,
    Alternative,
    CellDecision,
    CellMapping,
    CellRule,
    CellSummary,
    DecisionRecord,
    MappingStatus,
    OpenValue,
)
from workflows.spreadsheets.names import QUESTIONS
from workflows.spreadsheets.runs import DecideCells

MATCHED: Final = MappingStatus.MANUAL_MATCHED
SHOWN: Final = 200


def decided(decision: CellDecision, row: Any, target: Entity | None) -> dict[str, Any]:
    """Columns that a decision sets, beside the id that it is about."""
    change: dict[str, Any] = {"own_id": decision.id, "status": MATCHED.value}
    if decision.ignore:
        return change | IGNORED
    if decision.reset:
        return change | _decided_as_found(row)
    if decision.confirm and (row.create or row.target_id is not None):
        return change
    return change | {
        "target_id": None if target is None else target.id,
        "target_name": None if target is None else clean(target.name)[:SHOWN],
        "create": decision.create,
    }


IGNORED: Final[dict[str, Any]] = {
    "status": MappingStatus.IGNORED.value,
    "target_id": None,
    "target_name": None,
    "create": False,
}


def _decided_as_found(row: Any) -> dict[str, Any]:
    """A value as docflow had found it, before anything was decided about it."""
    matched = row.found_id is not None and row.question is None
    status = MappingStatus.AUTO_MATCHED if matched else MappingStatus.UNMATCHED
    return {
        "status": status.value,
        "target_id": row.found_id if matched else None,
        "target_name": row.found_name if matched else None,
        "create": False,
    }


def line_of_rule(
    order: DecideCells, rule: CellRule, count: int, target: Entity | None
) -> DecisionRecord:
    """The line of the trail for the values that one rule has answered."""
    return DecisionRecord(
        kind="value",
        subject=clean(described(rule, count))[:SHOWN],
        decision=clean(answered(rule, target))[:SHOWN],
        by=order.by,
        at=order.at,
    )


def line(
    order: DecideCells, decision: CellDecision, row: Any, target: Entity | None
) -> DecisionRecord:
    """The line of the trail for one decision."""
    if decision.ignore:
        shown = "ignored"
    elif decision.reset:
        shown = "taken back"
    elif decision.confirm:
        shown = "confirmed"
    elif target is None:
        shown = "created"
    else:
        shown = target.name
    return DecisionRecord(
        kind="value",
        subject=f"{row.field}: {row.value}"[:SHOWN],
        decision=clean(shown)[:SHOWN],
        by=order.by,
        at=order.at,
        confidence=row.confidence if row.target_id is not None else None,
        alternatives=import_rows.load_alternatives(row.alternatives),
    )


_TOGETHER: Final = 500
"""Values of one update."""


@dataclass(frozen=True, slots=True)
class ValueFilter:
    """Which of the values are meant; None: whatever it is."""

    field: str | None = None
    status: MappingStatus | None = None
    question: str | None = None
    text: str = ""
    """Part of the value; case, accents and punctuation do not count."""

    def conditions(self, import_id: int) -> Sequence[ColumnElement[bool]]:
        """What its rows have in common."""
        values = spreadsheet_values
        found: list[ColumnElement[bool]] = [values.c.import_id == import_id]
        if self.field is not None:
            found.append(values.c.field == self.field)
        if self.status is not None:
            found.append(values.c.status == self.status.value)
        if self.question is not None:
            found.append(values.c.question == self.question)
        if self.text.strip():
            found.append(values.c.search_key.contains(search_key(self.text), autoescape=True))
        return found


EVERY_VALUE: Final = ValueFilter()


async def counts(
    connection: AsyncConnection, import_id: int, wanted: ValueFilter
) -> Mapping[str, int]:
    """How many values match, by field, in the order in which they were found."""
    values = spreadsheet_values
    rows = await connection.execute(
        select(values.c.field, func.count().label("matching"))
        .where(*wanted.conditions(import_id))
        .group_by(values.c.field)
        .order_by(func.min(values.c.id))
    )
    return {row.field: row.matching for row in rows}


async def apply(
    connection: AsyncConnection, import_id: int, rule: CellRule, target: Entity | None
) -> int:
    """Give every value that matches the answer of a rule; how many were answered.

    Args:
        connection: In a transaction.
        import_id: The import.
        rule: A checked one.
        target: What its `target_id` names.
    """
    wanted = ValueFilter(rule.field, rule.status, rule.question, rule.text)
    conditions = list(wanted.conditions(import_id))
    if rule.field is None:
        conditions.append(spreadsheet_values.c.field.not_in(sorted(QUESTIONS)))
    if rule.confirm:
        return await _confirm(connection, conditions, rule.min_score)
    if rule.ignore:
        change: Mapping[str, Any] = IGNORED
    elif rule.reset:
        change = _AS_FOUND
    else:
        change = {
            "status": MATCHED.value,
            "target_id": None if target is None else target.id,
            "target_name": None if target is None else clean(target.name)[:SHOWN],
            "create": rule.create,
        }
    statement = update(spreadsheet_values).where(*conditions).values(**change)
    return (await connection.execute(statement)).rowcount


def _as_found() -> Mapping[str, Any]:
    """A value as docflow had found it, before anything was decided about it."""
    values = spreadsheet_values
    matched = and_(values.c.found_id.is_not(None), values.c.question.is_(None))
    return {
        "status": case(
            (matched, literal(MappingStatus.AUTO_MATCHED.value)),
            else_=literal(MappingStatus.UNMATCHED.value),
        ),
        "target_id": case((matched, values.c.found_id)),
        "target_name": case((matched, values.c.found_name)),
        "create": False,
    }


_AS_FOUND: Final = _as_found()


async def _confirm(
    connection: AsyncConnection, conditions: Sequence[ColumnElement[bool]], min_score: float
) -> int:
    """Take what docflow found, or suggests, wherever that is likely enough."""
    rows = await connection.execute(select(spreadsheet_values).where(*conditions))
    alike: defaultdict[tuple[int | None, str | None, bool], list[int]] = defaultdict(list)
    for row in rows:
        if (found := _found(row, min_score)) is not None:
            alike[found].append(row.id)
    for (id, name, create), ids in alike.items():
        change = {"target_id": id, "target_name": name, "create": create}
        for start in range(0, len(ids), _TOGETHER):
            await connection.execute(
                update(spreadsheet_values)
                .where(spreadsheet_values.c.id.in_(ids[start : start + _TOGETHER]))
                .values(status=MATCHED.value, **change)
            )
    return sum(map(len, alike.values()))


def _found(row: Any, min_score: float) -> tuple[int | None, str | None, bool] | None:
    """What a value means if its match or suggestion is right: id, name, whether it is created."""
    if row.create or row.target_id is not None:
        is_sure = row.confidence >= min_score or row.status == MATCHED.value
        return (row.target_id, row.target_name, row.create) if is_sure else None
    suggested = next(iter(import_rows.load_alternatives(row.alternatives)), None)
    if suggested is None or suggested.id is None or suggested.score < min_score:
        return None
    if row.status != MappingStatus.UNMATCHED.value:
        return None
    return suggested.id, suggested.name, False


PAGE: Final = 1_000
_ASKED: Final = 500
"""Parameters of one IN."""


async def add_values(
    connection: AsyncConnection,
    opened: LockedImport,
    found: Sequence[FoundValue],
    *,
    count: str,
) -> None:
    """Add distinct values to an import; those that are there keep what is decided about them.

    Args:
        connection: In a transaction.
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
    adding = insert(spreadsheet_values)
    rows = spreadsheet_values.c.rows
    keys = ["import_id", "field", "value"]
    if count == "keep":
        statement = adding.on_conflict_do_nothing(index_elements=keys)
    else:
        total = adding.excluded.rows if count == "set" else rows + adding.excluded.rows
        statement = adding.on_conflict_do_update(index_elements=keys, set_={"rows": total})
    await connection.execute(statement, list(merged.values()))


async def save_values(connection: AsyncConnection, uuid: str, found: Sequence[FoundValue]) -> None:
    """Add distinct values; one that is there keeps its decision and gets this count."""
    opened = await lock_known(connection, uuid)
    if opened.purged or not found:
        return
    await add_values(connection, opened, found, count="set")
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
            change = decided(decision, known[decision.id], targets.get(decision.id))
            alike.setdefault(tuple(change), []).append(change)
        for names, changes in alike.items():
            await connection.execute(_deciding(names), changes)
        lines = [
            line(order, decision, known[decision.id], targets.get(decision.id))
            for decision in order.decisions
        ]
        rules: list[tuple[CellRule, Entity | None]] = [
            (rule_for_all(decision, known[decision.id].field, known[decision.id].question), None)
            for decision in order.decisions
            if decision.for_all
        ]
        rules += zip(order.rules, rule_targets, strict=True)
        for rule, target in rules:
            count = await apply(connection, opened.id, rule, target)
            lines.append(line_of_rule(order, rule, count, target))
        if order.confirm:
            decision = "values"
            lines.append(
                DecisionRecord(kind="confirm", decision=decision, by=order.by, at=order.at)
            )
        await import_rows.add(connection, opened.row.workflow_id, lines)
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
        await memory_store.learn_values(connection, opened, order.at, order.by)
        await people_store.remember(connection, opened, order.at)
    return await summary(connection, opened.id)


async def some_mappings(
    connection: AsyncConnection, import_id: int | None, ids: Sequence[int]
) -> Sequence[CellMapping]:
    """Mappings of an import by id."""
    return [mapping_of(row, CellMapping) for row in await _rows(connection, import_id, ids)]


async def all_mappings(database: Database, uuid: str) -> AsyncIterator[Sequence[CellMapping]]:
    """Every mapping of an import by id, a page at a time, each read by itself."""
    after = 0
    while True:
        async with database.reading() as connection:
            parameters = {"uuid": uuid, "after": after}
            rows = (await connection.execute(_paging(), parameters)).all()
        if not rows:
            return
        yield [mapping_of(row, CellMapping) for row in rows]
        after = rows[-1].id


Mapped = TypeVar("Mapped", bound=CellMapping)


def mapping_of(row: Any, kind: type[Mapped]) -> Mapped:
    """A mapping from its row."""
    alternatives = import_rows.load_alternatives(row.alternatives)
    return kind.model_validate({**row._asdict(), "alternatives": alternatives})


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
        "alternatives": import_rows.dump_alternatives(alternatives),
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
