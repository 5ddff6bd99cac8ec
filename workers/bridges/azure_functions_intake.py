"""The import intake for hosts that own the process and call us message by message."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from workers.connect import connect, read_config
from workers.resources.common import RESOURCE_SETTINGS, open_resources
from workers.services.imports.intake import ImportIntake
from workers.services.verdicts import Verdict
from workers.settings.check import check_at_start
from workers.settings.imports import QueueSettings, RunSettings


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
        groups = (QueueSettings, RunSettings, *RESOURCE_SETTINGS)
        check_at_start(self._environment, *groups, others=[read_config])
        queue = QueueSettings.read(self._environment)
        runs = RunSettings.read(self._environment)
        async with AsyncExitStack() as stack:
            resources = await stack.enter_async_context(open_resources(self._environment))
            intake = ImportIntake(
                await connect(),
                resources.rejected,
                queue=queue.queue_name,
                park_for_days=runs.park_for_days,
                prefixes=runs.blob_prefixes,
            )
            self._opened = stack.pop_all()
        return intake
