"""Which failures of a database a run waits for, which are tried again, and which are settings."""

import asyncpg
import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from adapters.database.engine import Database, open_database
from adapters.database.errors import translated
from adapters.database.records import SqlRejectedMessages
from adapters.ports.errors import Unavailable
from stack.children import free_port
from workflows.shared.dependencies import Dependency


async def _failure(url: str) -> Unavailable:
    async with open_database(url) as database:
        with pytest.raises(Unavailable) as raised:
            await database.probe()
    return raised.value


async def test_a_database_that_can_be_used_passes_its_probe(database: Database) -> None:
    await database.probe()


async def test_what_the_probe_writes_is_gone(database: Database) -> None:
    for _ in range(2):
        await database.probe_by_writing()
    async with database.reading() as connection:
        with pytest.raises(DBAPIError):
            await connection.exec_driver_sql("SELECT * FROM docflow_probe")


async def test_a_database_that_only_reads_is_an_outage(database_url: str) -> None:
    setting = f"ALTER DATABASE {make_url(database_url).database} SET"
    async with (
        open_database(database_url) as database,
        database.transaction() as connection,
    ):
        await connection.exec_driver_sql(f"{setting} default_transaction_read_only = on")
    async with open_database(database_url) as database:
        await database.probe()
        with pytest.raises(Unavailable, match="read-only") as failure:
            await database.probe_by_writing()
        with pytest.raises(Unavailable, match="read-only"):
            await SqlRejectedMessages(database).probe()
    assert (failure.value.dependency, failure.value.misconfigured) == (Dependency.DATABASE, False)


async def test_a_server_that_does_not_listen_is_an_outage() -> None:
    failure = await _failure(f"postgresql://docflow:x@127.0.0.1:{free_port()}/docflow")
    assert (failure.dependency, failure.misconfigured) == (Dependency.DATABASE, False)


async def test_a_host_that_does_not_exist_is_a_wrong_setting() -> None:
    failure = await _failure("postgresql://docflow:x@no-such-host.invalid/docflow")
    assert (failure.dependency, failure.misconfigured) == (Dependency.DATABASE, True)


async def test_a_database_that_does_not_exist_is_a_wrong_setting(
    database_url: str,
) -> None:
    url = make_url(database_url).set(database="no_such_database")
    failure = await _failure(url.render_as_string(hide_password=False))
    assert (failure.dependency, failure.misconfigured) == (Dependency.DATABASE, True)


@pytest.mark.parametrize(
    ("error", "dependency", "misconfigured"),
    [
        (asyncpg.InvalidPasswordError("no"), Dependency.DATABASE, True),
        (asyncpg.InvalidAuthorizationSpecificationError("no"), Dependency.DATABASE, True),
        (asyncpg.CannotConnectNowError("starting"), Dependency.DATABASE, False),
        (asyncpg.AdminShutdownError("stopping"), Dependency.DATABASE, False),
        (asyncpg.TooManyConnectionsError("full"), Dependency.DATABASE, False),
        (asyncpg.DiskFullError("full"), Dependency.DATABASE, False),
        (asyncpg.ReadOnlySQLTransactionError("standby"), Dependency.DATABASE, False),
        (asyncpg.PostgresIOError("disk"), Dependency.DATABASE, False),
        (asyncpg.InsufficientPrivilegeError("no"), Dependency.DATABASE, True),
        (asyncpg.DeadlockDetectedError("again"), None, False),
        (asyncpg.SerializationError("again"), None, False),
        (ConnectionResetError("gone"), Dependency.DATABASE, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_outages_are_distinguished_from_conflicts_and_settings(
    error: Exception, dependency: Dependency | None, misconfigured: bool
) -> None:
    with pytest.raises(Unavailable) as raised, translated():
        raise error
    assert (raised.value.dependency, raised.value.misconfigured) == (dependency, misconfigured)


def test_a_fault_of_a_statement_stays_as_it_is() -> None:
    with pytest.raises(asyncpg.PostgresSyntaxError), translated():
        raise asyncpg.PostgresSyntaxError("typo")
