"""A PostgreSQL database that every test finds as the first one did.

Copying a migrated database takes most of a second of a core, more than most tests; bringing one
back to what it was takes milliseconds. A test that changed more than rows, or than making further
tables, gets a new copy made.
"""

from dataclasses import dataclass
from typing import Final

import asyncpg

_SCHEMAS: Final = "('public', 'app', 'geo')"
"""Whose tables are brought back; a database has some of them."""
_SNAPSHOT = f"""
CREATE SCHEMA pristine;
CREATE TABLE pristine.sequences AS
  SELECT format('%I.%I', schemaname, sequencename)::regclass AS name, start_value, last_value
  FROM pg_sequences WHERE schemaname IN {_SCHEMAS};
-- Without those of extensions, which no test changes.
CREATE TABLE pristine.tables AS
  SELECT format('%I.%I', schemaname, tablename) AS name, schemaname || '.' || tablename AS copy
  FROM pg_tables WHERE schemaname IN {_SCHEMAS} AND NOT EXISTS (
    SELECT FROM pg_depend
    WHERE objid = format('%I.%I', schemaname, tablename)::regclass AND deptype = 'e'
  );
DO $$
DECLARE
  known record;
  has_rows boolean;
BEGIN
  FOR known IN SELECT name, copy FROM pristine.tables
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', known.name) INTO has_rows;
    IF has_rows THEN
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
END $$;
CREATE FUNCTION pristine.restore() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  known record;
  has_rows boolean;
BEGIN
  -- Neither foreign keys nor triggers are asked.
  SET LOCAL session_replication_role = replica;
  FOR known IN SELECT name, copy FROM pristine.tables
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', known.name) INTO has_rows;
    IF has_rows THEN
      EXECUTE format('DELETE FROM %s', known.name);
    END IF;
    IF to_regclass(format('pristine.%I', known.copy)) IS NOT NULL THEN
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
        connection = await asyncpg.connect(self.url)
        try:
            self.structure = await connection.fetchval(_STRUCTURE)
        finally:
            await connection.close()

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
