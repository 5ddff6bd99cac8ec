"""Runs of jobs in Temporal: start, restart, cancel."""

from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from contracts.answers import Answer
from contracts.jobs import TASK_QUEUE, JobOrder, JobView, job_workflow_id
from workers.services.errors import WrongState
from workers.services.intake import START_TIMEOUT
from workers.services.jobs.submission import StartedJob
from workers.services.runs import TemporalRuns, temporal_errors
from workflows import attributes
from workflows.jobs.job import Job


class JobRuns:
    """Runs of jobs in one namespace; every refusal is a `ServiceError`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def start(self, order: JobOrder, *, rerun: bool = False) -> StartedJob:
        """Start a job, unless it was started before."""
        project = order.project or order.definition.job_type
        with temporal_errors():
            try:
                await self._client.start_workflow(
                    Job.run,
                    order,
                    id=job_workflow_id(order.job_id),
                    task_queue=TASK_QUEUE,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    search_attributes=attributes.at_start(
                        "jobs", order.definition.job_type, project
                    ),
                    priority=Priority(fairness_key=project[:64]),
                    rpc_timeout=START_TIMEOUT,
                )
            except WorkflowAlreadyStartedError:
                return StartedJob(order.job_id, order.attempt, created=False)
        return StartedJob(order.job_id, order.attempt, created=True)

    async def restart(self, job_id: str, from_stage: int | None = None) -> StartedJob:
        """Begin another attempt at the failed stage, or at an earlier one."""
        raise WrongState("this job cannot be restarted")

    async def cancel(self, job_id: str, reason: str | None = None) -> None:
        """Begin no more tasks and end; running tasks clean up."""
        runs = TemporalRuns(self._client, {})
        answer = Answer(reason=reason)
        await runs.update(job_workflow_id(job_id), "cancel", answer, JobView, "jobs")
