"""People of an organisation: whom rows may be about, and what was answered about them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import import_rows
from activities.spreadsheets.import_rows import LockedImport, target_table
from adapters.database.bulk import engine as bulk
from adapters.database.models.spreadsheets import (
    TARGETS,
    persons,
    remembered_people,
    spreadsheet_values,
)
from adapters.database.records import clean
from workflows.spreadsheets.fields import Entity
from workflows.spreadsheets.mappings import MappingStatus
from workflows.spreadsheets.people import (
    FILE_ROWS,
    PERSON,
    KnownPerson,
    PeopleQuery,
    digest_of,
    identity_of,
)

REMEMBERED: Final = 200_000
"""Answers that are remembered; the newest."""
_INDEXED: Final = 2_000
"""People of one transaction that become findable."""
_ASKED: Final = 500
_COLUMNS: Final = ("person_key", "last_name", "first_name", "email", "birthdate")


async def index_some(connection: AsyncConnection, organisation_id: int) -> bool:
    """Make some people findable that are not; whether there may be more."""
    people = persons.c
    query = (
        select(people.id, *(people[name] for name in _COLUMNS))
        .where(people.organisation_id == organisation_id, people.name_key.is_(None))
        .order_by(people.id)
        .limit(_INDEXED)
        .with_for_update(skip_locked=True)
    )
    rows = (await connection.execute(query)).all()
    if rows:
        change = (
            update(persons)
            .where(people.id == bindparam("own"))
            .values(name_key=bindparam("name"), mail_key=bindparam("mail"))
        )
        await connection.execute(change, [_keys(row) for row in rows])
    return len(rows) == _INDEXED


async def find_people(
    connection: AsyncConnection, organisation_id: int, query: PeopleQuery
) -> Sequence[KnownPerson]:
    """People whom rows may be about, by id."""
    found: dict[int, KnownPerson] = {}
    for column, values in (
        ("name_key", query.name_keys),
        ("mail_key", query.mail_keys),
        ("person_key", query.keys),
    ):
        if values:
            rows = await bulk.lookup(
                connection, persons, ("organisation_id", organisation_id), column, values, _COLUMNS
            )
            found |= {row[0]: _known(tuple(row)) for row in rows}
    bibs = await _bibs(connection, query)
    missing = sorted(bibs.keys() - found.keys())
    for each in await people_by_id(connection, organisation_id, missing):
        found[each.id] = each
    for id in bibs.keys() & found.keys():
        found[id] = replace(found[id], bibs=tuple(sorted(bibs[id])))
    return [found[id] for id in sorted(found)]


async def _bibs(connection: AsyncConnection, query: PeopleQuery) -> Mapping[int, Sequence[str]]:
    """Id of each person who has one of the bibs, and which."""
    found: dict[int, list[str]] = defaultdict(list)
    if query.bibs_of is None or not query.bibs:
        return found
    name, context_id = query.bibs_of
    context, person, *_ = TARGETS[name]
    rows = await bulk.lookup(
        connection, target_table(name), (context, context_id), "bib", query.bibs, (person, "bib")
    )
    for _, id, bib in rows:
        found[id].append(bib)
    return found


async def people_by_id(
    connection: AsyncConnection, organisation_id: int, ids: Sequence[int]
) -> Sequence[KnownPerson]:
    """Some people; those of other organisations are left out."""
    people = persons.c
    found: list[KnownPerson] = []
    for start in range(0, len(ids), _ASKED):
        query = select(people.id, *(people[name] for name in _COLUMNS)).where(
            people.organisation_id == organisation_id, people.id.in_(ids[start : start + _ASKED])
        )
        rows = await connection.execute(query.order_by(people.id))
        found.extend(_person(row.id, *tuple(row)[1:]) for row in rows)
    return found


async def search_people(
    connection: AsyncConnection, organisation_id: int, query: str, limit: int
) -> Sequence[Entity]:
    """People to choose from, by a part of their name or mail address."""
    people = persons.c
    words = query.split()
    conditions = [people.organisation_id == organisation_id]
    for word in words:
        like = f"%{word.replace('%', '').replace('_', '')}%"
        conditions.append(
            people.last_name.ilike(like) | people.first_name.ilike(like) | people.email.ilike(like)
        )
    rows = await connection.execute(
        select(people.id, *(people[name] for name in _COLUMNS))
        .where(*conditions)
        .order_by(people.last_name, people.first_name, people.id)
        .limit(limit)
    )
    found = (_person(row.id, *tuple(row)[1:]) for row in rows)
    return [Entity(each.id, each.identity.text) for each in found]


async def remembered(
    connection: AsyncConnection, organisation_id: int
) -> Mapping[str, Mapping[int, bool]]:
    """What people answered before, by digest of the question."""
    memory = remembered_people.c
    rows = await connection.execute(
        select(memory.question, memory.person_id, memory.is_same)
        .where(memory.organisation_id == organisation_id)
        .order_by(memory.decided_at.desc(), memory.question, memory.person_id)
        .limit(REMEMBERED)
    )
    found: dict[str, dict[int, bool]] = defaultdict(dict)
    for row in rows:
        found[row.question][row.person_id] = row.is_same
    return found


async def remember(connection: AsyncConnection, opened: LockedImport, at: datetime) -> None:
    """Keep what people answered in an import for later ones."""
    values = spreadsheet_values
    answered = await connection.execute(
        select(values.c.value, values.c.target_id, values.c.create, values.c.alternatives).where(
            values.c.import_id == opened.id,
            values.c.field == PERSON.name,
            values.c.status == MappingStatus.MANUAL_MATCHED.value,
        )
    )
    rows: list[dict[str, Any]] = []
    for row in answered:
        others = [each.id for each in import_rows.load_alternatives(row.alternatives)]
        people = {id: False for id in others if id is not None} if row.create else {}
        if row.target_id is not None:
            people = {row.target_id: True}
        rows.extend(
            {
                "organisation_id": opened.row.organisation_id,
                "question": digest_of(row.value),
                "person_id": id,
                "is_same": same,
                "import_id": opened.id,
                "decided_at": at,
            }
            for id, same in people.items()
            if id < FILE_ROWS
        )
    if not rows:
        return
    adding = insert(remembered_people)
    await connection.execute(
        adding.on_conflict_do_update(
            index_elements=["organisation_id", "question", "person_id"],
            set_={name: adding.excluded[name] for name in ("is_same", "import_id", "decided_at")},
        ),
        rows,
    )


async def forget(connection: AsyncConnection, import_id: int) -> None:
    """Forget what was answered in an import."""
    memory = remembered_people
    await connection.execute(delete(memory).where(memory.c.import_id == import_id))


def _keys(row: Any) -> dict[str, Any]:
    who = identity_of(row.last_name, row.first_name, row.email, row.birthdate)
    return {
        "own": row.id,
        # A person without a name is found by its key alone.
        "name": "" if who is None else clean(who.name_key),
        "mail": None if who is None or who.mail_key is None else clean(who.mail_key),
    }


def _known(row: tuple[Any, ...]) -> KnownPerson:
    id, key, last, first, mail, born = row
    return _person(id, key, last, first, mail, born)


def _person(id: int, key: str, last: Any, first: Any, mail: Any, born: Any) -> KnownPerson:
    who = identity_of(last, first, mail, born) or identity_of(" ", " ", mail, born)
    assert who is not None
    return KnownPerson(id, key, who)
