"""What imports need on Azure before the first message: their queue."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from workers.services.service_bus import open_queue, queue_requirement
from workers.services.setup.requirements import Requirement
from workers.settings.imports import QueueSettings


@asynccontextmanager
async def queue_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """What the bridge of imports needs.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    settings = QueueSettings.read(environment)
    async with open_queue(settings) as queue:
        yield [queue_requirement(queue, settings, "import queue")]
