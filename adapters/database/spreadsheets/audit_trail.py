"""Who decided what: kept once, however often it is recorded."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.spreadsheets import decisions
from adapters.database.spreadsheets.locked_import import Tools
from contracts.spreadsheets import Alternative, DecisionRecord

PIPELINE: Final = "spreadsheets"
_ALTERNATIVES: Final = TypeAdapter(tuple[Alternative, ...])


async def add(
    connection: AsyncConnection,
    tools: Tools,
    run: str,
    lines: Iterable[DecisionRecord],
    version: int | None = None,
) -> None:
    """Add lines to the trail of a run; those that are there stay as they are.

    Args:
        connection: In a transaction.
        tools: Of this database.
        run: Id of the workflow.
        lines: What was decided.
        version: Of the mappings that the lines become. A worker that dies before it can report that
            it took an answer takes it again, later: the version is the same, the moment is not.
    """
    rows = [_row(run, line, version) for line in lines]
    if rows:
        insert = tools.writer.insert(decisions).on_conflict_do_nothing(
            index_elements=["workflow_id", "digest"]
        )
        await connection.execute(insert, rows)


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
