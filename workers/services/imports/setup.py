"""What imports need on Azure before the first message: their queue."""

import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from workers.services.imports.queue import ServiceBusQueue, open_queue
from workers.services.setup.requirements import Finding, Requirement, State
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
        yield [_queue(queue, settings.queue_name)]


def _queue(queue: ServiceBusQueue, name: str) -> Requirement:
    """Checked by opening it: the key that receives has no right to make a queue."""

    async def check() -> Finding:
        if await queue.exists():
            return Finding(State.OK, name)
        return Finding(State.MISSING, f"there is no queue {name!r} in {queue.namespace}")

    namespace = queue.namespace.partition(".")[0]
    command = (
        "az servicebus queue create --resource-group GROUP "
        f"--namespace-name {shlex.quote(namespace)} --name {shlex.quote(name)} "
        "--lock-duration PT5M --max-delivery-count 10"
    )
    return Requirement(
        "import queue",
        check,
        consequence="no message is received",
        cure=f"correct AZURE_SERVICE_BUS_QUEUE_NAME, or run `{command}`",
    )
