"""What `docflow setup` says and makes for spatial data."""

import pytest

from activities.jobs.postgis import find_postgis, make_postgis
from adapters.database.engine import open_database
from adapters.files.datum_grids import missing_grids
from tests.support.fresh_database import administer
from workers.jobs import setup
from workers.jobs.setup import spatial_requirements
from workers.shared.services.requirements import State


@pytest.mark.postgis
async def test_postgis_and_its_schema_are_made_once(bare_postgis_url: str) -> None:
    async with open_database(bare_postgis_url) as database:
        postgis, _ = spatial_requirements(database)
        before = await postgis.found()
        assert before.finding.state is State.MISSING and "no PostGIS" in before.details
        assert before.problem is None, "all jobs do without it"
        assert (await postgis.made()).finding.state is State.MADE
        made = await find_postgis(database)
        assert made.is_ready and f"PostGIS {made.version}" in (await postgis.found()).details
        await make_postgis(database)
        assert await find_postgis(database) == made
        await administer(bare_postgis_url, "DROP SCHEMA geo")
        assert "no schema geo" in (await postgis.found()).details


@pytest.mark.postgis
async def test_a_user_without_rights_is_given_the_commands(bare_postgis_url: str) -> None:
    await administer(bare_postgis_url, "CREATE ROLE plain LOGIN")
    try:
        async with open_database(bare_postgis_url.replace("postgres@", "plain@")) as database:
            details = (await spatial_requirements(database)[0].made()).details
            assert "does not let us make PostGIS" in details
            assert "`CREATE EXTENSION postgis; CREATE SCHEMA geo`" in details
            assert (await find_postgis(database)).version is None
    finally:
        await administer(bare_postgis_url, "DROP ROLE plain")


async def test_a_server_without_postgis_needs_none(postgres_url: str) -> None:
    async with open_database(postgres_url) as database:
        found = await spatial_requirements(database)[0].made()
    assert found.finding.state is State.OK and "GeoPackages" in found.details
    assert "apt-get install postgresql-15-postgis-3" in found.details


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
