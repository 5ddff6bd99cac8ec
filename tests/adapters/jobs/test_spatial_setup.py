"""What `docflow setup` says and makes for spatial data."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from adapters.database.engine import open_database
from adapters.files.datum_grids import missing_grids
from tests.support.fresh_database import administer, fresh_url
from workers.jobs import setup
from workers.jobs.setup import spatial_requirements, worker_requirements
from workers.shared.services.requirements import Requirement, State


async def states(requirements: Mapping[str, Requirement], *, made: bool) -> dict[str, State]:
    """What is found by name, after making what is missing where that is asked."""
    asked = {name: each.made if made else each.found for name, each in requirements.items()}
    return {name: (await ask()).finding.state for name, ask in asked.items()}


@pytest.mark.postgis
async def test_postgis_schemas_and_catalogue_are_made(bare_postgis_url: str) -> None:
    async with open_database(bare_postgis_url) as database:
        named = {each.name: each for each in spatial_requirements(database)}
        named.pop("datum grids")
        assert set(await states(named, made=False)) == {"PostGIS", "schema geo", "catalogue"}
        assert set((await states(named, made=False)).values()) == {State.MISSING}
        found = await named["PostGIS"].found()
        assert "no extension postgis, btree_gist" in found.details
        assert found.problem is None, "jobs without spatial data do without it"
        assert (await states(named, made=True))["PostGIS"] is State.MADE
        assert set((await states(named, made=False)).values()) == {State.OK}
        assert "pgstac" in (await named["catalogue"].found()).details


@pytest.mark.postgis
async def test_an_earlier_catalogue_learns_which_properties_are_times(postgis_url: str) -> None:
    await administer(postgis_url, "DELETE FROM pgstac.queryables WHERE name = 'updated'")
    async with open_database(postgis_url) as database:
        catalogue = {each.name: each for each in spatial_requirements(database)}["catalogue"]
        found = await catalogue.found()
        assert found.finding.state is State.MISSING and "are times" in found.details
        assert (await catalogue.made()).finding.state is State.MADE
        assert (await catalogue.found()).finding.state is State.OK


@pytest.mark.postgis
async def test_a_user_without_rights_is_given_the_commands(bare_postgis_url: str) -> None:
    await administer(bare_postgis_url, "CREATE ROLE plain LOGIN")
    try:
        async with open_database(bare_postgis_url.replace("postgres@", "plain@")) as database:
            postgis = spatial_requirements(database)[0]
            details = (await postgis.made()).details
            assert "does not let us make the extension postgis" in details
            assert "`CREATE EXTENSION postgis; CREATE EXTENSION btree_gist`" in details
    finally:
        await administer(bare_postgis_url, "DROP ROLE plain")


async def test_what_a_server_without_postgis_needs_is_named(postgres_url: str) -> None:
    async with open_database(postgres_url) as database:
        found = await spatial_requirements(database)[0].made()
    assert found.finding.state is State.DIFFERS
    assert "apt-get install postgresql-15-postgis-3" in found.details


async def test_the_embedded_catalogue_is_made(tmp_path: Path) -> None:
    environment = {
        "DATABASE_URL": fresh_url(),
        "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
    }
    async with worker_requirements(environment) as requirements:
        named = {each.name: each for each in requirements}
        catalogue = named["catalogue"]
        assert (await catalogue.found()).finding.state is State.MISSING
        assert (await catalogue.made()).finding.state is State.MADE
        assert (await catalogue.found()).finding.state is State.OK


async def test_grids_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wheels bring none, so that one that is there has to be pretended."""
    assert "uk_os_OSTN15_NTv2_OSGBtoETRS.tif" in missing_grids()["OSGB36"]
    assert missing_grids({"EPSG:4258": "ETRS89"}) == {}
    requirement = setup._grids()
    found = await requirement.found()
    assert found.finding.state is State.MISSING and found.problem is None
    assert "OSGB36 needs uk_os_OSTN15_NTv2_OSGBtoETRS.tif" in found.details
    assert "NAD27 needs" in found.details and "more" in found.details
    assert "projsync --file NAME" in found.details
    monkeypatch.setattr(setup, "missing_grids", dict)
    assert (await requirement.found()).is_there
