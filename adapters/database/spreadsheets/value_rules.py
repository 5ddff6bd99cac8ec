"""Values that match: found for a page, and given one answer together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, case, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.spreadsheets import spreadsheet_values
from adapters.database.spreadsheets import audit_trail
from adapters.database.spreadsheets.value_decisions import IGNORED, MATCHED, SHOWN
from contracts.spreadsheets import CellRule, MappingStatus
from domain.spreadsheets.bibs import QUESTIONS
from domain.spreadsheets.match_keys import search_key
from domain.spreadsheets.records import Entity

_TOGETHER: Final = 500
"""Values of one update; SQLite bounds the parameters of a statement."""


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
    suggested = next(iter(audit_trail.load_alternatives(row.alternatives)), None)
    if suggested is None or suggested.id is None or suggested.score < min_score:
        return None
    if row.status != MappingStatus.UNMATCHED.value:
        return None
    return suggested.id, suggested.name, False
