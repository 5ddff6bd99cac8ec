"""Migrations bring a database to exactly what the models say, once, however many try."""

import asyncio
from operator import itemgetter
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, text

from activities.imports.store import SqlImportStore
from adapters.database.engine import open_database
from adapters.database.models.every import metadata
from adapters.database.schema import (
    MIGRATIONS,
    SchemaBehind,
    country_rows,
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
    return list(compare_metadata(context, as_in(connection)))


def as_in(connection: Connection) -> MetaData:
    """The models as a database has them: one without schemas has all tables side by side."""
    if connection.dialect.name != "sqlite":
        return metadata
    plain = MetaData(naming_convention=metadata.naming_convention)
    for table in metadata.tables.values():
        table.to_metadata(plain, schema=None)
    return plain


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


def test_the_names_of_the_files_are_the_revisions_in_their_order() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))
    oldest_first = reversed([script.revision for script in scripts.walk_revisions()])
    assert revisions() == tuple(oldest_first)


async def test_upgrades_at_the_same_time_take_turns(empty_url: str) -> None:
    await asyncio.gather(*(upgrade(empty_url) for _ in range(4)))
    async with open_database(empty_url) as database:
        await require_current(database)


async def test_a_new_file_is_opened_by_many_at_once(tmp_path: Path) -> None:
    """About every fifth such file made SQLite refuse one of them."""

    async def write(url: str) -> None:
        async with open_database(url) as database:
            await database.probe_by_writing()

    for number in range(40):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        await asyncio.gather(*(write(url) for _ in range(4)))


async def test_a_database_that_does_not_answer_is_unavailable(unused_tcp_port: int) -> None:
    with pytest.raises(Unavailable, match="the database is not available"):
        await upgrade(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/nothing")


@pytest.mark.parametrize(
    "url", ["", "mysql://host/name", "sqlite://", "sqlite:///:memory:", "not a url"]
)
def test_other_databases_are_refused_with_a_reason(url: str) -> None:
    with pytest.raises(ValueError, match=r"DATABASE_URL|sqlite:///"):
        open_database(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite:///a%00b.db", "null character"),
        ("sqlite:///docflow.db?foo=x", "option 'foo' is unknown; SQLite takes none"),
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


async def test_a_missing_database_file_is_named_and_not_made(tmp_path: Path) -> None:
    file = tmp_path / "mistyped.db"
    async with open_database(f"sqlite:///{file}") as database:
        for reading in (current(f"sqlite:///{file}"), require_current(database)):
            with pytest.raises(SchemaBehind, match=f"DATABASE_URL: there is no file {file}"):
                await reading
    assert not file.exists()
    assert await upgrade(f"sqlite:///{file}") is None
    assert file.exists()


async def test_a_path_that_cannot_be_a_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("these are the words of a file that is not a database")
    for path, reason in (
        ("", f"{tmp_path} is a folder"),
        ("none/docflow.db", f"there is no folder {tmp_path}/none for docflow.db"),
        ("text.db/docflow.db", f"there is no folder {tmp_path}/text.db for docflow.db"),
        ("text.db", f"the file {tmp_path}/text.db cannot be used: file is not a database"),
        (f"{'n' * 300}.db", "cannot be used: unable to open database file"),
    ):
        url = f"sqlite:///{tmp_path / path}"
        with pytest.raises(Denied, match=f"^DATABASE_URL: .*{reason}"):
            await upgrade(url)
        if "unable" not in reason:
            with pytest.raises(Denied, match=f"^DATABASE_URL: .*{reason}"):
                await current(url)


async def test_a_server_that_has_no_such_database_is_named(postgres_url: str) -> None:
    url = sibling(postgres_url, "none")
    for use in (current(url), upgrade(url)):
        with pytest.raises(Denied, match=r"^DATABASE_URL: \S+ at \S* ?cannot be used: .*not exist"):
            await use


SCHEDULES = {
    "schedule_projects": ("", ""),
    "schedule_calendars": ("code", "'C'"),
    "schedule_activities": ("task_code, level_1", "'A1', 'Unit 100'"),
    "schedule_relationships": (
        "predecessor_code, successor_code, type, predecessor_project, successor_project",
        "'A1', 'A2', 'FS', '', 'U200'",
    ),
}
"""Table to further columns and their values, as releases before 0012 wrote them."""


async def test_schedules_keep_their_rows_and_get_names(
    empty_url: str,
) -> None:
    await _upgraded_to(empty_url, "0010")
    stamps = "version, source_task, source_line, created_at, updated_at"
    async with open_database(empty_url) as database, database.transaction() as connection:
        for table, (columns, values) in SCHEDULES.items():
            for project, schedule in (("P1", "U100"), ("P1", "U200"), ("P2", "U100")):
                await connection.execute(
                    text(
                        f"INSERT INTO {table} (project_id, primavera_project_id, "
                        f"{columns + ', ' if columns else ''}{stamps}) VALUES ('{project}', "
                        f"'{schedule}', {values + ', ' if values else ''}3, 'T1', 7, "
                        "'2026-01-02 03:04:05+00:00', '2026-01-02 03:04:05+00:00')"
                    )
                )
    await upgrade(empty_url)
    async with open_database(empty_url) as database:
        store = SqlImportStore(database)
        assert await store.schedule_names("P1") == {"U100": "U100", "U200": "U200"}
        assert await store.schedules_holding("P1", ["A1"]) == {"U100": 1, "U200": 1}
        async with database.reading() as connection:
            found = await connection.execute(
                text(
                    "SELECT project_id, schedule_id, level_1, version FROM schedule_activities "
                    "ORDER BY 1, 2"
                )
            )
            assert [tuple(row) for row in found] == [
                ("P1", "U100", "Unit 100", 3),
                ("P1", "U200", "Unit 100", 3),
                ("P2", "U100", "Unit 100", 3),
            ]
            names = await connection.execute(
                text("SELECT DISTINCT primavera_project_id FROM schedule_projects ORDER BY 1")
            )
            assert [name for (name,) in names] == ["U100", "U200"]


async def test_lines_of_estimates_keep_their_rows_without_a_section(empty_url: str) -> None:
    await _upgraded_to(empty_url, "0034")
    async with open_database(empty_url) as database:
        async with database.transaction() as connection:
            await connection.execute(
                text(
                    "INSERT INTO estimate_lines (project_id, service_id, item_code, quantity,"
                    " version, source_task, source_line, created_at, updated_at) VALUES"
                    " ('P1', 'S1', '1.1', '5', 3, 'T1', 7,"
                    " '2026-01-02 03:04:05+00:00', '2026-01-02 03:04:05+00:00')"
                )
            )
        await upgrade(empty_url)
        async with database.reading() as connection:
            found = await connection.execute(
                text("SELECT item_code, section, sequence, version FROM estimate_lines")
            )
            assert [tuple(row) for row in found] == [("1.1", "", 1, 3)]


async def test_an_upgraded_database_has_the_countries_of_a_new_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'docflow.db'}"
    await _upgraded_to(url, "0014")
    async with open_database(url) as database, database.transaction() as connection:
        await connection.execute(text("DELETE FROM countries WHERE id = 276"))
        await connection.execute(text("UPDATE countries SET name = 'Swaziland' WHERE id = 748"))
        await connection.execute(
            text(
                "INSERT INTO remembered_values (organisation_id, import_type, field, value, "
                "target_id, decided_at) VALUES (1, 'RESULT', 'ID_COUNTRY', 'ch', 756, "
                "'2026-01-02 03:04:05')"
            )
        )
    await upgrade(url)
    async with open_database(url) as database, database.reading() as connection:
        found = await connection.execute(text("SELECT * FROM countries ORDER BY id"))
        assert [row._asdict() for row in found] == sorted(country_rows(), key=itemgetter("id"))
        names = await connection.execute(text("SELECT target_name FROM remembered_values"))
        assert names.scalars().all() == ["Switzerland"]


async def test_what_batches_had_lost_is_taken_from_their_reasons(empty_url: str) -> None:
    await _upgraded_to(empty_url, "0032")
    lost = (
        "queue deleted by someone else, with the documents that had not been loaded: "
        "send them again"
    )
    columns = (
        "case_id, batch_id, loader_status, loader_status_updated_at, reason, skipped, "
        "redrive_pass, final_pass, dead_letters, created_at, updated_at"
    )
    async with open_database(empty_url) as database, database.transaction() as connection:
        for number, reason in enumerate((lost, "function deleted by someone else"), start=1):
            at = "'2026-01-02 03:04:05+00:00'"
            await connection.execute(
                text(
                    f"INSERT INTO batches ({columns}) VALUES (7, {number}, 'complete', {at}, "
                    f"'{reason}', false, 0, false, 0, {at}, {at})"
                )
            )
    await upgrade(empty_url)
    async with open_database(empty_url) as database, database.reading() as connection:
        found = await connection.execute(text("SELECT lost FROM batches ORDER BY batch_id"))
        assert found.scalars().all() == [lost, None]


async def _upgraded_to(url: str, revision: str) -> None:
    """Bring an empty database to an earlier revision."""

    def move(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    async with open_database(url) as database, database.transaction() as connection:
        await connection.run_sync(move)
