"""Jobs and deliveries as tests need them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from workflows.jobs.records import JobRecord, JobStatus, WebhookInput, WebhookReceiver

JOB: str = "ab" * 32
ENDED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_record(**changes: Any) -> JobRecord:
    """A job that has completed."""
    given: dict[str, Any] = {
        "job_id": JOB,
        "job_type": "hello_world",
        "status": JobStatus.COMPLETED,
        "stage": 1,
        "total_stages": 1,
        "parameters": {"n": 3},
        "stage_results": {"1": {"greeted": 3}},
        "result_data": {"greeted": 3},
        "created_at": ENDED,
        "updated_at": ENDED,
    }
    return JobRecord(**given | changes)


def an_order(url: str, secret: str | None = None, **changes: Any) -> WebhookInput:
    """The delivery of its end to one receiver."""
    given: dict[str, Any] = {
        "job_id": JOB,
        "attempt": 1,
        "status": JobStatus.COMPLETED,
        "ended_at": ENDED,
        "receiver": WebhookReceiver(url=url, secret=secret, timeout_seconds=60),
    }
    return WebhookInput(**given | changes)


@dataclass
class Records:
    """Records of jobs, where only one method is asked for."""

    found: JobRecord | None = field(default_factory=a_record)

    async def job(self, job_id: str) -> JobRecord | None:
        return self.found
