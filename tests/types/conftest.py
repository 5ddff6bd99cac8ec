"""A database in which types of other trades are declared, and imports into it."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import inspect, select, text

from activities.imports.lifecycle import ImportLifecycle, SmallTables
from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database, open_database
from adapters.database.foreign import ForeignDatabases
from adapters.database.models.base import DOMAIN
from adapters.signed_webhook import SignedWebhook
from adapters.types.files import own_types, read_type, types_in
from adapters.types.store import SqlDeclaredTypes
from adapters.types.tables import SCHEMA, register_table
from adapters.types.targets import TargetTables
from tests.support.fresh_database import DATABASES, fresh_url
from tests.support.imports.activities import ActivityPorts, environment, message_of
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.memory.runs import MemoryRuns
from tests.support.spreadsheets.activities import SpreadsheetSetup
from workflows.imports.runs import Counts, HandlerInput, HandlerOutcome, ImportInput
from workflows.shared.declared_types import DeclaredType

FILES = Path(__file__).parent / "files"


@dataclass
class Installation:
    """Imports of declared types by their steps, over a real database."""

    database: Database
    types: SqlDeclaredTypes
    store: SqlImportStore
    ports: ActivityPorts
    receivers: Mapping[str, SignedWebhook] | None = None

    async def declare(self, *names: str) -> None:
        every = (each.declared for each in types_in(FILES))
        await self.types.apply(*(each for each in every if each.name in names))

    async def imported(
        self, kind: str, content: bytes, *, name: str = "in/file", **fields: Any
    ) -> HandlerOutcome:
        """One import, as its run does it."""
        await self.ports.put(name, content)
        given = message_of(kind, blob_name=name, **fields)
        ports, store = self.ports, self.store
        lifecycle = ImportLifecycle(
            *(store, ports.blobs, MemoryRuns(), MemoryRejectedMessages()),
            tables=SmallTables(store, ports.blobs, ports.documents, ports.scratch),
        )
        order = ImportInput(message=given)
        preparation = await environment(is_local=True).run(lifecycle.prepare, order)
        if preparation.outcome is not None:
            return preparation.outcome
        assert preparation.plan is not None, preparation.skip
        loads = RowImports(
            *(store, ports.blobs, ports.documents, ports.reports, ports.scratch),
            receivers=self.receivers,
        )
        work = HandlerInput(message=given, plan=preparation.plan)
        return await environment().run(loads.load_rows, work)

    async def rows(self, declared: DeclaredType, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of a type by natural key."""
        is_own = declared.name in own_types()
        table = DOMAIN[declared.table_name if is_own else register_table(declared)]
        query = select(*(table.c[name] for name in columns)).order_by(*table.primary_key.columns)
        async with self.database.reading() as connection:
            return [tuple(row) for row in await connection.execute(query)]

    async def database_tables(self, *names: str) -> set[str]:
        """Which of these tables there are."""
        async with self.database.reading() as connection:
            found = await connection.run_sync(lambda c: inspect(c).get_table_names(schema=SCHEMA))
        return {*found} & {*names}

    async def run_sql(self, sql: str) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(text(sql))


@pytest.fixture(scope="session")
def trades() -> dict[str, DeclaredType]:
    """Types of other trades, by name."""
    return {each.declared.name: each.declared for each in types_in(FILES)}


@pytest_asyncio.fixture
async def installation(tmp_path: Path) -> AsyncGenerator[Installation]:
    async with open_database(fresh_url()) as database:
        store, types = SqlImportStore(database), SqlDeclaredTypes(database)
        yield Installation(database, types, store, ActivityPorts(tmp_path))


@pytest.fixture
def sheets(installation: Installation, tmp_path: Any) -> SpreadsheetSetup:
    """Uploads by their steps, over the database of the declared types."""
    database = installation.database
    store, types = SqlSpreadsheetStore(database), SheetTypes(database)
    return SpreadsheetSetup(tmp_path, database, store, types=types)


TOOLS = """
name: tools
title: Tools
key: [tool_no]
target:
  database: erp
  table: stock.Tools
  columns: {project_id: "-", tool_no: article_no, state: "State"}
fields:
  tool_no: {kind: code, required: true}
  name: {required: true}
  price: {kind: money}
  amount: {kind: decimal}
  bought: {kind: date}
  state: {kind: choice, choices: [new, used, lost]}
"""
TABLE = """
CREATE SCHEMA stock;
CREATE TYPE stock.state AS ENUM ('new', 'used');
CREATE TABLE stock."Tools" (
  id bigint GENERATED ALWAYS AS IDENTITY,
  article_no varchar(8) PRIMARY KEY,
  name text NOT NULL UNIQUE,
  price numeric(10,2) CHECK (price >= 0),
  amount integer DEFAULT 1,
  bought date,
  "State" stock.state,
  label text GENERATED ALWAYS AS (article_no || ' ' || name) STORED
);
CREATE FUNCTION stock.guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.name = 'Bomb' THEN RAISE EXCEPTION 'no bombs here'; END IF;
  IF NEW.name = 'Ghost' THEN RETURN NULL; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON stock."Tools"
  FOR EACH ROW EXECUTE FUNCTION stock.guard();
"""


@dataclass
class Erp:
    """An installation beside the database of a team."""

    installation: Installation
    url: str
    databases: ForeignDatabases
    targets: TargetTables

    async def sql(self, sql: str) -> list[tuple[Any, ...]]:
        connection = await cast("Any", asyncpg).connect(self.url)
        try:
            if not sql.startswith("SELECT"):
                await connection.execute(sql)
                return []
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    async def imported(self, content: bytes, task: str = "T1", **fields: Any) -> Counts:
        done = await self.installation.imported("tools", content, task_id=task, **fields)
        return done.counts

    async def tools(self) -> list[tuple[Any, ...]]:
        return await self.sql('SELECT article_no, name, price FROM stock."Tools" ORDER BY 1')


@pytest_asyncio.fixture
async def erp(tmp_path: Path) -> AsyncGenerator[Erp]:
    with DATABASES.empty() as url:
        async with (
            open_database(fresh_url()) as database,
            ForeignDatabases(database, {"erp": url}) as databases,
        ):
            targets = TargetTables(databases)
            store = SqlImportStore(database, targets=targets)
            types = SqlDeclaredTypes(database, targets)
            own = Installation(database, types, store, ActivityPorts(tmp_path))
            made = Erp(own, url, databases, targets)
            await made.sql(TABLE)
            yield made


def tools(text: str = TOOLS) -> DeclaredType:
    return read_type(text, "tools.yaml")
