"""The database of these tests is as new, whatever the test before left in it."""

import asyncpg
import pytest

from tests.support.fresh_database import TEMPLATE, FreshDatabase, administer, sibling

EVERYTHING = """
SELECT (SELECT count(*) FROM import_tasks), (SELECT count(*) FROM countries),
  (SELECT name FROM countries WHERE id = 276), (SELECT count(*) FROM persons)
"""


async def found(fresh: FreshDatabase) -> tuple[object, ...]:
    connection = await asyncpg.connect(fresh.url)
    try:
        return tuple(await connection.fetchrow(EVERYTHING))
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "left",
    [
        "DELETE FROM countries WHERE id = 276",
        "UPDATE countries SET name = 'Atlantis' WHERE id = 276",
        "INSERT INTO persons (organisation_id, person_key) VALUES (1, 'k')",
        "CREATE TABLE left_behind (id int)",
        "ALTER TABLE import_tasks ADD COLUMN left_behind int",
        "DROP TABLE event_participants CASCADE",
    ],
)
async def test_what_a_test_left_is_gone(postgres_url: str, left: str) -> None:
    fresh = FreshDatabase(postgres_url, TEMPLATE, "left_behind")
    await fresh.prepare()
    before = await found(fresh)
    await administer(fresh.url, left)
    open_session = await asyncpg.connect(fresh.url)
    await open_session.execute("BEGIN; LOCK TABLE import_tasks")
    await fresh.prepare()
    assert await found(fresh) == before
    with pytest.raises(asyncpg.PostgresError):
        await administer(fresh.url, "SELECT * FROM left_behind")
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
        await open_session.execute("SELECT 1")


async def test_ids_begin_anew(postgres_url: str) -> None:
    fresh = FreshDatabase(postgres_url, TEMPLATE, "ids")
    ids: list[int] = []
    for _ in range(2):
        await fresh.prepare()
        connection = await asyncpg.connect(sibling(postgres_url, "ids"))
        insert = "INSERT INTO persons (organisation_id, person_key) VALUES (1, 'k') RETURNING id"
        ids.append(await connection.fetchval(insert))
        await connection.close()
    assert ids[0] == ids[1]
