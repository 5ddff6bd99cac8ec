"""Events that a job sends on, and chains of them."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from workflows.shared.errors import RuleViolation
from workflows.transfers.events import (
    ACCOUNT,
    CHAIN,
    DEPTH,
    EVENT_BYTES,
    ORGANISATION,
    VISITED,
    visit_of,
)
from workflows.transfers.runs import ActionInput, FileJobInput

_DATA: Final = "data."
_ID_DIGITS: Final = 16


def fired_body(order: ActionInput, names: Mapping[str, str]) -> str:
    """An event as JSON in structured mode; the same for the same order, so that it is sent once.

    Its id is made of the transfer, the action and its content: an action with corrected settings
    sends another event, one that is tried again the same. Its time is that of the event that led
    to it, by which names with dates are resolved.

    Args:
        order: The action.
        names: Its templates, with the name of the file.

    Raises:
        RuleViolation: It would be one too many in its chain, or is too long.
    """
    parent = order.job.event
    if parent.depth >= CHAIN:
        raise RuleViolation(f"{parent.depth} events led to this one, and {CHAIN} are the most")
    visit = visit_of(order.job.queue, order.settings_job or "", parent.subject)
    data = {key.removeprefix(_DATA): text for key, text in names.items() if key.startswith(_DATA)}
    event: dict[str, Any] = {
        "specversion": "1.0",
        "source": names["source"],
        "type": names["type"],
        "subject": names["subject"],
        "time": parent.time.isoformat(),
        "datacontenttype": "application/json",
        DEPTH: parent.depth + 1,
        VISITED: " ".join([*parent.visited, visit][-CHAIN:]),
        "data": {**data, ACCOUNT: names["account_id"]},
    }
    if parent.organisation_id is not None:
        event[ORGANISATION] = parent.organisation_id
    content = json.dumps(event, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()[:_ID_DIGITS]
    event["id"] = f"{order.job.transfer_id}-{order.index}-{digest}"
    body = json.dumps(event, sort_keys=True, ensure_ascii=False)
    if (size := len(body.encode())) > EVENT_BYTES:
        raise RuleViolation(f"the event has {size:,} bytes, and {EVENT_BYTES:,} are the most")
    return body


def loop_of(order: FileJobInput, job: str) -> str | None:
    """Why an event must not be carried out; None: it may.

    Args:
        order: The event, with the queues and jobs that led to it.
        job: The job that it gets.
    """
    event = order.event
    if event.depth >= CHAIN:
        return f"a loop: {event.depth} events led to this one, and {CHAIN} are the most"
    if visit_of(order.queue, job, event.subject) in event.visited:
        return (
            f"a loop: job {job} of queue {order.queue} has been here before in this chain of "
            f"{event.depth} events, with the same subject {event.subject[:100]!r}"
        )
    return None
