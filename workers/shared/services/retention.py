"""The removal of rows that are no longer kept, when a person asks for it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from workers import catalogue
from workers.shared.register import Pipeline
from workers.shared.services.intake import START_TIMEOUT
from workers.shared.services.runs import open_runs, temporal_errors
from workflows.shared.records import (
    ROW_RETENTION,
    RemovedRows,
    RowRetentionInput,
    RowRetentionResult,
)


def cleaned(environment: Mapping[str, str]) -> Sequence[Pipeline]:
    """Pipelines of this installation with rows that are kept for a time."""
    return [
        each
        for each in catalogue.PIPELINES
        if each.retention_id is not None and each.available(environment)
    ]


async def clean(
    environment: Mapping[str, str], pipeline: Pipeline, *, dry_run: bool
) -> Sequence[RemovedRows]:
    """Have a worker remove what is due of a pipeline, and wait for it.

    Args:
        environment: Settings.
        pipeline: One of `cleaned`.
        dry_run: Count what would be removed, and remove nothing.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    runs = await open_runs(environment)
    with temporal_errors():
        result = await runs.client.execute_workflow(
            ROW_RETENTION,
            RowRetentionInput(pipeline=pipeline.name, dry_run=dry_run),
            # Named as the schedule names its runs.
            id=f"schedule/{pipeline.retention_id}-{datetime.now(UTC).isoformat()}",
            task_queue=pipeline.task_queue,
            result_type=RowRetentionResult,
            rpc_timeout=START_TIMEOUT,
        )
    return result.kinds
