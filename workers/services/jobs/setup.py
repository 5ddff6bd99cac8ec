"""What jobs need: the containers of the tiers, and the queue of its bridge."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from workers.services.service_bus import open_queue, queue_requirement
from workers.services.setup.requirements import Requirement
from workers.services.setup.storage import container_of
from workers.settings.common import BlobSettings
from workers.settings.jobs import JobQueueSettings, TierSettings


@asynccontextmanager
async def worker_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """The containers of bronze, silver and gold.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    tiers = TierSettings.read(environment).of(BlobSettings.read(environment))
    names = ("bronze", "silver", "gold")
    yield [container_of(tier, name) for tier, name in zip(tiers, names, strict=True)]


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
