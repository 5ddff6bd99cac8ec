"""Taking the rows of an import back, from what the database held before it.

Taking back what a chunk has written, by row of the file: all of a row or nothing.

A row is taken back only when everything still is as the import left it, in the columns that the
import wrote. One of which anything was changed since, or is referred to by others, is left alone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import elsewhere, import_rows, people_store
from activities.spreadsheets.import_rows import (
    LockedImport,
    acquire_organisation_lock,
    children_of,
    defaults_of,
    lock,
    lock_known,
    save,
    target_table,
)
from activities.spreadsheets.records import UndoConflict, UndoPreview
from activities.spreadsheets.row_images import (
    Identity,
    TableImages,
    UpdatedImage,
    identity_from,
    pack,
    parts_of,
    renamed,
    unpack,
)
from adapters.database.bulk import engine as bulk
from adapters.database.models.base import BOOKKEEPING, DOMAIN, identity_of, is_stamped
from adapters.database.models.spreadsheets import (
    PERSON_LOOKUPS,
    spreadsheet_journal,
    spreadsheet_undo_conflicts,
)
from adapters.database.records import clean
from adapters.types.store import known_table, later_versions
from adapters.types.tables import as_renamed, key_of_version
from adapters.types.targets import TargetTables
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation, TableChanged
from workflows.spreadsheets.decisions import record_title
from workflows.spreadsheets.mappings import DecisionRecord, SpreadsheetState, UndoState
from workflows.spreadsheets.runs import (
    PROBLEMS_NAMED,
    FailedUndo,
    UndoCounts,
    UndoInput,
    UndoResult,
)

CHANGED: Final = "was changed since"
NO_PREVIEW: Final = (
    "docflow looks at rows of a table of yours only when it undoes an import: there is no preview. "
    "Rows that were changed since stay as they are, and are listed"
)
GONE: Final = "was deleted since"
CREATED_AGAIN: Final = "was created again since"
Images = Sequence[TableImages]
Conflict = tuple[int, str, Identity, str]
"""Line, table, row and why it is left alone."""
_REMOVED: Final = 0
"""In the place of the line of a row that the file lacked."""


@dataclass
class TakenBack:
    """What was done to the rows of a chunk.

    Attributes:
        deleted: Records that were deleted.
        restored: Records that got their values back.
        conflicts: What keeps rows of the file from being taken back.
    """

    deleted: int = 0
    restored: int = 0
    conflicts: Sequence[Conflict] = ()


@dataclass
class _Found:
    """A table's part of a chunk, and its records as they are now."""

    table: Table
    images: TableImages
    names: Sequence[str]
    current: Mapping[Identity, Mapping[str, Any]]
    """Of changed records, by identity."""
    created: Mapping[Identity, int]
    """Created records that are still there: identity to line."""
    back: Sequence[tuple[Any, ...]] = ()
    """Removed records that can be put back: identity and values."""
    conflicts: list[Conflict] = field(default_factory=list[Conflict])


async def take_back(
    connection: AsyncConnection, images: Sequence[TableImages], now: Mapping[str, Table], run: str
) -> TakenBack:
    """Take back every row of a chunk that can be.

    Args:
        connection: In a transaction.
        images: What the chunk has done, in the order in which it came about.
        now: Tables that may have changed since their version, as they are now.
        run: The import, as rows have it if their table says who wrote them.
    """
    found = [await _look(connection, each, target_table(each.table, now), run) for each in images]
    conflicts = [conflict for each in found for conflict in each.conflicts]
    blocked = {line for line, *_ in conflicts}
    while held := await _held(connection, found, blocked):
        conflicts += held
        blocked |= {line for line, *_ in held}
    done = TakenBack(conflicts=conflicts)
    for each in reversed(found):
        done.restored += await _restore(connection, each, blocked)
        wanted = [id for id, line in each.created.items() if line not in blocked]
        if wanted:
            await bulk.delete(connection, each.table, list(map(parts_of, wanted)))
        done.deleted += len(wanted)
        done.restored += await _put_back(connection, each)
    return done


async def take_back_there(
    targets: TargetTables, declared: DeclaredType, step: tuple[str, str], images: Images
) -> TakenBack:
    """Take back what a chunk has written into a table of a team.

    Args:
        targets: The tables.
        declared: The type.
        step: The run and its step; a step is done once.
        images: What the chunk has done.
    """
    lines = elsewhere.lines_there(images)
    run, name = step
    found = await targets.take_back(declared, run, elsewhere.images_there(images), name)
    table = images[0].table
    conflicts = [(lines.get(key, _REMOVED), table, key, reason) for key, reason in found.conflicts]
    blocked = {line for line, *_ in conflicts}
    created = sum(row[0] not in blocked for each in images for row in each.created)
    return TakenBack(created, found.restored - created, conflicts)


def _parted(
    images: Images, is_line: Callable[[int], bool], is_removed: Callable[[Identity], bool]
) -> Images:
    """Images of some lines of the file, and of some rows that the file lacked."""
    parts = (
        TableImages(
            each.table,
            each.columns,
            [row for row in each.created if is_line(row[0])],
            [image for image in each.updated if is_line(image.line)],
            [row for row in each.deleted if is_removed(row[0])],
        )
        for each in images
    )
    return [each for each in parts if not each.is_empty]


def _chosen(images: Images, lines: Collection[int]) -> Images:
    """Images of the lines that are to be taken back; no lines: of everything."""
    if not lines:
        return images
    return _parted(images, frozenset(lines).__contains__, lambda _: False)


def _left_rows(images: Images, lines: Collection[int], conflicts: Sequence[Conflict]) -> Images:
    """Images of the rows that were not to be taken back, or were left alone."""
    blocked = {line for line, *_ in conflicts}
    kept = {id for _, _, id, _ in conflicts}
    return _parted(
        images,
        lambda line: line in blocked or bool(lines and line not in lines),
        lambda id: id in kept or bool(lines),
    )


async def _look(connection: AsyncConnection, images: TableImages, table: Table, run: str) -> _Found:
    names = sorted({images.columns[n] for image in images.updated for n in image.columns})
    current: dict[Identity, dict[str, Any]] = {}
    if images.updated:
        ids = [parts_of(image.id) for image in images.updated]
        for _, *row in await bulk.rows(connection, table, ids, names):
            id, values = identity_from(table, row)
            current[id] = dict(zip(names, values, strict=True))
    found = _Found(table, images, names, current, {})
    for image in images.updated:
        reason = _why_not(found, image)
        if reason is not None:
            found.conflicts.append((image.line, images.table, image.id, reason))
    await _look_at_created(connection, found, run)
    await _look_at_removed(connection, found)
    return found


def _why_not(found: _Found, image: UpdatedImage) -> str | None:
    there = found.current.get(image.id)
    if there is None:
        return GONE
    columns = [found.images.columns[n] for n in image.columns]
    after = _parsed(found.table, columns, image.after)
    return None if [there[name] for name in columns] == after else CHANGED


def _parsed(table: Table, columns: Sequence[str], values: Sequence[Any]) -> list[Any]:
    return [
        bulk.parsed(table, name, [value])[0] for name, value in zip(columns, values, strict=True)
    ]


async def _look_at_created(connection: AsyncConnection, found: _Found, run: str) -> None:
    """Find created records that are as the import left them; one that is gone is fine."""
    images, table = found.images, found.table
    if not images.created:
        return
    lines, ids, *columns = zip(*images.created, strict=True)
    columns = [
        bulk.parsed(table, name, values)
        for name, values in zip(images.columns, columns, strict=True)
    ]
    written = dict(zip(ids, zip(lines, zip(*columns, strict=True), strict=True), strict=True))
    # What the import left blank is a person's work too, once it is filled.
    others = {"id", *images.columns, *PERSON_LOOKUPS}
    if is_stamped(table):
        others |= BOOKKEEPING
    blank = [name for name in table.c.keys() if name not in others]  # noqa: SIM118
    expected = dict.fromkeys(blank) | ({} if is_stamped(table) else defaults_of(table, others))
    if is_stamped(table):
        # A later version of the type may have columns that this one does not know. A later chunk of
        # this import may have changed the row, and was taken back before.
        expected["source_task"] = run
    created: dict[Identity, int] = {}
    wanted = list(map(parts_of, ids))
    for _, *row in await bulk.rows(connection, table, wanted, (*images.columns, *expected)):
        id, values = identity_from(table, row)
        line, after = written[id]
        created[id] = line
        if values != (*after, *expected.values()):
            found.conflicts.append((line, images.table, id, CHANGED))
    found.created = created


async def _look_at_removed(connection: AsyncConnection, found: _Found) -> None:
    """Find removed records that can be put back: those whose keys are free."""
    images, table = found.images, found.table
    if not images.deleted:
        return
    ids = [parts_of(row[0]) for row in images.deleted]
    rows = await bulk.rows(connection, table, ids, ())
    there = {identity_from(table, row)[0] for _, *row in rows}
    found.back = [row for row in images.deleted if row[0] not in there]
    found.conflicts += [(_REMOVED, images.table, id, CREATED_AGAIN) for id in sorted(there)]


async def _put_back(connection: AsyncConnection, found: _Found) -> int:
    """Insert removed records as they were; how many."""
    names, table = found.images.columns, found.table
    if not found.back:
        return 0
    ids, *columns = zip(*found.back, strict=True)
    values = (bulk.parsed(table, name, column) for name, column in zip(names, columns, strict=True))
    rows = [(*parts_of(id), *row) for id, row in zip(ids, zip(*values, strict=True), strict=True)]
    await bulk.insert(connection, table, (*identity_of(table), *names), rows)
    return len(rows)


async def _held(
    connection: AsyncConnection, found: Sequence[_Found], blocked: set[int]
) -> list[Conflict]:
    """Created records that something refers to which stays."""
    going = {
        each.images.table: {id for id, line in each.created.items() if line not in blocked}
        for each in found
    }
    held: list[Conflict] = []
    for each in found:
        wanted = sorted(going[each.images.table])
        for child, column in children_of(each.images.table):
            if not wanted:
                break
            stays = {
                parent
                for id, parent in await bulk.referring(connection, child, column, wanted)
                if id not in going.get(child.name, ())
            }
            reason = f"is referred to by {child.name.replace('_', ' ')}"
            held.extend((each.created[id], each.images.table, id, reason) for id in sorted(stays))
            wanted = [id for id in wanted if id not in stays]
    return held


async def _restore(connection: AsyncConnection, found: _Found, blocked: set[int]) -> int:
    """Give changed records their values back; how many."""
    rows: list[tuple[Any, ...]] = []
    for image in found.images.updated:
        if image.line in blocked:
            continue
        current = found.current[image.id]
        columns = [found.images.columns[n] for n in image.columns]
        values = _parsed(found.table, columns, image.before)
        before = dict(zip(columns, values, strict=True))
        rows.append(
            (*parts_of(image.id), *(before.get(name, current[name]) for name in found.names))
        )
    if rows:
        await bulk.update(connection, found.table, found.names, rows)
    return len(rows)


PREVIEWED: Final = 100
"""Rows that a preview names."""


async def begin_undo(connection: AsyncConnection, order: UndoInput) -> str | None:
    """Mark an import as being undone; None, or why it cannot be."""
    opened = await lock(connection, order.uuid)
    if opened is None or opened.row.organisation_id != order.organisation_id:
        return "there is no such import"
    row = opened.row
    is_same = (row.undo_lines or []) == list(order.lines)
    if row.undo_state == UndoState.RUNNING.value:
        if not is_same:
            return "an undo of other rows of this import is under way; wait until it has ended"
        await _note_retries(connection, opened, order)
        if order.retried_by:
            await save(connection, opened, {"undo_reason": None})
        return None
    if row.undo_requested_at == order.requested_at and row.undo_state in _DONE:
        # The same request again: its worker died before it could report the result.
        return None
    refusal = await _refusal_of_type(connection, opened) or _refusal(opened, order)
    if refusal is not None:
        return refusal
    what = f"{len(order.lines)} rows" if order.lines else "import"
    line = DecisionRecord(kind="undo", decision=what, by=order.by, at=order.requested_at)
    await import_rows.add(connection, row.workflow_id, [line])
    # Of rows that an earlier undo left alone it is found out anew.
    conflicts = spreadsheet_undo_conflicts
    await connection.execute(delete(conflicts).where(conflicts.c.import_id == opened.id))
    resumes = is_same and row.undo_state in (UndoState.FAILED.value, UndoState.TERMINATED.value)
    attempts = row.undo_attempts or 0
    await save(
        connection,
        opened,
        {
            "undo_state": UndoState.RUNNING.value,
            "undo_reason": None,
            "undo_by": clean(order.by),
            "undo_requested_at": order.requested_at,
            "undo_finished_at": None,
            "undo_attempts": attempts if resumes and attempts else attempts + 1,
            "undo_left_alone": 0,
            "undo_lines": list(order.lines) or None,
        },
    )
    return None


_DONE: Final = (UndoState.UNDONE.value, UndoState.UNDONE_PARTLY.value)


def _refusal(opened: LockedImport, order: UndoInput) -> str | None:
    row = opened.row
    if row.undo_state == UndoState.UNDONE.value:
        return f"this import was undone on {row.undo_finished_at:%Y-%m-%d} already"
    if row.dry_run:
        return "this import was a dry run: it wrote nothing that could be undone"
    if not opened.ended:
        state = SpreadsheetState(row.state).value
        return f"this import is still {state}: cancel it, or wait until it has ended, then undo it"
    ended = row.finished_at
    if order.requested_at > ended + timedelta(seconds=order.within):
        days = order.within // 86_400
        return f"this import ended on {ended:%Y-%m-%d}; an import can be undone for {days} days"
    if row.journal_purged_at is not None:
        return (
            "the rows as they were before this import are no longer kept; they were removed on "
            f"{row.journal_purged_at:%Y-%m-%d}"
        )
    return None


async def _refusal_of_type(connection: AsyncConnection, opened: LockedImport) -> str | None:
    row = opened.row
    declared = await known_table(connection, row.import_type, row.type_digest)
    if declared is None or not opened.ended:
        return None
    if declared.target is None or not declared.target.file:
        try:
            await _present(connection, opened, declared)
        except TableChanged as error:
            return str(error)
        return None
    return (
        "the rows of this import go into a file; docflow cannot take them back. If it has called, "
        "ask the receiver of the file"
    )


async def _note_retries(
    connection: AsyncConnection, opened: LockedImport, order: UndoInput
) -> None:
    lines = [
        DecisionRecord(
            kind="retry",
            subject=f"retry {number}",
            decision="undo",
            by=by,
            at=order.requested_at,
        )
        for number, by in enumerate(order.retried_by, start=1)
    ]
    await import_rows.add(connection, opened.row.workflow_id, lines)


async def undo_chunk(connection: AsyncConnection, order: UndoInput, targets: TargetTables) -> bool:
    """Take back the newest chunk that is not taken back yet; False: there is none."""
    opened = await lock_known(connection, order.uuid)
    if opened.row.undo_state != UndoState.RUNNING.value:
        return False
    attempt = opened.row.undo_attempts or 1
    done = await _next_chunk(connection, opened, attempt, targets, frozenset(order.lines))
    if done is None:
        return False
    deleted, restored, conflicts = done
    await _report(connection, opened, conflicts)
    await save(
        connection,
        opened,
        {
            "undo_deleted": opened.row.undo_deleted + deleted,
            "undo_restored": opened.row.undo_restored + restored,
            "undo_left_alone": opened.row.undo_left_alone + _rows(conflicts),
        },
    )
    return True


async def preview(connection: AsyncConnection, uuid: str, lines: Collection[int]) -> UndoPreview:
    """What an undo would do. It is done here: the caller rolls the transaction back.

    Args:
        connection: In a transaction.
        uuid: The import.
        lines: Rows of the file that would be taken back; none: all of them.

    Raises:
        RuleViolation: The rows are not in docflow's own tables.
    """
    opened = await lock_known(connection, uuid)
    if await elsewhere.type_elsewhere(connection, opened) is not None:
        refusal = await _refusal_of_type(connection, opened)
        raise RuleViolation(refusal or NO_PREVIEW)
    attempt = (opened.row.undo_attempts or 0) + 1
    deleted = restored = 0
    conflicts: list[Conflict] = []
    while (done := await _next_chunk(connection, opened, attempt, None, lines)) is not None:
        deleted, restored = deleted + done[0], restored + done[1]
        conflicts += done[2]
    return UndoPreview(
        deleted=deleted,
        restored=restored,
        left_alone=_rows(conflicts),
        conflicts=[
            UndoConflict(
                line=line,
                table=target_table(table).name,
                row_id=shown_identity(id),
                reason=reason,
            )
            for line, table, id, reason in sorted(conflicts, key=_by_line)[:PREVIEWED]
        ],
    )


async def _next_chunk(
    connection: AsyncConnection,
    opened: LockedImport,
    attempt: int,
    targets: TargetTables | None,
    lines: Collection[int],
) -> tuple[int, int, Sequence[Conflict]] | None:
    """Take back what can be of the newest chunk that this attempt has not looked at.

    Args:
        connection: In a transaction.
        opened: The import.
        attempt: Which one it is.
        targets: Tables of teams; None: the rows are in docflow's own.
        lines: Rows of the file that are taken back; none: all of them.
    """
    journal = spreadsheet_journal
    newest = (
        select(journal)
        .where(*_left(opened, attempt))
        .order_by(journal.c.round.desc(), journal.c.chunk.desc())
        .limit(1)
    )
    chunk = (await connection.execute(newest)).one_or_none()
    if chunk is None:
        return None
    await acquire_organisation_lock(connection, opened.row.organisation_id)
    row = opened.row
    declared = await known_table(connection, row.import_type, row.type_digest)
    now, names = await _present(connection, opened, declared)
    images = unpack(chunk.images, now)
    chosen = _chosen(images, lines)
    if not chosen:
        done = TakenBack()
    elif declared is not None and declared.target is not None and targets is not None:
        step = (elsewhere.undo_name(opened.row.uuid, attempt), f"{chunk.round}/{chunk.chunk}")
        done = await take_back_there(targets, declared, step, chosen)
    else:
        await bulk.expect_lookups(connection)
        present = [renamed(each, names) for each in chosen]
        done = await take_back(connection, present, now, row.workflow_id)
    left = _left_rows(images, lines, done.conflicts)
    change: dict[str, Any] = {"undone": not left, "attempt": attempt}
    if left:
        change["images"] = pack(left)
    await connection.execute(
        update(journal)
        .where(
            journal.c.import_id == opened.id,
            journal.c.round == chunk.round,
            journal.c.chunk == chunk.chunk,
        )
        .values(**change)
    )
    return done.deleted, done.restored, done.conflicts


async def _present(
    connection: AsyncConnection, opened: LockedImport, declared: DeclaredType | None
) -> tuple[Mapping[str, Table], Mapping[str, str]]:
    """The table of an import as it is now, and the names that its columns have there.

    Raises:
        TableChanged: It is gone, or a column does not keep the values of the import.
    """
    if declared is None or declared.target is not None:
        return {}, {}
    key = key_of_version(declared)
    later = await later_versions(connection, declared.name, opened.row.created_at)
    table, names = await as_renamed(connection, DOMAIN[key], later)
    return {key: table}, names


def _left(opened: LockedImport, attempt: int) -> tuple[ColumnElement[bool], ...]:
    """Chunks that are not taken back and that an attempt has not looked at."""
    journal = spreadsheet_journal.c
    return (
        journal.import_id == opened.id,
        journal.undone.is_(False),
        func.coalesce(journal.attempt, 0) < attempt,
    )


def _rows(conflicts: Sequence[Conflict]) -> int:
    return len({line or shown_identity(id) for line, _, id, _ in conflicts})


async def end_undo(connection: AsyncConnection, order: UndoInput) -> UndoResult:
    """Mark an import as undone, once every chunk was looked at."""
    opened = await lock_known(connection, order.uuid)
    row, journal = opened.row, spreadsheet_journal
    state = UndoState(row.undo_state or UndoState.FAILED.value)
    if state is UndoState.RUNNING:
        mine = select(func.count()).select_from(journal)
        left = mine.where(*_left(opened, row.undo_attempts or 1))
        kept = mine.where(journal.c.import_id == opened.id, journal.c.undone.is_(False))
        if (await connection.execute(left)).scalar_one():
            state = UndoState.FAILED
        elif (await connection.execute(kept)).scalar_one():
            state = UndoState.UNDONE_PARTLY
        else:
            state = UndoState.UNDONE
        if not order.lines:
            await people_store.forget(connection, opened.id)
        await save(
            connection,
            opened,
            {"undo_state": state.value, "undo_finished_at": datetime.now(UTC)},
        )
    return UndoResult(
        uuid=order.uuid,
        state=state,
        counts=UndoCounts(
            deleted=row.undo_deleted, restored=row.undo_restored, left_alone=row.undo_left_alone
        ),
        problems=await _first_problems(connection, opened),
    )


async def park_undo(connection: AsyncConnection, order: FailedUndo) -> None:
    """Note why an undo that is under way waits for a person."""
    opened = await lock(connection, order.uuid)
    if opened is not None and opened.row.undo_state == UndoState.RUNNING.value:
        await save(connection, opened, {"undo_reason": clean(order.reason)})


async def fail_undo(connection: AsyncConnection, order: FailedUndo) -> None:
    """Mark an undo that is under way as failed; it may be requested again, and resumes."""
    opened = await lock(connection, order.uuid)
    if opened is None or opened.row.undo_state != UndoState.RUNNING.value:
        return
    line = DecisionRecord(
        kind="undo", subject=clean(order.reason)[:200], decision="failed", by=order.by, at=order.at
    )
    await import_rows.add(connection, opened.row.workflow_id, [line])
    values = {
        "undo_state": UndoState.FAILED.value,
        "undo_reason": clean(order.reason),
        "undo_finished_at": order.at,
    }
    await save(connection, opened, values)


async def _report(
    connection: AsyncConnection, opened: LockedImport, conflicts: Sequence[Conflict]
) -> None:
    rows = [
        {
            "import_id": opened.id,
            "line": line,
            "table_name": target_table(table).name,
            "row_id": shown_identity(id),
            "reason": reason,
        }
        for line, table, id, reason in sorted(conflicts, key=_by_line)
    ]
    if rows:
        await connection.execute(spreadsheet_undo_conflicts.insert(), rows)


def shown_identity(identity: Identity) -> str:
    """An identity as people see it."""
    return " / ".join(map(str, parts_of(identity)))


def _by_line(conflict: Conflict) -> tuple[int, str, str]:
    return conflict[0], conflict[1], shown_identity(conflict[2])


async def _first_problems(connection: AsyncConnection, opened: LockedImport) -> tuple[str, ...]:
    conflicts = spreadsheet_undo_conflicts
    rows = await connection.execute(
        select(conflicts)
        .where(conflicts.c.import_id == opened.id)
        .order_by(conflicts.c.line, conflicts.c.id)
        .limit(PROBLEMS_NAMED)
    )
    return tuple(
        (f"row {row.line}: " if row.line else "")
        + f"{record_title(row.table_name).lower()} {row.row_id} {row.reason}"
        for row in rows
    )
