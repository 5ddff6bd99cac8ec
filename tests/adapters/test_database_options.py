"""Connections, prepared statements and TLS of a PostgreSQL server are as the settings say."""

import asyncio
from collections.abc import Generator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest
from sqlalchemy import QueuePool, text
from sqlalchemy.exc import DBAPIError

from adapters.database.engine import Database, DatabaseOptions, open_database
from adapters.database.schema import current, upgrade
from adapters.database.urls import check_url, with_options
from adapters.ports.errors import Unavailable
from stack.postgres import postgis_programs, postgres_server
from tests.support.certificates import pem_for
from tests.support.pooler import pooled
from workers.shared.errors import SettingsError
from workers.shared.settings.common import DatabaseSettings

IN_USE = "SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
KEPT = "SELECT count(*) FROM pg_prepared_statements"
JIT = "SELECT source FROM pg_settings WHERE name = 'jit'"


@dataclass(frozen=True)
class TlsServer:
    """A server whose certificate is for 127.0.0.1, and the files that its clients have."""

    url: str
    root: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[TlsServer]:
    server, client = pem_for("127.0.0.1"), pem_for("docflow")
    folder = tmp_path_factory.mktemp("tls")
    files = {"root": server.certificate, "certificate": client.certificate, "key": client.key}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with postgres_server(
        programs=postgis_programs(),
        settings={"ssl": "on", "ssl_ca_file": "client.crt"},
        files={
            "server.crt": server.certificate,
            "server.key": server.key,
            "client.crt": client.certificate,
        },
    ) as url:
        yield TlsServer(url, *(folder / name for name in files))


async def _asked(database: Database, query: str) -> list[object]:
    async with database.reading() as connection:
        return list((await connection.execute(text(query))).one())


@pytest.mark.postgis
async def test_the_files_of_tls_are_settings(tls_server: TlsServer) -> None:
    settings = DatabaseSettings.read(
        {
            "DATABASE_URL": tls_server.url,
            "PGSSLROOTCERT": str(tls_server.root),
            "PGSSLCERT": str(tls_server.certificate),
            "PGSSLKEY": str(tls_server.key),
        }
    )
    async with open_database(settings.url, settings.options) as database:
        assert await _asked(database, IN_USE) == [True, "/CN=docflow"]


@pytest.mark.postgis
async def test_a_server_is_used_only_when_its_certificate_is_trusted(
    tls_server: TlsServer,
) -> None:
    elsewhere = tls_server.url.replace("127.0.0.1", "localhost")
    for url, root, mode in (
        (tls_server.url, tls_server.certificate, "require"),
        (tls_server.url, "system", "verify-full"),
        (elsewhere, tls_server.root, "verify-full"),
    ):
        options = {"sslmode": mode, "sslrootcert": str(root)}
        async with open_database(with_options(url, options)) as database:
            with pytest.raises(Unavailable, match="certificate verify failed") as refused:
                await database.probe()
        assert refused.value.misconfigured


@pytest.mark.postgis
async def test_the_name_of_the_server_is_checked_by_the_mode_alone(tls_server: TlsServer) -> None:
    elsewhere = tls_server.url.replace("127.0.0.1", "localhost")
    options = {"sslmode": "verify-ca", "sslrootcert": str(tls_server.root)}
    async with open_database(with_options(elsewhere, options)) as database:
        assert await _asked(database, IN_USE) == [True, None]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("sslrootcert=/none/root.crt", "sslrootcert: /none/root.crt cannot be read: No such file"),
        ("sslrootcert=%2F%00", "not the name of a file"),
        ("sslrootcert={words}", "sslrootcert: .* holds no certificate in PEM format"),
        ("sslrootcert=/a&sslrootcert=/b", "sslrootcert is given more than once"),
        ("sslrootcert=/a&sslmode=prefer", "sslrootcert needs sslmode=require, .*, not prefer"),
        ("sslrootcert=system&sslmode=require", "needs sslmode=verify-full"),
        ("sslcert=/a", "sslcert and sslkey belong together"),
        ("sslcert={words}&sslkey={words}", "not a certificate in PEM format and its key"),
        ("sslcert=/a&sslkey=/b&sslmode=verify-ca", "sslmode=verify-ca needs sslrootcert"),
    ],
)
def test_files_of_tls_that_cannot_be_used_are_named(
    options: str, reason: str, tmp_path: Path
) -> None:
    words = tmp_path / "words.pem"
    words.write_text("these are words")
    url = f"postgresql://ada:planted@host/name?{options.format(words=words)}"
    with pytest.raises(ValueError, match=reason):
        check_url(url)
    with pytest.raises(SettingsError, match=f"DATABASE_URL: .*{reason}") as refused:
        DatabaseSettings.read({"DATABASE_URL": url})
    assert "planted" not in str(refused.value)


def test_an_option_of_the_url_takes_the_place_of_a_variable(tmp_path: Path) -> None:
    (tmp_path / "root.crt").write_bytes(pem_for("host").certificate)
    named = {"PGSSLMODE": "disable", "PGSSLROOTCERT": str(tmp_path / "root.crt")}
    url = "postgresql://ada:p%40ss@host/name?sslmode=require"
    read = DatabaseSettings.read({"DATABASE_URL": url, **named}).url
    assert read == f"{url}&sslrootcert={quote(named['PGSSLROOTCERT'], safe='')}"


async def test_no_more_connections_are_opened_than_are_set(database_url: str) -> None:
    async with open_database(database_url, DatabaseOptions(connections=3)) as database:
        most, pool = 0, cast(QueuePool, database.engine.pool)

        async def use() -> None:
            nonlocal most
            async with database.reading() as connection:
                await connection.execute(text("SELECT pg_sleep(0.01)"))
                most = max(most, pool.checkedout())

        await asyncio.gather(*(use() for _ in range(9)))
    assert most == 3


@pytest.mark.parametrize(("statements", "jit"), [(500, "client"), (0, "default")])
async def test_a_pooler_finds_nothing_that_a_session_keeps(
    database_url: str, statements: int, jit: str
) -> None:
    options = DatabaseOptions(statements=statements)
    await upgrade(database_url, options)
    assert await current(database_url, options)
    async with open_database(database_url, options) as database:
        assert await _asked(database, JIT) == [jit]
        (kept,) = await _asked(database, KEPT)
    assert bool(kept) is bool(statements)


async def _counts(database: Database, name: str) -> int:
    """Rows of a table that another client writes to meanwhile, with values and in pages."""
    async with database.transaction() as connection:
        for number in range(5):
            statement = text("INSERT INTO pooled (name, number) VALUES (:name, :number)")
            await connection.execute(statement, {"name": name, "number": number})
    async with database.streaming() as connection:
        rows = await connection.stream(text("SELECT * FROM pooled WHERE name = :n"), {"n": name})
        streamed = len([row async for row in rows])
    assert streamed in (5, 10)
    async with database.reading() as connection:
        query = text("SELECT count(*) FROM pooled WHERE name = :n")
        return (await connection.execute(query, {"n": name})).scalar_one()


async def test_clients_of_a_pooler_take_turns_by_transaction(database_url: str) -> None:
    async with pooled(database_url) as (url, pooler), AsyncExitStack() as stack:
        options = DatabaseOptions(connections=2, statements=0)
        address = f"{url}?sslmode=disable"
        first, second = [
            await stack.enter_async_context(open_database(address, options)) for _ in "ab"
        ]
        async with first.transaction() as connection:
            await connection.exec_driver_sql("CREATE TABLE pooled (name text, number int)")
        asked = (_counts(each, name) for name in "xyz" for each in (first, second))
        assert set(await asyncio.gather(*asked)) <= {5, 10}
        (all_rows,) = await _asked(first, "SELECT count(*) FROM pooled")
        assert all_rows == 30
        assert pooler.turns > 12
        # PgBouncer refuses settings of a session that it does not know.
        assert not any(b"jit" in each for each in pooler.startups)


async def test_what_a_session_keeps_does_not_go_with_a_pooler(database_url: str) -> None:
    async with (
        pooled(database_url) as (url, _),
        open_database(f"{url}?sslmode=disable", DatabaseOptions(statements=500)) as database,
    ):
        with pytest.raises(DBAPIError, match=r"prepared statement .* does not exist"):
            for _ in range(2):
                await database.probe()


def test_connections_and_statements_are_settings() -> None:
    url = "postgresql://host/name"
    assert DatabaseSettings.read({"DATABASE_URL": url}).options == DatabaseOptions(20, 500)
    named = {"DOCFLOW_DATABASE_CONNECTIONS": "7", "DOCFLOW_DATABASE_STATEMENTS": "0"}
    read = DatabaseSettings.read({"DATABASE_URL": url, **named})
    assert read.options == DatabaseOptions(7, 0)
