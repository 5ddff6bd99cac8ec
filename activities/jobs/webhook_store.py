"""Webhooks of jobs: their secrets, and the log of deliveries."""

import hmac
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.jobs.ports import WebhookDelivery
from adapters.database.engine import Database
from adapters.database.models.jobs import (
    webhook_deliveries,
    webhook_hosts,
    webhook_messages,
    webhook_secrets,
)
from adapters.database.records import clean
from adapters.http import secret_bytes
from adapters.ports.errors import Denied
from adapters.webhooks import SecretKeys
from workflows.jobs.records import WebhookAttempt, WebhookInput
from workflows.jobs.webhooks import Circuit

NAMED: Final = "named:"
"""What the reference of a secret in the settings begins with."""
KEPT: Final = "kept:"
"""What the reference of a secret in the table begins with."""


class SqlWebhookSecrets:
    """Secrets, kept under a reference that says nothing about them.

    Args:
        database: With the encrypted ones.
        keys: Fernet keys: the first encrypts, all decrypt. None: requests bring no secret.
        named: Name to the secrets that are valid under it, the newest first.
    """

    def __init__(
        self,
        database: Database,
        keys: Sequence[bytes] = (),
        named: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        self._database = database
        self._keys = SecretKeys(keys)
        self._named = named or {}

    async def keep(self, job_id: str, secret: str) -> str:
        """Keep a secret that came with a request; its reference.

        Raises:
            Denied: There is no key to keep it under; the message says what to set.
            Unavailable: The database is not available.
        """
        if not self._keys.is_set:
            raise Denied(
                "webhook_secret cannot be kept: DOCFLOW_WEBHOOK_KEY is not set; set it, or "
                "name a secret of DOCFLOW_JOBS_WEBHOOK_SECRETS as webhook_secret_name"
            )
        reference = f"{KEPT}{uuid.uuid4().hex}"
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(webhook_secrets).values(
                    reference=reference,
                    job_id=job_id,
                    encrypted=self._keys.encrypt(secret_bytes(secret)),
                    created_at=datetime.now(UTC),
                )
            )
        return reference

    async def forget(self, reference: str) -> None:
        """Remove a secret that came with a request; one of the settings stays.

        Raises:
            Unavailable: The database is not available.
        """
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(webhook_secrets).where(webhook_secrets.c.reference == reference)
            )

    async def is_other(self, job_id: str, secret: str) -> bool:
        """Whether a secret differs from those that requests for a job brought.

        False as well where none of them is kept (any more), or can be read.

        Raises:
            Unavailable: The database is not available.
        """
        query = select(webhook_secrets.c.encrypted).where(webhook_secrets.c.job_id == job_id)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).scalars().all()
        known: list[bytes] = []
        for encrypted in rows:
            with suppress(Denied):
                known.append(self._keys.decrypt(encrypted))
        given = secret_bytes(secret)
        return bool(known) and not any(hmac.compare_digest(given, each) for each in known)

    def reference_of(self, name: str) -> str:
        """The reference of a secret in the settings.

        Raises:
            Denied: There is none of that name.
        """
        if name not in self._named:
            raise Denied(f"webhook_secret_name: DOCFLOW_JOBS_WEBHOOK_SECRETS has no {name!r}")
        return f"{NAMED}{name}"

    async def secrets(self, reference: str) -> Sequence[bytes]:
        """Every secret that is valid under a reference, the newest first.

        Raises:
            Denied: There is none, or it cannot be read with the keys that are set.
            Unavailable: The database is not available.
        """
        if reference.startswith(NAMED):
            self.reference_of(reference.removeprefix(NAMED))
            return self._named[reference.removeprefix(NAMED)]
        query = select(webhook_secrets.c.encrypted).where(webhook_secrets.c.reference == reference)
        async with self._database.reading() as connection:
            encrypted = (await connection.execute(query)).scalar_one_or_none()
        if encrypted is None:
            raise Denied("the secret of the webhook is not kept any more")
        return [self._keys.decrypt(encrypted)]


class SqlWebhookLog:
    """What was sent to whom, and which hosts are left alone.

    Every method raises `Unavailable` when the database is not available.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def message(self, id: str) -> bytes | None:
        """The body of a message that was sent before; None: it was not."""
        query = select(webhook_messages.c.body).where(webhook_messages.c.id == id)
        async with self._database.reading() as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    async def keep_message(self, id: str, job_id: str, body: bytes) -> bytes:
        """Keep the body of a message, so that every attempt sends the same; what is kept."""
        row = {"id": id, "job_id": job_id, "body": body, "created_at": datetime.now(UTC)}
        async with self._database.transaction() as connection:
            await connection.execute(insert(webhook_messages).values(row).on_conflict_do_nothing())
            query = select(webhook_messages.c.body).where(webhook_messages.c.id == id)
            return (await connection.execute(query)).scalar_one()

    async def begin(self, host: str, now: datetime, lease: float) -> float | None:
        """Ask for an attempt; None: go ahead, else the seconds until the host may be tried.

        When the pause of a host is over, one attempt is let through; others wait for it.

        Args:
            host: Of the receiver.
            now: The moment.
            lease: Seconds after which that attempt is taken for lost.
        """
        async with self._database.transaction() as connection:
            circuit = await _circuit(connection, host)
            blocked = circuit.blocked(now)
            if blocked is None and circuit.open_until is not None:
                await self._save(connection, host, circuit.probing(now, lease), now)
        return blocked

    async def end(self, host: str, now: datetime, *, healthy: bool) -> Circuit:
        """Note whether a host answered as a server that works does."""
        async with self._database.transaction() as connection:
            before = await _circuit(connection, host)
            after = before.after(now, healthy=healthy)
            if after != before:
                await self._save(connection, host, after, now)
        return after

    async def _save(
        self, connection: AsyncConnection, host: str, circuit: Circuit, now: datetime
    ) -> None:
        values = {
            "failures": circuit.failures,
            "open_until": circuit.open_until,
            "updated_at": now,
        }
        await connection.execute(
            insert(webhook_hosts)
            .values(host=host, **values)
            .on_conflict_do_update(index_elements=["host"], set_=values)
        )

    async def record(self, delivery: WebhookDelivery) -> None:
        """Write an entry; the same attempt is written once."""
        order = delivery.order
        key = {
            "job_id": order.job_id,
            "attempt": order.attempt,
            "number": order.number,
            "redelivery": order.redelivery,
            "delivery_attempt": order.delivery_attempt,
        }
        values = {
            "ordered": clean(order.model_dump_json()),
            "result": clean(delivery.result.model_dump_json()),
            "seconds": delivery.seconds,
            "sent_at": delivery.sent_at,
        }
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(webhook_deliveries)
                .values(**key, **values)
                .on_conflict_do_update(index_elements=list(key), set_=values)
            )

    async def deliveries(self, job_id: str, limit: int = 200) -> Sequence[WebhookDelivery]:
        """The log of a job, the newest first."""
        log = webhook_deliveries.c
        query = (
            select(webhook_deliveries)
            .where(log.job_id == job_id)
            .order_by(log.sent_at.desc(), log.number, log.delivery_attempt.desc())
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return [_delivery(row) for row in await connection.execute(query)]


async def _circuit(connection: AsyncConnection, host: str) -> Circuit:
    # Locked: of two attempts that begin at the same moment, one is let through.
    query = select(webhook_hosts).where(webhook_hosts.c.host == host).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    return Circuit() if row is None else Circuit(row.failures, row.open_until)


def _delivery(row: Any) -> WebhookDelivery:
    order = WebhookInput.model_validate_json(row.ordered)
    result = WebhookAttempt.model_validate_json(row.result)
    return WebhookDelivery.of(order, row.sent_at, row.seconds, result)
