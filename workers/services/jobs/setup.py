"""What workers of jobs need: the containers of the tiers."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from workers.services.setup.requirements import Requirement
from workers.services.setup.storage import container_of
from workers.settings.common import BlobSettings
from workers.settings.jobs import TierSettings


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
