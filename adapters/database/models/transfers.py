"""Transfers: their states, turns, routes, partners, and what watches saw."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    Index,
    Integer,
    Table,
    Text,
    case,
    cast,
    func,
    literal,
)
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import UtcDateTime, metadata
from adapters.database.models.runs import follow, linked, state_of
from workflows.shared.runs import RunState
from workflows.transfers.events import TransferStatus

PARKED: Final = "parked: "
"""Begins the reason of a transfer whose run is parked."""

transfers = Table(
    "transfers",
    metadata,
    Column("transfer_id", Text, primary_key=True),
    Column("digest", Text),
    Column("run", Text),
    Column("status", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("source", Text, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("account_id", Text),
    Column("organisation_id", BigInteger),
    Column("type", Text),
    Column("subject", Text),
    Column("queue", Text),
    Column("job", Text),
    Column("file", Text),
    Column("reason", Text),
    Column("by", Text),
    Column("receipt", Text),
    Column("kept", Text),
    Column("size", BigInteger),
    Index(None, "at"),
    Index(None, "status", "at"),
    Index(None, "queue", "at"),
    Index(None, "account_id", "at"),
    Index(None, "organisation_id", "at"),
    Index(None, "run"),
)
"""The state of each transfer now; `size` is that of what it has read, in bytes."""

jobstatus = Table(
    "jobstatus",
    metadata,
    Column("transfer_id", Text, primary_key=True),
    Column("at", UtcDateTime, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("queue", Text),
    Column("job", Text),
    Column("file", Text),
    Column("reason", Text),
    Column("by", Text),
    Index(None, "queue", "at"),
)
"""Every state that a transfer was in."""

transfer_turns = Table(
    "transfer_turns",
    metadata,
    Column("key", Text, primary_key=True),
    Column("run", Text, primary_key=True),
    Column("arrived", UtcDateTime, nullable=False),
    Column("begun", Boolean, nullable=False),
    Index(None, "run"),
)

jobconfig = Table(
    "jobconfig",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("record", Text, nullable=False),
)
"""Routing rules."""

jobconfig_changes = Table(
    "jobconfig_changes",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("change", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

partners = Table(
    "partners",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("record", Text, nullable=False),
)

partner_sessions = Table(
    "partner_sessions",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("until", UtcDateTime, nullable=False),
)


watched_files = Table(
    "watched_files",
    metadata,
    Column("watch", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("changed", UtcDateTime),
    Column("tag", Text),
    Column("since", UtcDateTime, nullable=False),
    Column("event", Text),
    Column("problem", Text),
    Column("vanished", UtcDateTime),
    Index(None, "watch", "vanished"),
)
"""Each file as a watch saw it last."""

watch_states = Table(
    "watch_states",
    metadata,
    Column("watch", Text, primary_key=True),
    Column("record", Text, nullable=False),
)
"""What the last look of each watch came to."""

expected_days = Table(
    "expected_days",
    metadata,
    Column("name", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("state", Text, nullable=False),
    Column("record", Text, nullable=False),
)
"""What came for each day of an expectation."""


def _as_run(own: Any) -> dict[str, ColumnElement[Any]]:
    parked = case(
        (func.left(own.reason, len(PARKED)) == PARKED, str(RunState.NEEDS_ATTENTION)),
        else_=str(RunState.RUNNING),
    )
    states = {
        TransferStatus.READ_MESSAGE: parked,
        TransferStatus.ASSIGNED: RunState.RUNNING,
        TransferStatus.NO_ASSIGNED: RunState.NEEDS_ATTENTION,
        TransferStatus.SUCCEEDED: RunState.COMPLETED,
        TransferStatus.FAILED: RunState.FAILED,
        TransferStatus.INVALID: RunState.FAILED,
        TransferStatus.GARBAGE: RunState.FAILED,
    }
    of_event = [TransferStatus.INVALID, TransferStatus.GARBAGE, TransferStatus.NO_ASSIGNED]
    is_open = own.status.in_(
        [TransferStatus.READ_MESSAGE, TransferStatus.ASSIGNED, TransferStatus.NO_ASSIGNED]
    )
    id = literal("transfer/") + own.transfer_id
    by_default = case((own.status.in_(of_event), id), else_=id + literal("/job"))
    return {
        "id": id,
        "pipeline": literal("transfers"),
        "kind": func.coalesce(own.queue, "event"),
        "key": own.transfer_id,
        "short": own.transfer_id,
        "title": func.coalesce(own.file, own.subject),
        "state": state_of(own.status, states),
        "own_state": own.status,
        "reason": func.regexp_replace(own.reason, f"^{PARKED}", ""),
        "project": own.account_id,
        "organisation_id": own.organisation_id,
        "size": own.size,
        "links": linked(receipt=cast(own.receipt, JSONB)["name"].astext),
        "answers_at": func.coalesce(own.run, by_default),
        "created_at": own.at,
        "changed_at": own.at,
        "ended_at": case((~is_open, own.at)),
    }


follow(transfers, _as_run)
