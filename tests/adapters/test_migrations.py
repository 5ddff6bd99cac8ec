"""Migrations bring a database to exactly what the models say, once, however many try."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from adapters.database.engine import open_database
from adapters.database.models.every import metadata
from adapters.database.schema import (
    MIGRATIONS,
    SchemaBehind,
    current,
    require_current,
    revisions,
    upgrade,
)
from adapters.ports.errors import Denied, Unavailable
from tests.support.fresh_database import sibling


def differences(connection: Connection) -> list[object]:
    schemas = {None, *(table.schema for table in metadata.tables.values())}

    def is_ours(name: str | None, kind: str, parents: object) -> bool:
        return kind != "schema" or name in schemas

    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "compare_server_default": True,
            "include_schemas": True,
            "include_name": is_ours,
        },
    )
    return list(compare_metadata(context, metadata))


async def test_an_upgraded_database_matches_the_models(empty_url: str) -> None:
    await upgrade(empty_url)
    async with open_database(empty_url) as database, database.reading() as connection:
        assert await connection.run_sync(differences) == []


async def test_a_difference_would_be_found(empty_url: str) -> None:
    await upgrade(empty_url)
    async with open_database(empty_url) as database:
        async with database.transaction() as connection:
            await connection.execute(text("ALTER TABLE crews DROP COLUMN shift"))
        async with database.reading() as connection:
            assert await connection.run_sync(differences) != []


async def test_a_worker_is_refused_until_the_upgrade(empty_url: str) -> None:
    async with open_database(empty_url) as database:
        with pytest.raises(SchemaBehind, match="docflow db upgrade"):
            await require_current(database)
        assert await upgrade(empty_url) is None
        revision = await current(empty_url)
        assert revision is not None
        await require_current(database)
        assert await upgrade(empty_url) == revision
        await require_current(database)


async def test_a_database_without_tables_is_empty(empty_url: str) -> None:
    async with open_database(empty_url) as database, database.reading():
        assert await current(empty_url) is None
        with pytest.raises(SchemaBehind, match="the database is empty"):
            await require_current(database)


@pytest.mark.parametrize(
    ("revision", "says"), [("0000", r"is behind \(at 0000\)"), ("9999", "newer docflow")]
)
async def test_other_revisions_are_named(
    empty_url: str, revision: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ("0000", *revisions())
    monkeypatch.setattr("adapters.database.schema.revisions", lambda: known)
    await upgrade(empty_url)
    async with open_database(empty_url) as database:
        async with database.transaction() as connection:
            await connection.execute(
                text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision}
            )
        with pytest.raises(SchemaBehind, match=says):
            await require_current(database)


def test_the_names_of_the_files_are_the_revisions_in_their_order() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))
    oldest_first = reversed([script.revision for script in scripts.walk_revisions()])
    assert revisions() == tuple(oldest_first)


async def test_upgrades_at_the_same_time_take_turns(empty_url: str) -> None:
    await asyncio.gather(*(upgrade(empty_url) for _ in range(4)))
    async with open_database(empty_url) as database:
        await require_current(database)


async def test_a_database_that_does_not_answer_is_unavailable(unused_tcp_port: int) -> None:
    with pytest.raises(Unavailable, match="the database is not available"):
        await upgrade(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/nothing")


@pytest.mark.parametrize("url", ["", "mysql://host/name", "sqlite:///docflow.db", "not a url"])
def test_other_databases_are_refused_with_a_reason(url: str) -> None:
    with pytest.raises(ValueError, match="use postgresql://"):
        open_database(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://ada:planted@host/name?foo=x", "option 'foo' is unknown; known are gsslib"),
        ("postgresql://host/name?sslmode=bogus", "sslmode must be one of disable, .* not 'bogus'"),
        ("postgresql://host/name?sslmode=require&ssl=require", "keep one"),
        ("postgresql://ada:planted@host:notaport/name", "the port is not a number$"),
        ("postgresql://host:65536/name", "the port is not a number up to 65535"),
    ],
)
def test_options_that_cannot_work_are_refused_with_a_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        open_database(url)
    assert "planted" not in str(refused.value)


def test_the_options_of_postgresql_are_accepted() -> None:
    for mode in ("sslmode", "ssl"):
        url = open_database(f"postgresql://host/name?{mode}=require&passfile=/x").engine.url
        assert url.query == {"ssl": "require", "passfile": "/x"}


async def test_a_server_that_has_no_such_database_is_named(postgres_url: str) -> None:
    url = sibling(postgres_url, "none")
    for use in (current(url), upgrade(url)):
        with pytest.raises(Denied, match=r"^DATABASE_URL: \S+ at \S* ?cannot be used: .*not exist"):
            await use
