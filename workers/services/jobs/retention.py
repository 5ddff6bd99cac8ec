"""The removal of what is no longer kept of jobs, when a person asks for it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from contracts.jobs import (
    JOB_RETENTION,
    JOB_RETENTION_SCHEDULE,
    TASK_QUEUE,
    JobRetentionOrder,
    JobRetentionResult,
)
from workers.services.intake import START_TIMEOUT
from workers.services.runs import open_runs, temporal_errors


async def clean_jobs(environment: Mapping[str, str], *, dry_run: bool) -> JobRetentionResult:
    """Have a worker remove what is due, and wait for it.

    Args:
        environment: Settings.
        dry_run: Say what would be removed, and remove nothing.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    runs = await open_runs(environment)
    with temporal_errors():
        return await runs.client.execute_workflow(
            JOB_RETENTION,
            JobRetentionOrder(dry_run=dry_run),
            # Named as the schedule names its runs.
            id=f"schedule/{JOB_RETENTION_SCHEDULE}-{datetime.now(UTC).isoformat()}",
            task_queue=TASK_QUEUE,
            result_type=JobRetentionResult,
            rpc_timeout=START_TIMEOUT,
        )
