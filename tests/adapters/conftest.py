"""Migrated, empty databases; queues of every cloud; a Temporal server."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import asyncpg
import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from activities.imports.store import SqlImportStore
from activities.imports.views import SqlImportTasks
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database, open_database
from stack.sample_club import SampleClub, sample_club
from stack.temporal import temporal_server
from tests.support.aws import Cloud, cloud, clouds
from tests.support.batches.tables import SqlBatchTables
from tests.support.fresh_database import DATABASES, fresh_url
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.sqs import Pair, pair_of_queues
from workers.shared.connect import connect


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """URL of a server's `postgres` database."""
    return DATABASES.server_url


@pytest.fixture
def database_url() -> str:
    """URL of an empty database at the newest schema."""
    return fresh_url()


@pytest.fixture
async def database(database_url: str) -> AsyncGenerator[Database]:
    async with open_database(database_url) as database:
        yield database


@pytest.fixture
def store(database: Database) -> SqlImportStore:
    return SqlImportStore(database)


@pytest.fixture
def tasks(database: Database) -> SqlImportTasks:
    return SqlImportTasks(database)


@pytest.fixture
def sheets(database: Database) -> SqlSpreadsheetStore:
    return SqlSpreadsheetStore(database)


@pytest.fixture
def views(database: Database) -> SqlSpreadsheetViews:
    return SqlSpreadsheetViews(database)


@pytest.fixture
async def club(database: Database) -> SampleClub:
    return await sample_club(database)


@pytest.fixture
def tables(database: Database) -> SqlBatchTables:
    """Empty tables of batches."""
    return SqlBatchTables(database)


@pytest.fixture
def batches(tables: SqlBatchTables) -> SqlBatchStore:
    return tables.batches


@pytest.fixture
def loads(tables: SqlBatchTables) -> SqlLoadStore:
    return tables.loads


@pytest.fixture
def stop_postgres_sessions(
    postgres_url: str,
) -> Callable[[str], Awaitable[int]]:
    """Ends every session of a database, as a restart of the server would; how many there were."""

    async def stop(url: str) -> int:
        connection = await asyncpg.connect(postgres_url)
        try:
            return await connection.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1",
                url.rsplit("/", 1)[-1],
            )
        finally:
            await connection.close()

    return stop


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=clouds())
async def some_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Cloud]:
    """Each of the clouds."""
    async with cloud(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def queues(some_cloud: Cloud) -> Pair:
    """A queue and its dead letters, of the test's own."""
    return await pair_of_queues(some_cloud.clients.sqs)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def every_cloud(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[Mapping[str, Cloud]]:
    """All of the clouds, for tests that use them side by side."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(cloud(name, tmp_path_factory.mktemp(name)))
            for name in clouds()
        }


@pytest_asyncio.fixture(loop_scope="module")
async def pairs(every_cloud: Mapping[str, Cloud]) -> Mapping[str, Pair]:
    """A queue and its dead letters on each cloud, of the test's own."""
    return {name: await pair_of_queues(each.clients.sqs) for name, each in every_cloud.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Client]:
    """Of a Temporal server of the module's own."""
    folder = tmp_path_factory.mktemp("temporal")
    async with temporal_server(folder, ui=False, in_memory=True) as server:
        yield await connect(server.address)


@pytest.fixture
def rejected() -> MemoryRejectedMessages:
    return MemoryRejectedMessages()
