"""Webhooks: what receivers are sent, and when the host of one is left alone."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from workflows.jobs.records import JobRecord, JobStatus, WebhookInput

BODY_BYTES: Final = 1_000_000
"""A longer message is sent without results, and says so."""


def body_of(order: WebhookInput, record: JobRecord) -> bytes:
    """The message about the end of a job: the seed's payload, as JSON.

    It holds no `signature`: a signature cannot cover the body that holds it, so it is sent in the
    header `webhook-signature`.
    """
    content: dict[str, Any] = {
        "job_id": order.job_id,
        "job_type": record.job_type,
        "status": _status(order.status),
        "stage_results": record.stage_results,
        "final_results": record.result_data,
        "timestamp": order.ended_at.isoformat().replace("+00:00", "Z"),
        "attempt": order.attempt,
        "error_details": record.error_details,
        "failed_count": record.failed_count,
    }
    body = _dumped(content)
    if len(body) <= BODY_BYTES:
        return body
    results = ("stage_results", "final_results")
    return _dumped({**content, **{name: {} for name in results}, "omitted": results})


def _status(status: JobStatus) -> str:
    return status.lower()


def _dumped(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


FAILURES: Final = 5
"""In a row; then the circuit opens."""
FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is known of a host."""

    failures: int = 0
    """In a row."""
    open_until: datetime | None = None
    """Nothing is sent before; None: the circuit is closed."""

    def blocked(self, now: datetime) -> float | None:
        """Seconds until an attempt may be made; None: now."""
        if self.open_until is None or self.open_until <= now:
            return None
        return (self.open_until - now).total_seconds()

    def probing(self, now: datetime, lease: float) -> "Circuit":
        """While one attempt finds out whether the host works again."""
        if self.open_until is None:
            return self
        return Circuit(self.failures, now + timedelta(seconds=lease))

    def after(self, now: datetime, *, healthy: bool) -> "Circuit":
        """After an attempt; the pause doubles with every one that fails."""
        if healthy:
            return Circuit()
        failures = self.failures + 1
        if failures < FAILURES:
            return Circuit(failures)
        doublings = min(failures - FAILURES, 16)
        return Circuit(failures, now + min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE))
