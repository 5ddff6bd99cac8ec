"""Removes what is no longer kept of jobs: superseded files, old tasks, plans, results, webhooks."""

from temporalio import workflow

from activities.jobs.retention import JobRetentionSteps
from contracts.jobs import JOB_RETENTION, JobRetentionOrder, JobRetentionResult
from workflows import policies
from workflows.waiting import Waiting


@workflow.defn(name=JOB_RETENTION)
class JobRetention:
    """Superseded files, then jobs, the oldest first; what one run does not reach is left."""

    @workflow.run
    async def run(self, order: JobRetentionOrder) -> JobRetentionResult:
        """Remove what is due; safe to run twice and at any time."""
        waiting = Waiting()
        files = await waiting.done(
            lambda: workflow.execute_activity_method(
                JobRetentionSteps.remove_superseded,
                order,
                summary="superseded files",
                **policies.LONG,
            )
        )
        jobs = await waiting.done(
            lambda: workflow.execute_activity_method(
                JobRetentionSteps.remove_expired, order, summary="old jobs", **policies.LONG
            )
        )
        return files.plus(jobs)
