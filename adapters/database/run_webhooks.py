"""Receivers of messages about runs, and what they are sent."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import RowMapping, and_, delete, func, literal, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.runs import COMPLETE
from adapters.database.models.webhooks import run_messages, run_webhooks
from adapters.database.records import SqlOldRows, clean
from adapters.ports.webhooks import Attempted, Due, RunWebhook, SentMessage
from workflows.shared.run_webhooks import RunEvent, RunMessage
from workflows.shared.webhook_addresses import shown

_MOST: Final = 1_000
_PROBLEM: Final = 500
"""Characters of a problem."""
_hooks, _sent = run_webhooks, run_messages
_SHOWN: Final = [_hooks.c[name] for name in RunWebhook.model_fields]
_MESSAGE: Final = [_sent.c[name] for name in SentMessage.model_fields]


class SqlRunWebhooks:
    """Every method raises `Unavailable` when the database is unavailable.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        organisation_id: int | None,
        url: str,
        events: Sequence[RunEvent],
        pipelines: Sequence[str],
        secret: bytes,
        made_by: str,
        now: datetime,
        most: int,
    ) -> RunWebhook | None:
        """Keep a receiver; it is told of changes from now on.

        Args:
            organisation_id: Whose runs; None: those of the whole installation.
            url: Where messages go.
            events: What it is told.
            pipelines: Of which pipelines; none: of all.
            secret: Encrypted.
            made_by: Who made it.
            now: The time.
            most: An organisation has at most so many, and the installation too.

        Returns:
            None when there are so many.
        """
        row = {
            "organisation_id": organisation_id,
            "url": url,
            "events": list(events),
            "pipelines": list(pipelines),
            "secret": secret,
            "made_by": clean(made_by),
            "made_at": now,
            "enabled": True,
            "revision": select(COMPLETE - 1).scalar_subquery(),
        }
        same = _hooks.c.organisation_id.is_not_distinct_from(organisation_id)
        async with self._database.transaction() as connection:
            there = await connection.execute(select(func.count()).select_from(_hooks).where(same))
            if there.scalar_one() >= most:
                return None
            made = await connection.execute(insert(_hooks).values(row).returning(*_SHOWN))
            return _webhook(made.mappings().one())

    async def list(self, organisations: Collection[int], others: bool) -> Sequence[RunWebhook]:
        """The receivers of some organisations, the newest first; at most 1,000.

        Args:
            organisations: Whose.
            others: Those of the installation as well.
        """
        own = _hooks.c.organisation_id.in_(sorted(organisations))
        mine = or_(own, _hooks.c.organisation_id.is_(None)) if others else own
        query = select(*_SHOWN).where(mine).order_by(_hooks.c.id.desc()).limit(_MOST)
        async with self._database.reading() as connection:
            return [_webhook(row) for row in (await connection.execute(query)).mappings()]

    async def get(self, id: int) -> RunWebhook | None:
        """A receiver; None: there is none of this number."""
        async with self._database.reading() as connection:
            found = await connection.execute(select(*_SHOWN).where(_hooks.c.id == id))
            row = found.mappings().one_or_none()
        return None if row is None else _webhook(row)

    async def change(self, id: int, values: Mapping[str, Any]) -> RunWebhook | None:
        """Change columns of a receiver; None: there is none of this number."""
        change = update(_hooks).where(_hooks.c.id == id).values(values).returning(*_SHOWN)
        async with self._database.transaction() as connection:
            row = (await connection.execute(change)).mappings().one_or_none()
        return None if row is None else _webhook(row)

    async def rotate(self, id: int, secret: bytes, until: datetime) -> RunWebhook | None:
        """Give a receiver another secret; None: there is none of this number.

        Args:
            id: The receiver.
            secret: Encrypted.
            until: The former secret signs as well until then.
        """
        former = {"former_secret": _hooks.c.secret, "former_until": until}
        return await self.change(id, {**former, "secret": secret})

    async def remove(self, id: int) -> None:
        """Remove a receiver with its messages."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(_hooks).where(_hooks.c.id == id))

    async def messages(self, id: int, before: int | None, limit: int) -> Sequence[SentMessage]:
        """Messages to a receiver, the newest first.

        Args:
            id: The receiver.
            before: Number that comes behind the page before; None: the first page.
            limit: At most so many.
        """
        behind = true() if before is None else _sent.c.id < before
        query = select(*_MESSAGE).where(_sent.c.webhook_id == id, behind)
        async with self._database.reading() as connection:
            rows = await connection.execute(query.order_by(_sent.c.id.desc()).limit(limit))
            return [_message(row) for row in rows.mappings()]

    async def message(self, id: int, number: int) -> SentMessage | None:
        """A message to a receiver; None: there is none of this number."""
        own = and_(_sent.c.webhook_id == id, _sent.c.id == number)
        async with self._database.reading() as connection:
            row = (await connection.execute(select(*_MESSAGE).where(own))).mappings().one_or_none()
        return None if row is None else _message(row)

    async def send_again(self, id: int, number: int, now: datetime) -> SentMessage | None:
        """Make another attempt due; None: there is no such message."""
        own = and_(_sent.c.webhook_id == id, _sent.c.id == number)
        again = update(_sent).where(own).values(due_at=now).returning(*_MESSAGE)
        async with self._database.transaction() as connection:
            row = (await connection.execute(again)).mappings().one_or_none()
        return None if row is None else _message(row)

    async def queue(self, id: int, message: RunMessage, now: datetime) -> SentMessage:
        """Keep one message, and make it due."""
        row = _row(id, message, now)
        async with self._database.transaction() as connection:
            made = await connection.execute(insert(_sent).values(row).returning(*_MESSAGE))
            return _message(made.mappings().one())

    async def listening(self) -> Sequence[tuple[RunWebhook, int]]:
        """Receivers that are enabled, and the revision up to which changes were read for them.

        Revisions begin anew when a database is restored on another server. What lies ahead of them
        then would hide every change: it is put back.
        """
        ahead = update(_hooks).where(_hooks.c.revision >= COMPLETE).values(revision=0)
        columns = (*_SHOWN, _hooks.c.revision)
        query = select(*columns).where(_hooks.c.enabled).order_by(_hooks.c.id)
        async with self._database.transaction() as connection:
            await connection.execute(ahead)
            rows = (await connection.execute(query)).mappings().all()
        return [(_webhook(row), row["revision"]) for row in rows]

    async def keep(
        self,
        id: int,
        after: int,
        revision: int,
        messages: Sequence[RunMessage],
        calm: Collection[str],
        now: datetime,
    ) -> int | None:
        """Keep the messages about some changes together with the mark that these were read.

        Args:
            id: The receiver.
            after: The mark before; if there is another one by now, another worker has kept them.
            revision: The new mark.
            messages: About the changes; one that says what still holds was sent before.
            calm: Runs that need nobody's attention now.
            now: The time.

        Returns:
            How many messages were new; None: another worker has kept them.
        """
        attention = _sent.c.event == RunEvent.NEEDS_ATTENTION.value
        own = and_(_sent.c.webhook_id == id, attention, _sent.c.is_over.is_(False))
        mine = and_(_hooks.c.id == id, _hooks.c.revision == after)
        asked = [each.run for each in messages if each.event is RunEvent.NEEDS_ATTENTION]
        async with self._database.transaction() as connection:
            moved = await connection.execute(
                update(_hooks).where(mine).values(revision=revision).returning(literal(1))
            )
            if moved.first() is None:
                return None
            if calm:
                over = and_(own, _sent.c.run_id.in_(sorted(calm)))
                await connection.execute(update(_sent).where(over).values(is_over=True))
            said: set[str] = set()
            if asked:
                still = select(_sent.c.run_id).where(own, _sent.c.run_id.in_(asked))
                said.update((await connection.execute(still)).scalars())
            rows = [
                _row(id, each, now)
                for each in messages
                if each.event is not RunEvent.NEEDS_ATTENTION or each.run not in said
            ]
            made = 0
            for some in (rows[n : n + _MOST] for n in range(0, len(rows), _MOST)):
                adding = insert(_sent).values(some).on_conflict_do_nothing().returning(_sent.c.id)
                made += len((await connection.execute(adding)).all())
            return made

    async def waiting(self, now: datetime) -> Sequence[int]:
        """Numbers of the enabled receivers with messages that are due."""
        is_due = and_(_sent.c.webhook_id == _hooks.c.id, _sent.c.due_at <= now)
        query = select(_hooks.c.id).where(
            _hooks.c.enabled, select(_sent.c.id).where(is_due).exists()
        )
        async with self._database.reading() as connection:
            return (await connection.execute(query.order_by(_hooks.c.id))).scalars().all()

    async def due(self, id: int, now: datetime, limit: int) -> Sequence[Due]:
        """Messages to a receiver that are due, the oldest first; none while it is disabled."""
        query = (
            select(_sent, _hooks.c.url, _hooks.c.secret, _hooks.c.former_secret)
            .add_columns((_hooks.c.former_until > now).label("is_former_valid"))
            .join_from(_sent, _hooks, _sent.c.webhook_id == _hooks.c.id)
            .where(_hooks.c.id == id, _hooks.c.enabled, _sent.c.due_at <= now)
            .order_by(_sent.c.due_at, _sent.c.id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [
            Due(
                id=row["id"],
                webhook_id=id,
                url=row["url"],
                secrets=(
                    row["secret"],
                    *((row["former_secret"],) if row["is_former_valid"] else ()),
                ),
                message_id=row["message_id"],
                body=row["body"].encode(),
                attempts=row["attempts"],
            )
            for row in rows
        ]

    async def note(self, due: Due, attempted: Attempted, now: datetime) -> None:
        """Note what became of an attempt."""
        values: dict[str, Any] = {
            "attempts": due.attempts + 1,
            "due_at": attempted.due_at,
            "status_code": attempted.status,
            "problem": attempted.problem and clean(attempted.problem)[:_PROBLEM],
        }
        if attempted.problem is None:
            values["delivered_at"] = now
        async with self._database.transaction() as connection:
            await connection.execute(update(_sent).where(_sent.c.id == due.id).values(values))
            if attempted.rests_until is not None:
                until = attempted.rests_until
                others = and_(_sent.c.webhook_id == due.webhook_id, _sent.c.due_at < until)
                await connection.execute(update(_sent).where(others).values(due_at=until))
            if attempted.disables is not None:
                disabled = {"enabled": False, "problem": attempted.disables}
                own = _hooks.c.id == due.webhook_id
                await connection.execute(update(_hooks).where(own).values(disabled))


def _row(id: int, message: RunMessage, now: datetime) -> Mapping[str, Any]:
    return {
        "webhook_id": id,
        "message_id": message.id,
        "event": message.event.value,
        "run_id": message.run,
        "body": message.body,
        "made_at": now,
        "is_over": False,
        "due_at": now,
        "attempts": 0,
    }


def _webhook(row: RowMapping) -> RunWebhook:
    fields = {name: row[name] for name in RunWebhook.model_fields}
    return RunWebhook.model_validate({**fields, "url": shown(row["url"])})


def _message(row: RowMapping) -> SentMessage:
    return SentMessage.model_validate({name: row[name] for name in SentMessage.model_fields})


def old_messages(database: Database) -> SqlOldRows:
    """Messages about runs that have no further attempt, by their age."""
    return SqlOldRows(database, _sent, _sent.c.made_at, _sent.c.due_at.is_(None))
