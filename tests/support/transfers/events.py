"""Events and jobs of transfers, as most tests need them."""

import json
from datetime import UTC, datetime
from typing import Any

from activities.transfers.cloud_events import head_of, read_event
from activities.transfers.records import Transfer
from workflows.transfers.events import TransferStatus
from workflows.transfers.receipts import Receipt, ReceiptStep, assemble_receipt, seal_step
from workflows.transfers.runs import FileEventInput, FileJobInput
from workflows.transfers.settings import SettingsJob

ARRIVED = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def an_event(**fields: Any) -> dict[str, Any]:
    """An event that lacks nothing; fields of `data` are given as a mapping."""
    data = {"accountId": "TMS001", "fileName": "orders.csv", **fields.pop("data", {})}
    return {
        "specversion": "1.0",
        "id": "e-1",
        "source": "TMS.Route",
        "type": "Succeeded",
        "subject": "File Upload",
        "time": "2026-03-01T10:00:00Z",
        "data": data,
        **fields,
    }


def a_transfer(transfer_id: str, status: TransferStatus, **fields: Any) -> Transfer:
    """The row of a transfer."""
    known = {"at": datetime.now(UTC), "source": "s", "event_id": "1", **fields}
    return Transfer(transfer_id=transfer_id, status=status, **known)


def an_event_order(event: dict[str, Any] | str | None = None, **fields: Any) -> FileEventInput:
    """Input of the run of an event."""
    body = event if isinstance(event, str) else json.dumps(an_event() if event is None else event)
    head = head_of(body)
    known = {"transfer_id": head.transfer_id, "digest": head.digest, "arrived": ARRIVED}
    return FileEventInput(body=body, way_in="submit", **{**known, **fields})


def a_job_order(event: dict[str, Any] | None = None, **fields: Any) -> FileJobInput:
    """Input of the run of a job, on the queue `jobs`."""
    order = an_event_order(event)
    return FileJobInput(
        **{
            "transfer_id": order.transfer_id,
            "queue": "jobs",
            "event": read_event(order.body, order.arrived),
            "digest": order.digest,
            "arrived": order.arrived,
            "way_in": order.way_in,
            **fields,
        }
    )


READ = {"Action": "ReadFile", "Partner": "acme", "Path": "in/{data.fileName}"}
SCAN = {"Action": "Scan"}
WRITE = {"Action": "WriteFile", "Partner": "store", "Path": "{time:%Y}/{name}"}
FIRE = {"Action": "FireEvent", "Source": "docflow", "Subject": "{subject}"}


def a_job(*actions: dict[str, Any], retries: dict[str, Any] | None = None, **fields: Any) -> Any:
    """A job of the queue `jobs`: read, scan, write; failures are not retried."""
    once = {"RetryFailureSource": 0, "RetryFailureDestination": 0}
    return SettingsJob.model_validate(
        {
            "Job": "orders",
            "Queue": "jobs",
            "Actions": {**once, **(retries or {}), "List": [*actions] or [READ, SCAN, WRITE]},
            **fields,
        }
    )


def a_message(**fields: Any) -> tuple[bytes, str]:
    """The body of an event, and the id of its transfer."""
    body = json.dumps(an_event(**fields))
    return body.encode(), head_of(body).transfer_id


def a_receipt(id: str, *actions: tuple[str, str | None]) -> Receipt:
    """Of a transfer whose actions went so."""
    steps: list[ReceiptStep] = []
    for index, (action, outcome) in enumerate(actions):
        step = ReceiptStep(
            transfer_id=id,
            index=index,
            action=action,
            at=an_event_order().arrived,
            outcome=outcome,
            previous=steps[-1].sha256 if steps else "e" * 64,
            sha256="",
        )
        steps.append(seal_step(step))
    return assemble_receipt(id, "e" * 64, steps)
