"""Migrations bring a database to exactly what the models say, once, however many try."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from adapters.database import SchemaBehind, current, open_database, require_current, upgrade
from adapters.database.models import metadata
from adapters.ports import Unavailable


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True}
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
        assert await current(empty_url) is None
        await upgrade(empty_url)
        assert await current(empty_url) is not None
        await require_current(database)
        await upgrade(empty_url)
        await require_current(database)


@pytest.mark.parametrize(
    ("revision", "says"), [("0001", r"is behind \(at 0001\)"), ("9999", "newer docflow")]
)
async def test_other_revisions_are_named(empty_url: str, revision: str, says: str) -> None:
    await upgrade(empty_url)
    async with open_database(empty_url) as database:
        async with database.transaction() as connection:
            await connection.execute(
                text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision}
            )
        with pytest.raises(SchemaBehind, match=says):
            await require_current(database)


async def test_upgrades_at_the_same_time_take_turns(empty_url: str) -> None:
    await asyncio.gather(*(upgrade(empty_url) for _ in range(4)))
    async with open_database(empty_url) as database:
        await require_current(database)


async def test_a_database_that_does_not_answer_is_unavailable(unused_tcp_port: int) -> None:
    with pytest.raises(Unavailable, match="the database is not available"):
        await upgrade(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/nothing")


@pytest.mark.parametrize(
    "url", ["", "mysql://host/name", "sqlite://", "sqlite:///:memory:", "not a url"]
)
def test_other_databases_are_refused_with_a_reason(url: str) -> None:
    with pytest.raises(ValueError, match=r"DATABASE_URL|sqlite:///"):
        open_database(url)
