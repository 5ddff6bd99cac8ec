"""What workers of jobs need: the containers of the tiers, and what spatial data need."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from adapters.database import open_database
from workers.services.jobs.spatial_setup import spatial_requirements
from workers.services.setup.requirements import Requirement
from workers.services.setup.storage import container_of
from workers.settings.common import BlobSettings, DatabaseSettings
from workers.settings.jobs import TierSettings


@asynccontextmanager
async def worker_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """The containers of bronze, silver and gold, PostGIS, the catalogue and grids of PROJ.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    tiers = TierSettings.read(environment).of(BlobSettings.read(environment))
    names = ("bronze", "silver", "gold")
    containers = [container_of(tier, name) for tier, name in zip(tiers, names, strict=True)]
    async with open_database(DatabaseSettings.read(environment).url) as database:
        yield [*containers, *spatial_requirements(database)]
