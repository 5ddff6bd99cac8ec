"""Who decided what: kept once, however often it is recorded."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.models.spreadsheets import decisions
from contracts.spreadsheets import Alternative, DecisionRecord
from domain.spreadsheets.bibs import QUESTIONS

PIPELINE: Final = "spreadsheets"
_PSEUDONYM: Final = re.compile(r"person [0-9]+")
_ALTERNATIVES: Final = TypeAdapter(tuple[Alternative, ...])


async def add(
    connection: AsyncConnection,
    bulk: BulkEngine,
    run: str,
    lines: Iterable[DecisionRecord],
    version: int | None = None,
) -> None:
    """Add lines to the trail of a run; those that are there stay as they are.

    Args:
        connection: In a transaction.
        bulk: Of this database.
        run: Id of the workflow.
        lines: What was decided.
        version: Of the mappings that the lines become. A worker that dies before it can report that
            it took an answer takes it again, later: the version is the same, the moment is not.
    """
    rows = [_row(run, line, version) for line in lines]
    if rows:
        insert = bulk.insert_statement(decisions).on_conflict_do_nothing(
            index_elements=["workflow_id", "digest"]
        )
        await connection.execute(insert, rows)


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
