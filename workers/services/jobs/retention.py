"""The removal of what is no longer kept of jobs, when a person asks for it."""

import uuid
from collections.abc import Mapping

from contracts.jobs import (
    CLEAN_PREFIX,
    JOB_RETENTION,
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
            id=f"{CLEAN_PREFIX}/{uuid.uuid4()}",
            task_queue=TASK_QUEUE,
            result_type=JobRetentionResult,
            rpc_timeout=START_TIMEOUT,
        )
