"""Erasing a person: their rows, and what is kept of the uploads that hold them.

A file is kept as a whole or not at all: if one row of an upload is about the person, everything
that is kept of the upload goes, as it would after its retention. The rows that it wrote about other
people stay.
"""

import asyncio
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

from pydantic_core import from_json
from sqlalchemy import ColumnElement, Row, Table, delete, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.shared.scratch import fetched
from activities.spreadsheets.import_rows import acquire_organisation_lock, children_of, lock
from activities.spreadsheets.retention_store import files_of, purge
from adapters.database.engine import Database
from adapters.database.models.access import audit
from adapters.database.models.spreadsheets import (
    persons,
    remembered_people,
    spreadsheet_files,
    spreadsheet_imports,
    spreadsheet_journal,
    spreadsheet_values,
)
from adapters.database.models.webhooks import run_messages
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from adapters.types.store import SqlDeclaredTypes
from workflows.spreadsheets.mappings import FINAL, UndoState
from workflows.spreadsheets.names import QUESTIONS

_ENDED: Final = frozenset(FINAL)
_STAGED: Final = "/rows-"
"""In the name of a blob with all rows of a file."""
Ways = Sequence[Sequence[re.Pattern[str]]]
"""What a row has in it that is about a person: all words of one of these."""


@dataclass(frozen=True)
class Held:
    """What is kept of a person.

    Attributes:
        rows: How many rows of each table go.
        uploads: Uuids of ended uploads of which all goes.
        open: Uuids of uploads that have not ended and may hold the person.
        not_searched: Types with rows that may be about the person, and stay.
    """

    rows: Mapping[str, int]
    uploads: Sequence[str]
    open: Sequence[str]
    not_searched: Sequence[str]


class SqlErasure:
    """Looks for a person in everything that is kept of uploads, and erases it.

    Args:
        database: Where the rows are.
        blobs: Where the files are.
        scratch: Folder for temporary files.
    """

    def __init__(self, database: Database, blobs: Blobs, scratch: Path) -> None:
        self._database, self._blobs, self._scratch = database, blobs, scratch

    async def look(self, organisation_id: int, person_id: int) -> Held | None:
        """What is kept of a person; None: the organisation has no such person.

        Every row of every file that is kept is read: it takes as long as the files are large.

        Raises:
            PortError: The database or the blob store does not answer.
        """
        async with self._database.reading() as connection:
            person = await _person(connection, organisation_id, person_id)
            if person is None:
                return None
            gone = await _about(connection, person_id)
            uploads = await _kept_uploads(connection, organisation_id)
        ways = _ways_to_say(person)
        ended: list[str] = []
        open: list[str] = []
        for upload in uploads:
            if await self._holds(upload, gone, ways):
                is_open = upload.state not in _ENDED or upload.undo_state == UndoState.RUNNING
                (open if is_open else ended).append(upload.uuid)
        others = await SqlDeclaredTypes(self._database).with_rows(organisation_id)
        return Held({table.name: len(ids) for table, ids in gone.items()}, ended, open, others)

    async def forget_upload(self, uuid: str) -> bool:
        """Remove everything that is kept of an ended upload; a second run does the rest.

        Returns:
            False if the upload is being undone: its images are needed, and stay. Its files stay
            as well, unless the undo began just now.

        Raises:
            PortError: The database or the blob store does not answer.
        """
        async with self._database.reading() as connection:
            state = select(spreadsheet_imports.c.undo_state)
            if await connection.scalar(state.where(_is(uuid))) == UndoState.RUNNING:
                return False
            files = await files_of(connection, uuid)
        for file in files:
            await self._blobs.delete(file.name)
        async with self._database.transaction() as connection:
            now = datetime.now(UTC)
            opened = await lock(connection, uuid)
            if opened is None:
                return True
            if opened.row.undo_state == UndoState.RUNNING:
                return False
            await purge(connection, uuid, now)
            journal, imports = spreadsheet_journal.c, spreadsheet_imports
            await connection.execute(
                delete(spreadsheet_journal).where(journal.import_id == opened.id)
            )
            await connection.execute(
                update(imports)
                .where(imports.c.id == opened.id)
                .values(journal_purged_at=now, revision=imports.c.revision + 1)
            )
            # They say what its file is called, and why it waited.
            await connection.execute(
                delete(run_messages).where(run_messages.c.run_id == opened.row.workflow_id)
            )
            # Cells that were corrected stand in its entries.
            await connection.execute(
                update(audit)
                .where(audit.c.object.in_((uuid, opened.row.workflow_id)))
                .values(before=None, after=None, reason=None)
            )
            return True

    async def forget_person(self, organisation_id: int, person_id: int) -> Mapping[str, int]:
        """Delete a person and all rows that refer to them; how many of each table.

        Raises:
            PortError: The database does not answer.
        """
        async with self._database.transaction() as connection:
            await acquire_organisation_lock(connection, organisation_id)
            if await _person(connection, organisation_id, person_id) is None:
                return {}
            gone = await _about(connection, person_id)
            for table, ids in reversed(gone.items()):
                await connection.execute(delete(table).where(table.c.id.in_(ids)))
            await connection.execute(
                delete(remembered_people).where(remembered_people.c.person_id == person_id)
            )
        return {table.name: len(ids) for table, ids in gone.items()}

    async def _holds(self, upload: Any, gone: Mapping[Table, Collection[int]], ways: Ways) -> bool:
        """Whether what is kept of an upload is about the person, or may be."""
        async with self._database.reading() as connection:
            journal = spreadsheet_journal.c
            chunks = select(journal.round, journal.chunk).where(journal.import_id == upload.id)
            for chunk in (await connection.execute(chunks)).all():
                images = select(journal.images).where(
                    journal.import_id == upload.id,
                    tuple_(journal.round, journal.chunk) == tuple(chunk),
                )
                packed = (await connection.scalars(images)).one_or_none()
                if packed is not None and await asyncio.to_thread(_touched, packed, gone):
                    return True
            if upload.purged_at is not None:
                return False
            if await _asked_about(connection, upload.id, ways):
                return True
            names = await connection.scalars(
                select(spreadsheet_files.c.name).where(spreadsheet_files.c.import_id == upload.id)
            )
            staged = [name for name in names if _STAGED in name]
        for name in staged:
            try:
                async with fetched(self._blobs, name, self._scratch) as path:
                    if await asyncio.to_thread(_stands_in, path, ways):
                        return True
            except BlobNotFound:
                # Nothing is kept of it any more.
                continue
        # What no step has read may be about anybody.
        return not staged


def _is(uuid: str) -> ColumnElement[bool]:
    return spreadsheet_imports.c.uuid == uuid


async def _person(
    connection: AsyncConnection, organisation_id: int, person_id: int
) -> Row[Any] | None:
    query = select(persons).where(
        persons.c.id == person_id, persons.c.organisation_id == organisation_id
    )
    return (await connection.execute(query)).one_or_none()


async def _about(connection: AsyncConnection, person_id: int) -> dict[Table, Sequence[int]]:
    """Ids of the rows about a person, by table: those that refer to others stand behind them."""
    gone: dict[Table, Sequence[int]] = {persons: [person_id]}
    for table in (queue := [persons]):
        for child, column in children_of(table.name):
            query = select(child.c.id).where(child.c[column].in_(gone[table])).order_by(child.c.id)
            if ids := (await connection.scalars(query)).all():
                gone[child] = ids
                queue.append(child)
    return gone


async def _kept_uploads(connection: AsyncConnection, organisation_id: int) -> Sequence[Any]:
    imports = spreadsheet_imports.c
    query = (
        select(imports.id, imports.uuid, imports.state, imports.undo_state, imports.purged_at)
        .where(
            imports.organisation_id == organisation_id,
            imports.purged_at.is_(None) | imports.journal_purged_at.is_(None),
        )
        .order_by(imports.id)
    )
    return (await connection.execute(query)).all()


def _ways_to_say(person: Row[Any]) -> Ways:
    """The mail address, or both names; one name alone counts only if nothing else is known."""
    names = [person.first_name, person.last_name]
    by_name = names if all(names) or not person.email else []
    return [_patterns(way) for way in ([person.email], by_name) if any(way)]


def _patterns(words: Sequence[str | None]) -> Sequence[re.Pattern[str]]:
    """Each of the words, as a word of its own: a short name stands in many others."""
    return [re.compile(rf"(?<!\w){re.escape(_folded(word))}(?!\w)") for word in words if word]


def _folded(text: str) -> str:
    return normalize("NFC", text).casefold()


def _says(text: str, ways: Ways) -> bool:
    folded = _folded(text)
    return any(all(word.search(folded) for word in way) for way in ways)


def _stands_in(path: Path, ways: Ways) -> bool:
    with path.open(encoding="utf-8") as lines:
        return any(_says(line, ways) for line in lines)


async def _asked_about(connection: AsyncConnection, import_id: int, ways: Ways) -> bool:
    """Whether a question of an upload is about the person, or offers them as an answer."""
    values = spreadsheet_values.c
    texts = (values.value, values.alternatives, values.target_name, values.found_name)
    query = select(func.concat_ws(" ", *texts)).where(
        values.import_id == import_id, values.field.in_(sorted(QUESTIONS))
    )
    return any(_says(text, ways) for text in await connection.scalars(query))


def _touched(images: bytes, gone: Mapping[Table, Collection[int]]) -> bool:
    """Whether before- and after-images are about rows that go.

    They are about a row if they have its id, or a reference to a row that goes.
    """
    ids = {table.name: frozenset(map(str, found)) for table, found in gone.items()}
    for each in from_json(zlib.decompress(images)):
        own = ids.get(each["table"], frozenset())
        named = [*(row[1] for row in each["created"]), *(row[1] for row in each["updated"])]
        deleted = each.get("deleted", ())
        if any(str(id) in own for id in (*named, *(row[0] for row in deleted))):
            return True
        for parent, found in ids.items():
            for child, column in children_of(parent):
                if child.name != each["table"] or column not in each["columns"]:
                    continue
                place = each["columns"].index(column)
                rows = (*(row[2:] for row in each["created"]), *(row[1:] for row in deleted))
                if any(str(row[place]) in found for row in rows):
                    return True
    return False
