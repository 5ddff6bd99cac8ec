"""Notifies a receiver that a job has ended: one attempt, logged."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from temporalio import activity

from activities.jobs.ports import WebhookDelivery, Webhooks
from activities.jobs.store import SqlJobStore
from activities.jobs.webhook_store import SqlWebhookLog, SqlWebhookSecrets
from activities.shared.failures import translate_failures
from adapters.ports.errors import Denied
from adapters.webhooks import WebhookAnswer, WebhookMessage
from workflows.jobs.records import DELIVER_WEBHOOK, WebhookAttempt, WebhookInput
from workflows.jobs.webhooks import body_of
from workflows.shared.webhook_addresses import InvalidReceiver, check_receiver, host_of

_GONE: Final = 410
_RECORD_SECONDS: Final = 5.0
"""Until the record of a job is looked for again."""
_WRITING_SECONDS: Final = 30.0
"""That an attempt takes at most beyond its timeout."""


@dataclass(frozen=True)
class ReceiverRules:
    """Which receivers are accepted."""

    hosts: tuple[str, ...] = ()
    """None: every public host."""
    local: bool = False
    """Loopback and plain HTTP are accepted, for development."""


@dataclass(frozen=True)
class WebhookPorts:
    """What deliveries need.

    Args:
        webhooks: Posts messages.
        secrets: That sign them.
        log: Of deliveries, with the state of each host.
        rules: Which receivers are accepted; they may have changed since the job was submitted.
    """

    webhooks: Webhooks
    secrets: SqlWebhookSecrets
    log: SqlWebhookLog
    rules: ReceiverRules


class JobWebhooks:
    """Delivers webhooks.

    Args:
        ports: What deliveries need.
        jobs: Records of jobs.
    """

    def __init__(self, ports: WebhookPorts, jobs: SqlJobStore) -> None:
        self._ports = ports
        self._jobs = jobs

    @activity.defn(name=DELIVER_WEBHOOK)
    @translate_failures
    async def deliver(self, order: WebhookInput) -> WebhookAttempt:
        """Make one attempt and log it; whatever the receiver does is part of the result."""
        began = datetime.now(UTC)
        attempt = await self._attempt(order, began)
        seconds = (datetime.now(UTC) - began).total_seconds()
        await self._ports.log.record(WebhookDelivery.of(order, began, seconds, attempt))
        return attempt

    async def _attempt(self, order: WebhookInput, now: datetime) -> WebhookAttempt:
        receiver = order.receiver
        try:
            check_receiver(receiver.url, self._ports.rules.hosts, local=self._ports.rules.local)
            secrets = await self._ports.secrets.secrets(receiver.secret) if receiver.secret else ()
        except InvalidReceiver as refusal:
            return WebhookAttempt(delivered=False, final=True, problem=f"the URL {refusal}")
        except Denied as refusal:
            return WebhookAttempt(delivered=False, final=True, problem=str(refusal))
        body = await self._body(order)
        if isinstance(body, WebhookAttempt):
            return body
        host = host_of(receiver.url)
        blocked = await self._ports.log.begin(
            host, now, receiver.timeout_seconds + _WRITING_SECONDS
        )
        if blocked is not None:
            return WebhookAttempt(
                delivered=False,
                counted=False,
                retry_after=blocked,
                problem=f"{host} has failed several times in a row and is left alone for a while",
            )
        answer = await self._ports.webhooks.post(
            WebhookMessage(
                url=receiver.url,
                id=order.message_id,
                body=body,
                timeout=receiver.timeout_seconds,
                secrets=secrets,
            )
        )
        if not answer.refused:
            await self._ports.log.end(host, datetime.now(UTC), healthy=_is_healthy(answer))
        return _result(answer)

    async def _body(self, order: WebhookInput) -> bytes | WebhookAttempt:
        """The message: the same at every attempt, also when the job has been run again since.

        Returns:
            The end of this attempt, where there is no message.
        """
        kept = await self._ports.log.message(order.message_id)
        if kept is not None:
            return kept
        record = await self._jobs.job(order.job_id)
        if record is not None and record.attempt > order.attempt:
            return WebhookAttempt(
                delivered=False,
                final=True,
                problem="the job was run again before this message was made",
            )
        if record is None or (record.attempt, record.status) != (order.attempt, order.status):
            return WebhookAttempt(
                delivered=False,
                retry_after=_RECORD_SECONDS,
                problem="the record of the job is not written yet",
            )
        return await self._ports.log.keep_message(
            order.message_id, order.job_id, body_of(order, record)
        )


def _is_healthy(answer: WebhookAnswer) -> bool:
    """Whether the host works; that it does not accept a message is no fault of the host."""
    return answer.status is not None and answer.status < 500


def _result(answer: WebhookAnswer) -> WebhookAttempt:
    return WebhookAttempt(
        delivered=answer.problem is None,
        final=answer.refused or answer.status == _GONE,
        retry_after=answer.retry_after,
        status_code=answer.status,
        problem=None if answer.problem is None else answer.problem[:1_500],
    )
