"""Who decided what: kept once, however often it is told."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.spreadsheets import decisions
from adapters.database.spreadsheets.opened import Tools
from contracts.spreadsheets import Alternative, DecisionRecord

PIPELINE: Final = "spreadsheets"
_ALTERNATIVES: Final = TypeAdapter(tuple[Alternative, ...])


async def add(
    connection: AsyncConnection, tools: Tools, run: str, lines: Iterable[DecisionRecord]
) -> None:
    """Add lines to the trail of a run; those that are there stay as they are."""
    rows = [_row(run, line) for line in lines]
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


def _row(run: str, line: DecisionRecord) -> dict[str, Any]:
    told = {
        "kind": line.kind,
        "subject": clean(line.subject),
        "decision": clean(line.decision),
        "by": clean(line.by),
    }
    digest = hashlib.sha256(json.dumps([*told.values(), line.at.isoformat()]).encode())
    return {
        "pipeline": PIPELINE,
        "workflow_id": run,
        **told,
        "at": line.at,
        "confidence": line.confidence,
        "alternatives": dump_alternatives(line.alternatives),
        "digest": digest.digest(),
    }
