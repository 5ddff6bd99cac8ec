"""Import messages on their way to runs: from a queue, or from a host that receives them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from adapters.types.store import SqlDeclaredTypes
from workers import catalogue
from workers.imports.intake import ImportIntake
from workers.imports.messages import read_message
from workers.imports.settings import BridgeSettings, QueueSettings, RunSettings
from workers.shared.bridges.consumer import BridgeTotals
from workers.shared.bridges.service_bus import ServiceBusBridge
from workers.shared.cli.context import CliContext
from workers.shared.cli.errors import Failure, attempt
from workers.shared.connect import connect, read_config
from workers.shared.register import Check, Context, DocumentRuns, load
from workers.shared.resources import RESOURCE_SETTINGS, open_resources
from workers.shared.services.accepted import noting_starts
from workers.shared.services.bodies import Verdict
from workers.shared.services.requirements import Requirement
from workers.shared.services.service_bus import (
    ServiceBusDeadLetters,
    ServiceBusSender,
    open_queue,
    open_service_bus_dead_letters,
    queue_requirement,
)
from workers.shared.settings.check import check_at_start
from workers.shared.settings.payloads import PayloadSettings


async def receive(
    context: Context, settings: BridgeSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive import messages and start their runs; the entry point of the register."""
    intake = intake_of(context, settings.queue.queue_name, settings.runs)
    bridge = ServiceBusBridge(
        settings.queue, intake.accept, ready=intake.ready, health=context.health
    )
    return await bridge.run(stop, drain=drain)


def intake_of(context: Context, queue: str, runs: RunSettings) -> ImportIntake:
    """The intake of messages over what a process has opened.

    Args:
        context: Client and common resources.
        queue: Where messages come from.
        runs: Settings of their runs.

    Raises:
        SettingsError: A setting of a pipeline that takes documents of its own types is wrong.
    """
    others: dict[str, DocumentRuns] = {}
    for pipeline in catalogue.PIPELINES:
        if pipeline.documents is not None:
            others |= load(pipeline.documents)(context)
    return ImportIntake(
        context.client,
        context.resources.rejected,
        queue=queue,
        types=SqlDeclaredTypes(context.resources.database),
        others=others,
        park_for_days=runs.park_for_days,
        prefixes=runs.blob_prefixes,
    )


class LazyHandler:
    """Opened by the first message and kept as long as the process lives.

    An opening that fails leaves nothing behind and is tried again by the next message.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Set up; settings are read when the first message comes."""
        self._environment = environment
        self._opening = asyncio.Lock()
        self._intake: ImportIntake | None = None
        self._opened = AsyncExitStack()

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """As `ImportIntake.accept`.

        Raises:
            SettingsError: A setting is missing or invalid.
            SchemaBehind: The database waits for `docflow db upgrade`.
            TemporalUnreachable: Temporal does not answer at the first message.
        """
        async with self._opening:
            if self._intake is None:
                self._intake = await self._open()
        return await self._intake.accept(raw, delivery_count, message_id)

    async def close(self) -> None:
        """Close what was opened; a later message opens it again."""
        self._intake = None
        await self._opened.aclose()

    async def _open(self) -> ImportIntake:
        groups = (QueueSettings, RunSettings, PayloadSettings, *RESOURCE_SETTINGS)
        check_at_start(self._environment, *groups, others=[read_config])
        queue = QueueSettings.read(self._environment)
        runs = RunSettings.read(self._environment)
        async with AsyncExitStack() as stack:
            resources = await stack.enter_async_context(open_resources(self._environment))
            client = noting_starts(await connect(), resources.database)
            context = Context(self._environment, client, resources)
            intake = intake_of(context, queue.queue_name, runs)
            self._opened = stack.pop_all()
        return intake


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


SENDER: Final = ServiceBusSender(
    partial(read_message, declared=None), lambda message: message.workflow_id, QueueSettings.read
)


_PEEKED: Final = 100


async def checks(context: CliContext) -> Sequence[Check]:
    """The Service Bus queue, for `docflow status`."""

    async def depth() -> str:
        async with open_queue(QueueSettings.read(context.environment)) as queue:
            depth = await queue.depth(_PEEKED)
        waiting, dead = (
            f"{number}{' or more' if number == depth.at_most else ''}"
            for number in (depth.waiting, depth.dead_letters)
        )
        return f"{waiting} waiting, {dead} in the dead letter queue"

    found = await attempt(depth())
    if isinstance(found, Failure):
        return [Check("queue", False, found.reason)]
    return [Check("queue", True, found)]


def dead_letters(
    environment: Mapping[str, str],
) -> AbstractAsyncContextManager[ServiceBusDeadLetters]:
    """The dead letters of the queue.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    return open_service_bus_dead_letters(QueueSettings.read(environment))
