"""What was sent to the receivers of webhooks, and which hosts are left alone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.webhooks import (
    webhook_deliveries,
    webhook_hosts,
    webhook_messages,
)
from adapters.ports.webhooks import WebhookDelivery
from contracts.jobs import WebhookAttempt, WebhookOrder
from domain.jobs.circuits import Circuit


class SqlWebhookLog:
    """The log of deliveries; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def message(self, id: str) -> bytes | None:
        """The body of a message that was sent before; None: it was not."""
        query = select(webhook_messages.c.body).where(webhook_messages.c.id == id)
        async with self._database.reading() as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    async def keep_message(self, id: str, job_id: str, body: bytes) -> bytes:
        """Keep the body of a message, so that every attempt sends the same; what is kept."""
        row = {"id": id, "job_id": job_id, "body": body, "created_at": datetime.now(UTC)}
        async with self._database.transaction() as connection:
            await connection.execute(
                self._insert(webhook_messages).values(row).on_conflict_do_nothing()
            )
            query = select(webhook_messages.c.body).where(webhook_messages.c.id == id)
            return (await connection.execute(query)).scalar_one()

    async def begin(self, host: str, now: datetime, lease: float) -> float | None:
        """Ask for an attempt; None: go ahead, else the seconds until the host may be tried."""
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
            self._insert(webhook_hosts)
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
            "result": clean(delivery.attempt.model_dump_json()),
            "seconds": delivery.seconds,
            "sent_at": delivery.sent_at,
        }
        async with self._database.transaction() as connection:
            await connection.execute(
                self._insert(webhook_deliveries)
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
    return WebhookDelivery(
        order=WebhookOrder.model_validate_json(row.ordered),
        sent_at=row.sent_at,
        seconds=row.seconds,
        attempt=WebhookAttempt.model_validate_json(row.result),
    )
