"""PostGIS, the schema `geo` and pgstac are made where they are missing."""

import threading
from importlib.metadata import distribution
from pathlib import Path

import pytest

from activities.jobs.embedded_catalogue import open_catalogue
from activities.jobs.spatial import (
    PgstacMissing,
    bundled,
    is_supported,
    make_spatial,
    migration_path,
    spatial,
)
from adapters.database.engine import open_database
from adapters.ports.errors import Denied, Unavailable
from stack.children import free_port
from tests.support.fresh_database import administer, fresh_url
from tests.support.jobs.stac import EVERYWHERE, PARIS, collection, found, item, put_scenes
from tests.support.waiting import eventually
from workflows.shared.dependencies import Dependency

SCRIPTS = ["pgstac.0.9.9.sql", "pgstac.0.9.8-0.9.9.sql", "pgstac.0.9.9-0.9.10.sql"]


@pytest.mark.postgis
async def test_what_is_missing_is_made_once(bare_postgis_url: str) -> None:
    async with open_database(bare_postgis_url) as database:
        before = await spatial(database)
        assert not before.is_ready and before.available == {"postgis", "btree_gist"}
        made = await make_spatial(database)
        assert made.is_ready and made.pgstac == bundled()
        assert await make_spatial(database) == made


@pytest.mark.postgis
async def test_an_older_pgstac_is_brought_up(bare_postgis_url: str) -> None:
    folder = Path(str(distribution("pypgstac").locate_file("pypgstac/migrations")))
    await administer(bare_postgis_url, (folder / "pgstac.0.9.7.sql").read_text())
    async with open_database(bare_postgis_url) as database:
        before = await spatial(database)
        assert before.pgstac == "0.9.7" and not before.is_ready
        assert (await make_spatial(database)).pgstac == bundled()


@pytest.mark.postgis
async def test_a_user_without_rights_is_refused_and_nothing_is_made(bare_postgis_url: str) -> None:
    await administer(bare_postgis_url, "CREATE ROLE plain LOGIN")
    try:
        async with open_database(bare_postgis_url.replace("postgres@", "plain@")) as database:
            with pytest.raises(Denied, match="make the extension postgis"):
                await make_spatial(database)
            assert (await spatial(database)).extensions == {}
    finally:
        await administer(bare_postgis_url, "DROP ROLE plain")


@pytest.mark.postgis
async def test_a_database_without_pgstac_says_what_to_do(bare_postgis_url: str) -> None:
    async with open_database(bare_postgis_url) as database:
        with pytest.raises(Denied, match="run `docflow setup`"):
            await open_catalogue(database).collections()


@pytest.mark.postgis
async def test_a_user_with_the_role_of_ingestion_alone_writes_and_searches(
    postgis_url: str,
) -> None:
    await administer(postgis_url, "CREATE ROLE loader LOGIN IN ROLE pgstac_ingest")
    try:
        async with open_database(postgis_url.replace("postgres@", "loader@")) as database:
            catalogue = await put_scenes(open_catalogue(database))
            assert await found(catalogue, bbox=PARIS) == ["paris"]
            assert await catalogue.delete_item("scenes", "paris")
            await catalogue.put_items("scenes", [item("late", days=900)])
            assert (await found(catalogue))[0] == "late"
    finally:
        await administer(postgis_url, "DROP OWNED BY loader; DROP ROLE loader")


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
async def test_a_store_that_does_not_answer_is_an_outage(kind: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "docflow.db"
    nobody = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    url = nobody if kind == "postgresql" else fresh_url()
    before = set(threading.enumerate())

    async def has_ended() -> bool:
        """Threads of connections that failed end a moment later, and need the loop for it."""
        begun = set(threading.enumerate()) - before
        return not any("_connection_worker" in each.name for each in begun)

    async with open_database(url) as database:
        catalogue = open_catalogue(database)
        for asked in (
            catalogue.collections(),
            catalogue.item("scenes", "a"),
            catalogue.search(EVERYWHERE),
            catalogue.put_collection(collection()),
            catalogue.put_items("scenes", [item()]),
            catalogue.delete_item("scenes", "a"),
        ):
            with pytest.raises(Unavailable) as refused:
                await asked
            assert refused.value.dependency is Dependency.DATABASE
    await eventually(has_ended)


def test_migrations_are_chained_to_the_release_that_is_wanted() -> None:
    assert migration_path(SCRIPTS, None, "0.9.9") == ["pgstac.0.9.9.sql"]
    assert migration_path(SCRIPTS, "0.9.8", "0.9.10") == SCRIPTS[1:]
    with pytest.raises(PgstacMissing, match=r"from pgstac 0\.8\.1 to 0\.9\.10"):
        migration_path(SCRIPTS, "0.8.1", "0.9.10")


def test_releases_are_compared_as_numbers() -> None:
    assert is_supported("0.9.10") and is_supported("0.10.0") and not is_supported("0.9.7")
