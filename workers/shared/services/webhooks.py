"""Webhooks about runs, for the admins of those whose runs they are."""

import base64
import logging
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from temporalio.client import Client
from temporalio.service import RPCError

from adapters.database.run_webhooks import SqlRunWebhooks
from adapters.http import is_local, is_public, literal
from adapters.ports.errors import Denied
from adapters.ports.webhooks import RunWebhook, SentMessage
from adapters.webhooks import SecretKeys
from workers import catalogue
from workers.shared.schedules import trigger
from workers.shared.services.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    Refused,
    WrongState,
)
from workers.shared.services.identity import ADMIN, Identity, require_role
from workers.shared.settings.webhooks import ReceiverSettings
from workflows.shared.run_webhooks import SCHEDULE, RunEvent, test_message
from workflows.shared.webhook_addresses import InvalidReceiver, check_receiver

logger = logging.getLogger(__name__)

MOST: Final = 100
"""Webhooks of an organisation, and of the installation."""
ROTATION: Final = timedelta(days=1)
"""The former secret signs as well for so long."""
_SECRET_BYTES: Final = 32


class WebhookService:
    """Operations on webhooks; a refusal is a `ServiceError`.

    Args:
        store: Where they are.
        settings: Which receivers are accepted, and what their secrets are kept under.
        client: Of Temporal, to send at once what a person asks for.
    """

    def __init__(self, store: SqlRunWebhooks, settings: ReceiverSettings, client: Client) -> None:
        self._store, self._settings, self._client = store, settings, client
        self._keys = SecretKeys(settings.secret_keys)

    async def list(self, who: Identity) -> Sequence[RunWebhook]:
        """Return the webhooks that an admin may see, the newest first.

        Raises:
            Forbidden: They are an admin nowhere.
        """
        if not who.may_anywhere(ADMIN):
            raise Forbidden("webhooks are for admins: your token lacks the role admin")
        return await self._store.list(who.where(ADMIN), who.may(ADMIN))

    async def get(self, who: Identity, id: int) -> RunWebhook:
        """Return one webhook.

        Raises:
            NotFound: There is none of this number that they may see.
        """
        found = await self._store.get(id)
        if found is None or not who.may(ADMIN, found.organisation_id):
            raise _none(id)
        return found

    async def add(
        self,
        who: Identity,
        organisation: int | None,
        url: str,
        events: Sequence[RunEvent],
        pipelines: Sequence[str],
    ) -> tuple[RunWebhook, str]:
        """Add a receiver; it is told of what changes from now on.

        Args:
            who: An admin.
            organisation: Whose runs; None: all runs of the installation.
            url: Where messages go.
            events: What it is told.
            pipelines: Of which pipelines; none: of all.

        Returns:
            The webhook, and its secret, which cannot be read again.

        Raises:
            Forbidden: They are no admin there.
            Refused: The address or a pipeline cannot be used, there is no key, or there are too
                many.
        """
        require_role(who, ADMIN, organisation)
        self._check(url)
        _check_pipelines(pipelines)
        secret, encrypted = self._new_secret()
        now = datetime.now(UTC)
        made = await self._store.add(
            organisation, url, events, pipelines, encrypted, who.subject, now, MOST
        )
        if made is None:
            raise Refused(f"there are {MOST} webhooks already: remove one")
        return made, secret

    async def change(
        self,
        who: Identity,
        id: int,
        url: str | None,
        events: Sequence[RunEvent] | None,
        pipelines: Sequence[str] | None,
        enabled: bool | None,
    ) -> RunWebhook:
        """Change what is given; what is None stays.

        Raises:
            NotFound: There is none of this number that they may see.
            Refused: The address or a pipeline cannot be used.
        """
        before = await self.get(who, id)
        changes: dict[str, Any] = {}
        if url is not None:
            self._check(url)
            changes["url"] = url
        if events is not None:
            changes["events"] = list(events)
        if pipelines is not None:
            _check_pipelines(pipelines)
            changes["pipelines"] = list(pipelines)
        if enabled is not None:
            changes |= {"enabled": enabled, "problem": None}
        if not changes:
            return before
        return _there(id, await self._store.change(id, changes))

    async def rotate(self, who: Identity, id: int) -> tuple[RunWebhook, str]:
        """Give a webhook another secret; the former one signs as well for a day.

        Raises:
            NotFound: There is none of this number that they may see.
            Refused: There is no key.
        """
        await self.get(who, id)
        secret, encrypted = self._new_secret()
        until = datetime.now(UTC) + ROTATION
        return _there(id, await self._store.rotate(id, encrypted, until)), secret

    async def remove(self, who: Identity, id: int) -> RunWebhook:
        """Remove a webhook with its messages; return it as it was.

        Raises:
            NotFound: There is none of this number that they may see.
        """
        found = await self.get(who, id)
        await self._store.remove(id)
        return found

    async def test(self, who: Identity, id: int) -> SentMessage:
        """Send a message that is about no run.

        Raises:
            NotFound: There is none of this number that they may see.
            WrongState: The webhook is disabled.
        """
        await self._enabled(who, id)
        now = datetime.now(UTC)
        made = await self._store.queue(id, test_message(id, now), now)
        await self._send_soon()
        return made

    async def messages(
        self, who: Identity, id: int, before: int | None, limit: int
    ) -> Sequence[SentMessage]:
        """Return messages to a receiver, the newest first.

        Raises:
            NotFound: There is no webhook of this number that they may see.
        """
        await self.get(who, id)
        return await self._store.messages(id, before, limit)

    async def message(self, who: Identity, id: int, number: int) -> SentMessage:
        """Return one message to a receiver.

        Raises:
            NotFound: There is none of this number that they may see.
        """
        await self.get(who, id)
        return _sent(number, await self._store.message(id, number))

    async def resend(self, who: Identity, id: int, number: int) -> SentMessage:
        """Send a message again, under its id.

        Raises:
            NotFound: There is none of this number that they may see.
            WrongState: The webhook is disabled.
        """
        await self._enabled(who, id)
        again = _sent(number, await self._store.send_again(id, number, datetime.now(UTC)))
        await self._send_soon()
        return again

    async def _enabled(self, who: Identity, id: int) -> None:
        if not (await self.get(who, id)).enabled:
            raise WrongState(f"webhook {id} is disabled: enable it first")

    async def _send_soon(self) -> None:
        """Let the schedule look now; if it cannot, it does so within a minute."""
        try:
            await trigger(self._client, SCHEDULE)
        except RPCError as error:
            logger.info("messages of webhooks wait for the next look: %s", error)

    def _check(self, url: str) -> None:
        settings = self._settings
        try:
            check_receiver(url, settings.hosts, local=settings.local)
        except InvalidReceiver as refusal:
            raise InvalidRequest(f"url {refusal}") from refusal
        # A name is looked up at each attempt: what it stands for may change.
        address = literal((urlsplit(url).hostname or "").rstrip("."))
        if address is None or is_public(address) or (settings.local and is_local(address)):
            return
        raise InvalidRequest("url names an address that is not of the public internet")

    def _new_secret(self) -> tuple[str, bytes]:
        secret = secrets.token_bytes(_SECRET_BYTES)
        try:
            encrypted = self._keys.encrypt(secret)
        except Denied as refusal:
            raise Refused(str(refusal)) from refusal
        return f"whsec_{base64.b64encode(secret).decode()}", encrypted


def _check_pipelines(names: Sequence[str]) -> None:
    known = [each.name for each in catalogue.PIPELINES if each.has_rows]
    for name in names:
        if name not in known:
            raise InvalidRequest(f"there is no pipeline {name}; there are {', '.join(known)}")


def _none(id: int) -> NotFound:
    return NotFound(f"there is no webhook {id}")


def _there(id: int, found: RunWebhook | None) -> RunWebhook:
    if found is None:
        raise _none(id)
    return found


def _sent(number: int, found: SentMessage | None) -> SentMessage:
    if found is None:
        raise NotFound(f"there is no message {number} of this webhook")
    return found
