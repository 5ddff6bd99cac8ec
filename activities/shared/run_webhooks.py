"""Tells receivers what has become of runs of every pipeline."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from temporalio import activity

from activities.shared.failures import Heartbeater, all_of, translate_failures
from adapters.database.run_webhooks import SqlRunWebhooks
from adapters.database.runs import SqlRuns
from adapters.ports.errors import Denied
from adapters.ports.webhooks import Attempted, Due, RunWebhook
from adapters.webhooks import HttpWebhooks, SecretKeys, WebhookAnswer, WebhookMessage
from workflows.shared.run_webhooks import (
    RunMessage,
    RunsTold,
    RunWebhooksInput,
    messages_about,
    next_attempt,
)
from workflows.shared.runs import RunFilter, Visible
from workflows.shared.webhook_addresses import InvalidReceiver, check_receiver

_AT_ONCE: Final = 32
"""Receivers; each is sent one message after the other."""
_PAGE: Final = 50
_TIMEOUT_SECONDS: Final = 10.0
"""Of an attempt."""


class RunWebhooks:
    """Looks what has changed, and tells those who want to know.

    Args:
        runs: The table of runs.
        store: Receivers and messages.
        webhooks: Posts messages.
        keys: Their secrets are kept under these.
        hosts: Receivers that are allowed; none: all.
        local: Receivers may be on this machine, for development.
        rejected: Names of the counts of rejected rows, by pipeline.
    """

    def __init__(
        self,
        runs: SqlRuns,
        store: SqlRunWebhooks,
        webhooks: HttpWebhooks,
        keys: SecretKeys,
        *,
        hosts: Sequence[str] = (),
        local: bool = False,
        rejected: Mapping[str, Sequence[str]],
    ) -> None:
        self._runs = runs
        self._store = store
        self._webhooks = webhooks
        self._keys = keys
        self._hosts = hosts
        self._local = local
        self._rejected = rejected

    @activity.defn(name="runs.tell")
    @translate_failures
    async def tell(self, order: RunWebhooksInput) -> RunsTold:
        """Make messages about what has changed, then send those that are due.

        A message is kept in one transaction with the mark up to which changes were read, and sent
        until an answer is noted: a second run sends again what the first one could not note, under
        the same id.
        """
        async with Heartbeater():
            queued = 0
            for webhook, after in await self._store.listening():
                queued += await self._queue(webhook, after, order.changes)
            ends = datetime.now(UTC) + timedelta(seconds=order.seconds)
            places = asyncio.Semaphore(_AT_ONCE)
            receivers = await self._store.waiting(datetime.now(UTC))
            sending = [self._send(each, places, ends) for each in receivers]
            told = await all_of(sending)
        return RunsTold(
            queued=queued,
            delivered=sum(delivered for delivered, _ in told),
            failed=sum(failed for _, failed in told),
        )

    async def _queue(self, webhook: RunWebhook, after: int, limit: int) -> int:
        own = webhook.organisation_id
        wanted = RunFilter(
            limit,
            visible=None if own is None else Visible([own], others=False),
            pipelines=webhook.pipelines or None,
        )
        made = 0
        while True:
            # Everything up to here can be read below.
            reached = await self._runs.revision()
            changes = await self._runs.changes(wanted, after)
            if len(changes) >= limit:
                reached = changes[-1].revision
            elif changes:
                reached = max(reached, changes[-1].revision)
            if reached <= after:
                return made
            messages: list[RunMessage] = []
            for change in changes:
                counts = self._rejected.get(change.run.pipeline, ())
                messages += messages_about(change.run, webhook.events, counts, webhook.id)
            calm = [each.run.id for each in changes if not each.run.needs_attention]
            now = datetime.now(UTC)
            new = await self._store.keep(webhook.id, after, reached, messages, calm, now)
            if new is None:
                return made
            made, after = made + new, reached
            if len(changes) < limit:
                return made

    async def _send(
        self, receiver: int, places: asyncio.Semaphore, ends: datetime
    ) -> tuple[int, int]:
        """Send a receiver what is due, until it does not work.

        Returns:
            How many messages were accepted, and how many were not.
        """
        delivered = failed = 0
        async with places:
            while due := await self._store.due(receiver, datetime.now(UTC), _PAGE):
                for each in due:
                    if datetime.now(UTC) >= ends:
                        return delivered, failed
                    answer = await self._answer(each)
                    now = datetime.now(UTC)
                    await self._store.note(each, _judged(each, answer, now), now)
                    if answer.problem is None:
                        delivered += 1
                        continue
                    failed += 1
                    if not _works(answer):
                        return delivered, failed
        return delivered, failed

    async def _answer(self, due: Due) -> WebhookAnswer:
        try:
            check_receiver(due.url, self._hosts, local=self._local)
            secrets = [self._keys.decrypt(each) for each in due.secrets]
        except InvalidReceiver as refusal:
            return WebhookAnswer(problem=f"the address {refusal}", refused=True)
        except Denied as refusal:
            return WebhookAnswer(problem=str(refusal), refused=True)
        return await self._webhooks.post(
            WebhookMessage(due.url, due.message_id, due.body, _TIMEOUT_SECONDS, secrets)
        )


def _works(answer: WebhookAnswer) -> bool:
    """Whether other messages have a chance now; that one is not accepted says nothing of them."""
    status = answer.status
    asks_for_less = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.GONE)
    return (
        status is not None
        and status < HTTPStatus.INTERNAL_SERVER_ERROR
        and (status not in asks_for_less)
    )


def _judged(due: Due, answer: WebhookAnswer, now: datetime) -> Attempted:
    if answer.problem is None:
        return Attempted(status=answer.status)
    if answer.status == HTTPStatus.GONE:
        gone = "the receiver answered 410: it wants nothing more"
        return Attempted(status=answer.status, problem=answer.problem, disables=gone)
    rest = answer.retry_after
    return Attempted(
        status=answer.status,
        problem=answer.problem,
        due_at=next_attempt(due.attempts + 1, now, rest),
        rests_until=None if rest is None else now + timedelta(seconds=rest),
    )
