"""What follows a job: its webhooks, and the removal of what is no longer kept."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.workflow import ParentClosePolicy

from workflows.jobs.records import (
    DELIVER_WEBHOOK,
    WEBHOOK_DELIVERY,
    JobStatus,
    WebhookAttempt,
    WebhookEnd,
    WebhookInput,
    webhook_delivery_id,
)
from workflows.jobs.runs import JOB_RETENTION, JobInput, JobRetentionInput, JobRetentionResult
from workflows.jobs.steps import JobRetentionSteps
from workflows.shared import attributes, policies
from workflows.shared.waiting import Waiting

FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 3_600.0
"""Seconds between two attempts; they double from the first on."""
GIVEN_UP_AFTER: Final = timedelta(days=3)
"""However often nothing could be sent at all."""


@workflow.defn(name=WEBHOOK_DELIVERY)
class WebhookDelivery:
    """Delivers the end of a job to one receiver; outlives the job."""

    @workflow.run
    async def run(self, order: WebhookInput) -> WebhookEnd:
        """Deliver; a receiver that never takes it is a result, and no failure."""
        waiting = Waiting()
        attempts = pauses = 0
        while True:
            tried = order.model_copy(update={"delivery_attempt": attempts + 1})
            attempt = await waiting.done(lambda tried=tried: _attempted(tried))
            attempts += attempt.counted
            too_late = workflow.now() - workflow.info().start_time > GIVEN_UP_AFTER
            is_last = attempt.final or too_late or attempts > order.receiver.retry_count
            if attempt.delivered or is_last:
                return WebhookEnd(
                    delivered=attempt.delivered, attempts=attempts, problem=attempt.problem
                )
            pause = attempt.retry_after
            if pause is None:
                pause = min(FIRST_PAUSE * 2.0**pauses, LONGEST_PAUSE)
                pauses += 1
            pause = min(max(pause, 1.0), LONGEST_PAUSE)
            _show(order, attempts, attempt.problem, pause)
            await workflow.sleep(pause, summary=(attempt.problem or "try again")[:100])


def _show(order: WebhookInput, attempts: int, problem: str | None, pause: float) -> None:
    """Show how many attempts were made, why the last one failed, and when the next one is made."""
    most = order.receiver.retry_count + 1
    again = workflow.now() + timedelta(seconds=pause)
    workflow.set_current_details(
        f"{attempts} of {most} attempts were made: {problem or 'not delivered'}\n\n"
        f"the next one is made at {again:%Y-%m-%d %H:%M:%S} UTC"
    )


async def _attempted(order: WebhookInput) -> WebhookAttempt:
    timeout = timedelta(seconds=order.receiver.timeout_seconds + 30)
    return await workflow.execute_activity(
        DELIVER_WEBHOOK,
        order,
        result_type=WebhookAttempt,
        start_to_close_timeout=timeout,
        retry_policy=policies.BACKOFF,
        summary=f"attempt {order.delivery_attempt}",
    )


async def start_deliveries(job: JobInput, status: JobStatus) -> None:
    """Notify every receiver of a job of its end, from the job's own run.

    Args:
        job: What was asked for, with its receivers.
        status: How it has ended.
    """
    for number, receiver in enumerate(job.webhooks):
        order = WebhookInput(
            job_id=job.job_id,
            attempt=job.attempt,
            status=status,
            ended_at=workflow.now(),
            receiver=receiver,
            number=number,
        )
        await workflow.start_child_workflow(
            WebhookDelivery.run,
            order,
            id=webhook_delivery_id(order),
            search_attributes=attributes.of_part(job.organisation_id),
            parent_close_policy=ParentClosePolicy.ABANDON,
            static_summary=f"Webhook {number + 1} of job {job.job_id[:8]}",
        )


@workflow.defn(name=JOB_RETENTION)
class JobRetention:
    """Superseded files, then jobs, the oldest first; what one run does not reach is left."""

    @workflow.run
    async def run(self, order: JobRetentionInput) -> JobRetentionResult:
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
