"""PostgreSQL databases that every test finds as the first one did.

`fresh_url()` gives a test one with docflow's tables and nothing in them, until the test is over.
Copying a migrated database takes most of a second of a core, more than most tests; bringing one
back to what it was takes milliseconds. A test that changed more than rows, or than making further
tables, gets a new copy made. To make and drop an empty database costs as much: what a test leaves
in one is taken out, for the next test.
"""

import asyncio
from collections.abc import Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from adapters.database.schema import upgrade
from stack.postgres import postgres_server

_SCHEMAS: Final = "('public', 'app', 'geo')"
"""Whose tables are brought back; a database has some of them."""
_SNAPSHOT = f"""
CREATE SCHEMA pristine;
CREATE TABLE pristine.sequences AS
  SELECT format('%I.%I', schemaname, sequencename)::regclass AS name, start_value, last_value
  FROM pg_sequences WHERE schemaname IN {_SCHEMAS};
-- Without those of extensions, which no test changes.
CREATE TABLE pristine.tables AS
  SELECT format('%I.%I', schemaname, tablename) AS name,
    schemaname || '.' || tablename AS copy, false AS has_rows
  FROM pg_tables WHERE schemaname IN {_SCHEMAS} AND NOT EXISTS (
    SELECT FROM pg_depend
    WHERE objid = format('%I.%I', schemaname, tablename)::regclass AND deptype = 'e'
  );
DO $$
DECLARE
  known record;
  is_full boolean;
BEGIN
  FOR known IN SELECT name, copy FROM pristine.tables
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', known.name) INTO is_full;
    IF is_full THEN
      UPDATE pristine.tables SET has_rows = true WHERE name = known.name;
      EXECUTE format('CREATE TABLE pristine.%I AS TABLE %s', known.copy, known.name);
    END IF;
  END LOOP;
END $$;
CREATE FUNCTION pristine.drop_new_tables() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  made record;
BEGIN
  FOR made IN
    SELECT format('%I.%I', schemaname, tablename) AS name
    FROM pg_tables WHERE schemaname = 'geo'
    EXCEPT SELECT name FROM pristine.tables
  LOOP
    -- Those of a partition go with it.
    EXECUTE format('DROP TABLE IF EXISTS %s CASCADE', made.name);
  END LOOP;
  IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'docflow_types') THEN
    DROP SCHEMA docflow_types CASCADE;
  END IF;
END $$;
CREATE FUNCTION pristine.restore() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  known record;
BEGIN
  -- Neither foreign keys nor triggers are asked.
  SET LOCAL session_replication_role = replica;
  -- A table whose file is empty has never had a row. A new session takes longer to open a table
  -- than to ask for the size of its file.
  FOR known IN
    SELECT name, copy, has_rows FROM pristine.tables
    WHERE has_rows OR (pg_stat_file(pg_relation_filepath(name::regclass))).size > 0
  LOOP
    EXECUTE format('DELETE FROM %s', known.name);
    IF known.has_rows THEN
      EXECUTE format(
        'INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM pristine.%I',
        known.name, known.copy
      );
    END IF;
  END LOOP;
  PERFORM setval(name, coalesce(last_value, start_value), last_value IS NOT NULL)
  FROM pristine.sequences;
END $$;
"""
_STRUCTURE = f"""
SELECT md5(string_agg(part, ' ' ORDER BY part)) FROM (
  SELECT format('%s %s %s', c.relname, c.relkind, c.relpersistence) FROM pg_class c
  WHERE c.relnamespace::regnamespace::text IN {_SCHEMAS}
  UNION ALL
  SELECT format('%s %s %s %s', a.attrelid, a.attname, a.atttypid, a.attnotnull)
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace::regnamespace::text IN {_SCHEMAS} AND a.attnum > 0
  UNION ALL
  SELECT format('%s %s', tgrelid, tgname) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL
  SELECT format('%s %s', conrelid, conname) FROM pg_constraint
  UNION ALL
  SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL
  SELECT nspname FROM pg_namespace
  UNION ALL
  SELECT setconfig::text FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
  WHERE d.datname = current_database()
) AS parts (part)
"""
_CLEAR = """
DO $$
DECLARE
  made name;
BEGIN
  FOR made IN
    SELECT nspname FROM pg_namespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
  LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', made);
  END LOOP;
  CREATE SCHEMA public AUTHORIZATION pg_database_owner;
  GRANT USAGE ON SCHEMA public TO PUBLIC;
END $$
"""
_BESIDE_SCHEMAS = """
SELECT md5(string_agg(part, ' ' ORDER BY part)) FROM (
  SELECT format('%s %s', extname, extversion) FROM pg_extension
  UNION ALL SELECT evtname FROM pg_event_trigger
  UNION ALL SELECT oid::text FROM pg_largeobject_metadata
  UNION ALL SELECT defaclacl::text FROM pg_default_acl
  UNION ALL SELECT pubname FROM pg_publication
  UNION ALL SELECT srvname FROM pg_foreign_server
  UNION ALL SELECT lanname FROM pg_language
  UNION ALL SELECT format('%s %s', castsource, casttarget) FROM pg_cast
  UNION ALL SELECT setconfig::text FROM pg_db_role_setting s JOIN pg_database d
    ON d.oid = s.setdatabase WHERE d.datname = current_database()
  UNION ALL SELECT format('%s %s %s %s', datacl, datconnlimit, datallowconn, datdba)
    FROM pg_database WHERE datname = current_database()
) AS parts (part)
"""
_END_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@dataclass
class FreshDatabase:
    """One database, a copy of a migrated one."""

    server_url: str
    template: str
    name: str = "fresh"
    structure: str | None = None
    """Of the copy; None: there is none."""

    @property
    def url(self) -> str:
        """Of the database."""
        return sibling(self.server_url, self.name)

    async def prepare(self) -> None:
        """Make it what it was at first, whatever has happened since."""
        if self.structure is not None and await self._restored():
            return
        self.structure = None
        await administer(self.server_url, f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
        copy = f"CREATE DATABASE {self.name} TEMPLATE {self.template} STRATEGY file_copy"
        await administer(self.server_url, copy)
        await administer(self.url, _SNAPSHOT)
        self.structure = await asked(self.url, _STRUCTURE)

    async def _restored(self) -> bool:
        try:
            connection = await asyncpg.connect(self.url)
        except asyncpg.PostgresError:
            return False
        try:
            await connection.execute(_END_SESSIONS)
            await connection.execute("SELECT pristine.drop_new_tables()")
            if await connection.fetchval(_STRUCTURE) != self.structure:
                return False
            await connection.execute("SELECT pristine.restore()")
        finally:
            await connection.close()
        return True


async def cleared(url: str, beside: str) -> bool:
    """Take everything out of a database that was empty; whether it is what it was.

    Args:
        url: Of the database.
        beside: What it had at first that is in no schema, as `_BESIDE_SCHEMAS` finds it.
    """
    try:
        connection = await asyncpg.connect(url)
    except asyncpg.PostgresError:
        return False
    try:
        await connection.execute("SET lock_timeout = '10s'")
        await connection.execute(_END_SESSIONS)
        await connection.execute(_CLEAR)
        return await connection.fetchval(_BESIDE_SCHEMAS) == beside
    except asyncpg.PostgresError:
        return False
    finally:
        await connection.close()


def sibling(url: str, name: str) -> str:
    """URL of another database of the same server."""
    return f"{url.rsplit('/', 1)[0]}/{name}"


async def administer(url: str, command: str) -> None:
    """Execute a command in a session of its own."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(command)
    finally:
        await connection.close()


async def asked(url: str, query: str) -> Any:
    """The value that a query finds in a session of its own."""
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@dataclass
class Databases:
    """The databases of one process of the suite, on a server that starts with the first of them."""

    _open: ExitStack = field(default_factory=ExitStack)
    _server_url: str = ""
    _taken: list[FreshDatabase] = field(default_factory=list)
    _free: list[FreshDatabase] = field(default_factory=list)
    _empty: list[str] = field(default_factory=list)
    _beside: str = ""
    _made: int = 0

    @property
    def server_url(self) -> str:
        """URL of the server's `postgres` database."""
        if not self._server_url:
            server = postgres_server(settings={"max_connections": "400"})
            self._server_url = self._open.enter_context(server)
            _finish(administer(self._server_url, f"CREATE DATABASE {TEMPLATE}"))
            _finish(upgrade(sibling(self._server_url, TEMPLATE)))
        return self._server_url

    def take(self) -> str:
        """URL of a database with docflow's tables and no rows."""
        if not self._free:
            self._made += 1
            self._free.append(FreshDatabase(self.server_url, TEMPLATE, f"fresh_{self._made}"))
        database = self._free.pop()
        _finish(database.prepare())
        self._taken.append(database)
        return database.url

    def copy(self, url: str) -> str:
        """URL of a database that holds what another one does, which nobody may be using."""
        self._made += 1
        database = FreshDatabase(self.server_url, TEMPLATE, f"fresh_{self._made}")
        source = url.rsplit("/", 1)[-1]
        made = f"CREATE DATABASE {database.name} TEMPLATE {source} STRATEGY file_copy"
        _finish(administer(self.server_url, made))
        self._taken.append(database)
        return database.url

    @contextmanager
    def empty(self) -> Generator[str]:
        """URL of a database without any table, until the block ends."""
        name = self._empty.pop() if self._empty else self._made_empty()
        url = sibling(self.server_url, name)
        try:
            yield url
        finally:
            if _finish(cleared(url, self._beside)):
                self._empty.append(name)
            else:
                _finish(administer(self.server_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

    def _made_empty(self) -> str:
        self._made += 1
        name = f"empty_{self._made}"
        _finish(administer(self.server_url, f"CREATE DATABASE {name}"))
        self._beside = _finish(asked(sibling(self.server_url, name), _BESIDE_SCHEMAS))
        return name

    @contextmanager
    def given_back(self) -> Generator[None]:
        """What is taken within the block is free for others after it."""
        before = len(self._taken)
        try:
            yield
        finally:
            self._free += self._taken[before:]
            del self._taken[before:]

    def close(self) -> None:
        """Stop the server."""
        self._open.close()


TEMPLATE: Final = "migrated"
"""The migrated database that others are copies of."""
DATABASES: Final = Databases()


def fresh_url() -> str:
    """URL of a database with tables and no rows, until the test, or its module, is over."""
    return DATABASES.take()


def _finish(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it to its end, from a test with a loop or without."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
