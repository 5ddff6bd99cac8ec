"""Cases and batches in the database, and the lists that people see."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from sqlalchemy import (
    CursorResult,
    RowMapping,
    Select,
    and_,
    delete,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.batches import orphaned_rows
from activities.batches.records import BatchView, DocumentView, FailedMessage
from adapters.database.engine import Database
from adapters.database.models.batches import (
    TEMPORARY,
    attachments,
    batches,
    cases,
    document_messages,
    document_relations,
    document_tags,
    document_texts,
    document_versions,
    documents,
    failed_messages,
)
from adapters.database.records import SqlOldRows, clean, record_of, release
from adapters.ports.batches import BatchInfo
from adapters.ports.records import OpenRow
from workflows.batches.events import (
    NOT_KNOWN,
    Announcement,
    CancelMode,
    CaseEvent,
    column_changes,
    columns_after_end,
    fields_for,
    new_row,
)
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, LoaderStatus, Purpose, Timings
from workflows.batches.runs import (
    OPEN_BATCHES,
    Closing,
    DocumentCounts,
    WaitingBatch,
    WaitingBatches,
)
from workflows.shared.contracts import names_of_fields

_OF_A_DOCUMENT: Final = (
    attachments,
    document_messages,
    document_relations,
    document_tags,
    document_texts,
    document_versions,
    failed_messages,
)
_STILL_OPEN: Final = (LoaderStatus.WAITING.value, LoaderStatus.PROCESSING.value)


def old_documents(database: Database) -> SqlOldRows:
    """Documents that have not changed since, unless they or their batch are being loaded.

    Files stay where they are: they are those of the sender, or named after them.
    """
    batch_is_open = exists().where(
        batches.c.case_id == documents.c.case_id,
        batches.c.batch_id == documents.c.batch_id,
        batches.c.loader_status.in_(_STILL_OPEN),
    )
    return SqlOldRows(
        database,
        documents,
        documents.c.updated_at,
        and_(documents.c.state != DocumentState.LOADING.value, ~batch_is_open),
        also=_OF_A_DOCUMENT,
    )


AT_ONCE: Final = 500
"""Batches that one query counts; each is six of its parameters."""


async def counts_of(
    connection: AsyncConnection, keys: Sequence[BatchKey]
) -> dict[BatchKey, DocumentCounts]:
    """Documents by state, of each of these batches.

    A document is counted in the batch whose message is current. `superseded` are those of which a
    batch has brought a file, and another batch has the current one. `found` are, of all these, the
    files that were found in other documents.
    """
    numbers = defaultdict[BatchKey, dict[str, int]](dict)
    for first in range(0, len(keys), AT_ONCE):
        for row in await connection.execute(_query(keys[first : first + AT_ONCE])):
            case_id, batch_id, state, number = tuple(row)
            numbers[BatchKey(case_id=case_id, batch_id=batch_id)][state] = number
    return {key: DocumentCounts(**numbers[key]) for key in keys}


def _query(keys: Sequence[BatchKey]) -> Any:
    current, former = documents.c, document_versions.c
    wanted = [(key.case_id, key.batch_id) for key in keys]

    def is_wanted(columns: Any) -> Any:
        return tuple_(columns.case_id, columns.batch_id).in_(wanted)

    by_state = (
        select(current.case_id, current.batch_id, current.state, func.count())
        .where(is_wanted(current))
        .group_by(current.case_id, current.batch_id, current.state)
    )
    still_its_own = (
        select(current.document_id)
        .where(
            and_(
                current.case_id == former.case_id,
                current.document_id == former.document_id,
                current.batch_id == former.batch_id,
            )
        )
        .exists()
    )
    replaced = (
        select(
            former.case_id,
            former.batch_id,
            literal(DocumentState.SUPERSEDED.value),
            func.count(former.document_id.distinct()),
        )
        .where(is_wanted(former), not_(still_its_own))
        .group_by(former.case_id, former.batch_id)
    )
    found = (
        select(current.case_id, current.batch_id, literal("found"), func.count())
        .where(is_wanted(current), current.parent_id.is_not(None))
        .group_by(current.case_id, current.batch_id)
    )
    return union_all(by_state, replaced, found)


NEWEST_FIRST: Final = (
    batches.c.updated_at.desc(),
    batches.c.case_id.desc(),
    batches.c.batch_id.desc(),
)
"""The order in which batches are listed; those of one call changed at the same moment."""


def is_later(before: datetime, behind: BatchKey | None) -> Any:
    """Whether a batch comes later in the list than one that changed at a moment.

    Args:
        before: The moment, UTC.
        behind: That batch; None: what changed at the moment does not come later.
    """
    at, case, batch = batches.c.updated_at, batches.c.case_id, batches.c.batch_id
    if behind is None:
        return at < before
    same_case = and_(case == behind.case_id, batch < behind.batch_id)
    return and_(at <= before, or_(at < before, case < behind.case_id, same_case))


async def views_of(connection: AsyncConnection, chosen: Select[Any]) -> list[BatchView]:
    """Rows of batches, with their documents by state."""
    rows = (await connection.execute(chosen)).mappings().all()
    keys = [BatchKey(case_id=row["case_id"], batch_id=row["batch_id"]) for row in rows]
    counts = await counts_of(connection, keys)
    return [_view(row, key, counts[key]) for row, key in zip(rows, keys, strict=True)]


async def documents_of(
    connection: AsyncConnection, key: BatchKey, state: DocumentState | None, after: str, limit: int
) -> list[DocumentView]:
    """Documents of a batch by id, beginning behind one; None: in any state."""
    columns, original = documents.c, documents.alias()
    same_bytes = and_(
        original.c.case_id == columns.case_id, original.c.document_id == columns.duplicate_of
    )
    query = (
        select(documents, original.c.state.label("original_state"))
        .outerjoin(original, same_bytes)
        .where(
            columns.case_id == key.case_id,
            columns.batch_id == key.batch_id,
            columns.document_id > after,
        )
    )
    if state is not None:
        query = query.where(columns.state == state.value)
    rows = await connection.execute(query.order_by(columns.document_id).limit(limit))
    return [_document(row) for row in rows.mappings()]


async def failed_messages_of(
    connection: AsyncConnection, key: BatchKey, after: tuple[str, str], limit: int
) -> list[FailedMessage]:
    """Messages of a batch that are recorded as failed, by document and key, behind one."""
    columns = failed_messages.c
    order = (columns.document_id, columns.message_key)
    query = (
        select(failed_messages)
        .where(columns.case_id == key.case_id, columns.batch_id == key.batch_id)
        .where(tuple_(*order) > tuple_(*after))
        .order_by(*order)
        .limit(limit)
    )
    rows = (await connection.execute(query)).mappings()
    return [record_of(FailedMessage, row, body=row["message"], at=row["failed_at"]) for row in rows]


def _view(row: RowMapping, key: BatchKey, counts: DocumentCounts) -> BatchView:
    status, reason = LoaderStatus(row["loader_status"]), row["reason"]
    return record_of(
        BatchView,
        row,
        key=key,
        status=status,
        reason=reason if row["known"] else reason or NOT_KNOWN,
        documents=counts,
        unused_fields=tuple(names_of_fields(json.loads(row["passed_on"] or "{}"))),
        unannounced=row["unannounced_since"] is not None and status.terminal,
    )


def _document(row: RowMapping) -> DocumentView:
    blob_name: str | None = row["blob_name"]
    filename = row["filename"] or (blob_name and blob_name.rpartition("/")[2])
    return record_of(DocumentView, row, filename=filename)


_OPEN = (LoaderStatus.WAITING.value, LoaderStatus.PROCESSING.value)


class SqlBatchStore:
    """Tables of cases and batches; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def expect(self, keys: Sequence[BatchKey]) -> None:
        """Make rows of batches that will be started, so that their order is kept."""
        now = datetime.now(UTC)
        async with self._database.transaction() as connection:
            await self._ensure(connection, keys, now, known=True)
            for key in keys:
                await connection.execute(
                    update(batches)
                    .where(_is(key), not_(batches.c.known))
                    .values(known=True, loader_status_updated_at=now, updated_at=now)
                )

    async def set_concurrency(self, case_id: int, most: int | None) -> None:
        """Set `max_processing_daemons` of a case; None: it has none of its own."""
        values = {"max_processing_daemons": most}
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(cases)
                .values(id=case_id, **values)
                .on_conflict_do_update(index_elements=["id"], set_=values)
            )

    async def concurrency(self, case_id: int) -> int | None:
        """`max_processing_daemons` of a case; None: it has none of its own."""
        async with self._database.reading() as connection:
            return await _concurrency(connection, case_id)

    async def note(self, case_id: int, events: Sequence[CaseEvent]) -> WaitingBatches:
        """Write events down, in one transaction, and read who waits; writing twice is once.

        Only JOB_STARTED makes a batch: what other events say of one that is neither started nor
        expected is kept until it is, and nothing waits for it.

        JOB_STARTED asks for the batch to be loaded, unless it is complete or cancelled;
        one that is failed, skipped, in-complete or terminated waits again. REDRIVE_REQUESTED asks
        for another pass of one that is final and has dead letters, or whose failed documents it
        means as well. JOB_FINISHED and BATCH_END_FINISHED count for a batch that is not final;
        IMPORT_CANCELLED makes one that is not `processing` `cancelled`, also one that was unknown.
        `open_run` is left False.
        """
        now = datetime.now(UTC)
        changed: dict[BatchKey, dict[str, Any]] = {}
        async with self._database.transaction() as connection:
            rows = await self._locked(connection, case_id, events, now)
            for event in events:
                changes = column_changes(event, rows[event.key], now)
                if changes:
                    rows[event.key].update(changes)
                    changed.setdefault(event.key, {}).update(changes)
            for key, changes in changed.items():
                await self._set(connection, key, now, **changes)
            return await _line(connection, case_id)

    async def facts(self, key: BatchKey) -> BatchInfo | None:
        """Everything that validation looks at; None: there is no such batch."""
        async with self._database.reading() as connection:
            row = (await connection.execute(select(batches).where(_is(key)))).one_or_none()
            if row is None:
                return None
            return BatchInfo(
                status=LoaderStatus(row.loader_status),
                reason=row.reason,
                job_finished=row.job_finished_at is not None,
                documents=row.job_documents,
                end_finished=row.end_finished_at is not None,
                dead_letters=row.dead_letters,
                lost=row.lost,
                cancelled=row.cancelled_mode and CancelMode(row.cancelled_mode),
                concurrency=await _concurrency(connection, key.case_id),
                processing=await _others_in_processing(connection, key),
                unannounced=row.unannounced_since is not None,
            )

    async def claim(self, key: BatchKey, orphans: Sequence[int]) -> bool:
        """Set a batch to `processing` and others of its case from there to `in-complete`.

        Returns:
            False, and nothing changed: another batch than these is in `processing` by now, or
            this one has been cancelled.
        """
        now = datetime.now(UTC)
        async with self._database.transaction() as connection:
            # A caller that claims another batch of the case waits here.
            query = select(batches).where(batches.c.case_id == key.case_id)
            query = query.order_by(batches.c.batch_id).with_for_update()
            rows = {row.batch_id: row for row in await connection.execute(query)}
            mine = rows.get(key.batch_id)
            if mine is not None and mine.loader_status == LoaderStatus.CANCELLED.value:
                return False
            others = {other for other, _ in await _others_in_processing(connection, key)}
            if others - set(orphans):
                return False
            for orphan in sorted(others):
                gone = "its run and its function were gone"
                changes = orphaned_rows.ended_without_run(
                    rows[orphan], LoaderStatus.INCOMPLETE, gone, now
                )
                other = BatchKey(case_id=key.case_id, batch_id=orphan)
                await self._set(connection, other, now, **changes)
            await self._set(
                connection,
                key,
                now,
                loader_status=LoaderStatus.PROCESSING.value,
                loader_status_updated_at=now,
                # What was asked for has begun: it does not begin by itself again when its run
                # is terminated.
                purpose=None,
                reason=None,
                skipped=False,
                # It announces its own end.
                unannounced_since=None,
            )
        return True

    async def skip(self, key: BatchKey, reason: str) -> None:
        """Record that a batch no longer blocks its case, and forget what was requested.

        One that is in `processing` or final keeps the reason that it has.
        """
        open_batch = update(batches).where(_is(key), batches.c.loader_status.in_(_OPEN))
        waiting = open_batch.where(batches.c.loader_status == LoaderStatus.WAITING.value)
        async with self._database.transaction() as connection:
            await connection.execute(open_batch.values(purpose=None, updated_at=datetime.now(UTC)))
            await connection.execute(waiting.values(skipped=True, reason=clean(reason)))

    async def call(self, key: BatchKey, reason: str | None) -> None:
        """Note why people are asked to look at an open batch; None: they no longer are."""
        open_batch = update(batches).where(_is(key), batches.c.loader_status.in_(_OPEN))
        asked = None if reason is None else clean(reason)
        async with self._database.transaction() as connection:
            await connection.execute(
                open_batch.values(attention=asked, updated_at=datetime.now(UTC))
            )

    async def start_pass(self, key: BatchKey, number: int, final: bool) -> None:
        """Note which pass over the dead letters is under way."""
        async with self._database.transaction() as connection:
            now = datetime.now(UTC)
            await self._set(connection, key, now, redrive_pass=number, final_pass=final)

    async def is_final_pass(self, key: BatchKey) -> bool:
        """Whether a document that fails now is recorded as failed."""
        async with self._database.reading() as connection:
            return bool(await connection.scalar(select(batches.c.final_pass).where(_is(key))))

    async def close(self, closing: Closing) -> None:
        """Give a batch its final status, and forget what was noted for this run of it.

        LOADER_FINISHED is owed from then on, where something was built, or a sweep finds that the
        batch was cancelled.
        """
        now = datetime.now(UTC)
        condition = _is(closing.key)
        if closing.only_processing:
            condition &= batches.c.loader_status == LoaderStatus.PROCESSING.value
        async with self._database.transaction() as connection:
            query = select(batches).where(condition).with_for_update()
            row = (await connection.execute(query)).one_or_none()
            if row is not None:
                changes = {
                    **_ended(row, closing, now),
                    "dead_letters": closing.dead_letters,
                    "lost": row.lost if closing.lost is None else clean(closing.lost),
                }
                await self._set(connection, closing.key, now, **changes)
            if closing.status is LoaderStatus.COMPLETE and closing.dead_letters:
                await orphaned_rows.fail_dead_letters(connection, closing.key)
            if closing.unbuilt:
                await release(connection, closing.key.workflow_id)

    async def announced(self, key: BatchKey) -> None:
        """Note that LOADER_FINISHED of a batch is published."""
        async with self._database.transaction() as connection:
            await connection.execute(update(batches).where(_is(key)).values(unannounced_since=None))

    async def unannounced(self, before: datetime) -> Sequence[BatchKey]:
        """Batches that ended before a moment and whose end was not announced; the oldest 1,000."""
        async with self._database.reading() as connection:
            return await orphaned_rows.unannounced(connection, before)

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Batches that are open, leases of those that are not, and documents that are loading."""
        async with self._database.reading() as connection:
            return await orphaned_rows.open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a batch or a document as terminated; what it held is free."""
        async with self._database.transaction() as connection:
            return await orphaned_rows.terminate(connection, id, reason, unchanged_since)

    async def stop_documents(self, key: BatchKey) -> DocumentCounts:
        """Close every document of an ended batch that is `loading`, with the reason.

        As `terminated` where the batch is, else as `cancelled`.

        Returns:
            The documents of the batch by state.
        """
        async with self._database.transaction() as connection:
            await orphaned_rows.stop_documents(connection, key)
            return (await counts_of(connection, [key]))[key]

    async def truncate(self, key: BatchKey) -> int:
        """Empty doc_dedupe, tag_dedupe and process_checkpoints of a batch, and release its leases.

        Returns:
            Rows removed of these tables.
        """
        removed = 0
        async with self._database.transaction() as connection:
            for table in TEMPORARY:
                done = await connection.execute(
                    delete(table).where(
                        table.c.case_id == key.case_id, table.c.batch_id == key.batch_id
                    )
                )
                removed += cast(CursorResult[Any], done).rowcount
            await release(connection, key.workflow_id)
        return removed

    async def counts(self, key: BatchKey) -> DocumentCounts:
        """Documents of a batch by state."""
        async with self._database.reading() as connection:
            return (await counts_of(connection, [key]))[key]

    async def passed_on(self, key: BatchKey, announcement: Announcement) -> Mapping[str, Any]:
        """The fields that docflow does not use of the events that lead to an announcement.

        They stay until the batch is started again.
        """
        async with self._database.reading() as connection:
            kept = await connection.scalar(select(batches.c.passed_on).where(_is(key)))
        return fields_for(announcement, kept)

    async def documents(
        self, key: BatchKey, state: DocumentState | None = None, after: str = "", limit: int = 100
    ) -> Sequence[DocumentView]:
        """Documents of a batch by id, beginning behind one."""
        async with self._database.reading() as connection:
            return await documents_of(connection, key, state, after, limit)

    async def failed_messages(
        self, key: BatchKey, after: tuple[str, str] = ("", ""), limit: int = 100
    ) -> Sequence[FailedMessage]:
        """Messages of a batch that are recorded as failed, by document id and key, behind one."""
        async with self._database.reading() as connection:
            return await failed_messages_of(connection, key, after, limit)

    async def list(
        self,
        case_id: int | None = None,
        limit: int = 100,
        status: LoaderStatus | None = None,
        before: datetime | None = None,
        behind: BatchKey | None = None,
    ) -> Sequence[BatchView]:
        """Batches, the newest change first.

        Args:
            case_id: Only those of this case.
            limit: At most so many.
            status: Only those in it.
            before: Only those that changed earlier, UTC.
            behind: The last batch of a page, which changed at `before`: those of that very moment
                that come behind it as well.
        """
        chosen = select(batches).limit(limit)
        if case_id is not None:
            chosen = chosen.where(batches.c.case_id == case_id)
        if status is not None:
            chosen = chosen.where(batches.c.loader_status == status.value)
        if before is not None:
            chosen = chosen.where(is_later(before, behind))
        async with self._database.reading() as connection:
            return await views_of(connection, chosen.order_by(*NEWEST_FIRST))

    async def get(self, key: BatchKey) -> BatchView | None:
        """One batch."""
        async with self._database.reading() as connection:
            views = await views_of(connection, select(batches).where(_is(key)))
        return views[0] if views else None

    async def _ensure(
        self, connection: AsyncConnection, keys: Iterable[BatchKey], now: datetime, *, known: bool
    ) -> None:
        # In one order for all, so that no two writers wait for each other.
        pairs = sorted({(key.case_id, key.batch_id) for key in keys})
        rows = [new_row(*pair, now, known=known) for pair in pairs]
        if rows:
            await connection.execute(insert(batches).on_conflict_do_nothing(), rows)

    async def _locked(
        self, connection: AsyncConnection, case_id: int, events: Sequence[CaseEvent], now: datetime
    ) -> dict[BatchKey, dict[str, Any]]:
        """Rows of the batches that events are about, made where there is none, by key."""
        if not events:
            return {}
        # What an event says of a batch that is not known is kept until it is started.
        await self._ensure(connection, (event.key for event in events), now, known=False)
        query = (
            select(batches)
            .where(
                batches.c.case_id == case_id,
                batches.c.batch_id.in_({event.batch_id for event in events}),
            )
            .order_by(batches.c.batch_id)
            .with_for_update()
        )
        rows = (await connection.execute(query)).mappings()
        return {BatchKey(case_id=case_id, batch_id=row["batch_id"]): dict(row) for row in rows}

    async def _set(
        self, connection: AsyncConnection, key: BatchKey, now: datetime, **changes: Any
    ) -> None:
        await connection.execute(update(batches).where(_is(key)).values(**changes, updated_at=now))


def _is(key: BatchKey) -> Any:
    return and_(batches.c.case_id == key.case_id, batches.c.batch_id == key.batch_id)


def _ended(row: Any, closing: Closing, now: datetime) -> dict[str, Any]:
    status, reason = closing.status, closing.reason
    if closing.only_processing:
        return orphaned_rows.ended_without_run(row, status, reason, now)
    return {
        **columns_after_end(status, now),
        "reason": None if reason is None else clean(reason),
        "unannounced_since": None if closing.unbuilt else now,
    }


async def _concurrency(connection: AsyncConnection, case_id: int) -> int | None:
    query = select(cases.c.max_processing_daemons).where(cases.c.id == case_id)
    return await connection.scalar(query)


async def _others_in_processing(
    connection: AsyncConnection, key: BatchKey
) -> list[tuple[int, datetime]]:
    query = (
        select(batches.c.batch_id, batches.c.loader_status_updated_at)
        .where(
            batches.c.case_id == key.case_id,
            batches.c.batch_id != key.batch_id,
            batches.c.loader_status == LoaderStatus.PROCESSING.value,
        )
        .order_by(batches.c.batch_id)
    )
    return [(row.batch_id, row.loader_status_updated_at) for row in await connection.execute(query)]


async def _line(connection: AsyncConnection, case_id: int) -> WaitingBatches:
    query = (
        select(batches)
        .where(batches.c.case_id == case_id, batches.c.loader_status.in_(_OPEN), batches.c.known)
        # Those that block no other batch must not fill the backlog.
        .order_by(batches.c.skipped, batches.c.batch_id)
        .limit(OPEN_BATCHES)
    )
    waiting = [_waiting(row) for row in await connection.execute(query)]
    return WaitingBatches(batches=tuple(sorted(waiting, key=lambda one: one.batch_id)))


def _waiting(row: Any) -> WaitingBatch:
    return WaitingBatch(
        batch_id=row.batch_id,
        status=LoaderStatus(row.loader_status),
        purpose=None if row.purpose is None else Purpose(row.purpose),
        timings=None if row.timings is None else Timings.model_validate_json(row.timings),
        since=row.loader_status_updated_at,
        skipped=row.skipped,
        cancelled=None if row.cancelled_mode is None else CancelMode(row.cancelled_mode),
    )
