"""Sends a webhook again when a person asks for it."""

from collections.abc import Sequence

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from adapters.ports.webhooks import WebhookDelivery
from contracts.jobs import TASK_QUEUE, WEBHOOK_DELIVERY, webhook_delivery_id
from workers.services.errors import NotFound, WrongState
from workers.services.intake import START_TIMEOUT
from workers.services.runs import temporal_errors
from workflows import attributes


class Redelivery:
    """Starts deliveries by hand.

    Args:
        client: Of Temporal.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def send(
        self, log: Sequence[WebhookDelivery], number: int, attempt: int | None = None
    ) -> WebhookDelivery:
        """Deliver once more what was delivered, or was not; with the same id and content.

        Args:
            log: Of the job, the newest first.
            number: Place of the receiver, from 0.
            attempt: Of the job; None: the newest of the log.

        Raises:
            NotFound: Nothing was ever sent to this receiver.
            WrongState: It is being sent again already.
            TemporalUnavailable: Temporal does not answer.
        """
        same = [
            each
            for each in log
            if each.order.number == number and attempt in (None, each.order.attempt)
        ]
        if not same:
            raise NotFound("nothing was sent to this receiver so far")
        newest = max(same, key=lambda each: (each.order.attempt, each.order.redelivery))
        order = newest.order.model_copy(
            update={"redelivery": newest.order.redelivery + 1, "delivery_attempt": 1}
        )
        with temporal_errors():
            try:
                await self._client.start_workflow(
                    WEBHOOK_DELIVERY,
                    order,
                    id=webhook_delivery_id(order),
                    task_queue=TASK_QUEUE,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    search_attributes=attributes.at_start("jobs", "webhook", "webhooks"),
                    static_summary=f"Webhook {number + 1} of job {order.job_id[:8]}, sent again",
                    rpc_timeout=START_TIMEOUT,
                )
            except WorkflowAlreadyStartedError as error:
                raise WrongState("this webhook is being sent again already") from error
        return newest
