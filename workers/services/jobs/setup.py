"""What jobs need: containers of the tiers, what spatial data need, the queue of its bridge."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from adapters.database import open_database
from workers.services.jobs.spatial_setup import spatial_requirements
from workers.services.service_bus import open_queue, queue_requirement
from workers.services.setup.requirements import Requirement
from workers.services.setup.storage import container_of
from workers.settings.blobs import BlobSettings
from workers.settings.database import DatabaseSettings
from workers.settings.jobs import JobQueueSettings, TierSettings


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
    settings = DatabaseSettings.read(environment)
    async with open_database(settings.url, settings.options) as database:
        yield [*containers, *spatial_requirements(database)]


@asynccontextmanager
async def queue_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """What the bridge of jobs needs.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    settings = JobQueueSettings.read(environment)
    async with open_queue(settings) as queue:
        yield [queue_requirement(queue, settings, "job queue")]
