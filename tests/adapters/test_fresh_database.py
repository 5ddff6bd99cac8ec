"""The database of these tests is as new, whatever the test before left in it."""

import asyncpg
import pytest

from tests.support.fresh_database import (
    DATABASES,
    TEMPLATE,
    FreshDatabase,
    administer,
    asked,
    sibling,
)

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
        "TRUNCATE countries CASCADE",
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


LEFT = """
SELECT (SELECT count(*) FROM pg_class WHERE relnamespace >= 16384 OR relname = 'left_behind')
  + (SELECT count(*) FROM pg_namespace WHERE nspname = 'left_behind')
  + (SELECT count(*) FROM pg_event_trigger) + (SELECT count(*) FROM pg_largeobject_metadata)
  + (SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
     WHERE d.datname = current_database())
"""


@pytest.mark.parametrize(
    "left",
    [
        "CREATE TABLE left_behind (id int)",
        "CREATE SCHEMA left_behind; CREATE TABLE left_behind.a (id int)",
        "DROP SCHEMA public",
        "SELECT lo_create(77)",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$",
    ],
)
async def test_a_database_is_empty_whatever_was_left_in_it(left: str) -> None:
    with DATABASES.empty() as url:
        await administer(url, left)
        open_session = await asyncpg.connect(url)
        await open_session.execute("BEGIN; CREATE TEMP TABLE another_one (id int)")
    with DATABASES.empty() as again:
        assert await asked(again, LEFT) == 0
        await administer(again, "CREATE TABLE public.left_behind (id int)")
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
        await open_session.execute("SELECT 1")
