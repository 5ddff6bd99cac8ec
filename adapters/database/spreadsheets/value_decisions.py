"""What decisions make of values: what is written, and what stands in the trail."""

from typing import Any, Final

from adapters.database.codec import clean
from adapters.database.spreadsheets import audit_trail
from contracts.spreadsheets import (
    CellDecision,
    CellRule,
    DecideCells,
    DecisionRecord,
    MappingStatus,
)
from domain.spreadsheets.records import Entity
from domain.spreadsheets.value_rules import answered, described

MATCHED: Final = MappingStatus.MANUAL_MATCHED
SHOWN: Final = 200


def decided(decision: CellDecision, row: Any, target: Entity | None) -> dict[str, Any]:
    """Columns that a decision sets, beside the id that it is about."""
    change: dict[str, Any] = {"own_id": decision.id, "status": MATCHED.value}
    if decision.ignore:
        return change | IGNORED
    if decision.reset:
        return change | _as_found(row)
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


def _as_found(row: Any) -> dict[str, Any]:
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
        alternatives=audit_trail.load_alternatives(row.alternatives),
    )
