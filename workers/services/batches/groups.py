"""Messages of a batch that arrive together, and the one run that loads them."""

import asyncio
import logging
import uuid
from contextlib import suppress
from typing import Final

from temporalio.client import Client
from temporalio.common import Priority
from temporalio.service import RPCError

from contracts.batches import (
    GROUP_BYTES,
    GROUP_MESSAGES,
    LOADING_TASK_QUEUE,
    BatchKey,
    GroupOrder,
    LoadOrder,
)
from workers.services.intake import START_TIMEOUT, given_back, short
from workers.services.verdicts import Abandon, Settle
from workflows import attributes

logger = logging.getLogger(__name__)

LINGER_SECONDS: Final = 0.01
"""A group waits for so long for another message; those of one receive come at the same moment."""


class _Group:
    """Messages whose run is not started yet."""

    def __init__(self) -> None:
        self.loads: list[LoadOrder] = []
        self.full = asyncio.Event()
        self.started: asyncio.Task[Settle | Abandon]
        self._size = 0

    def add(self, load: LoadOrder, size: int) -> bool:
        """Add a message; False: there is no room for it."""
        if self.loads and self._size + size > GROUP_BYTES:
            self.full.set()
            return False
        self.loads.append(load)
        self._size += size
        if len(self.loads) == GROUP_MESSAGES:
            self.full.set()
        return True


class GroupStarts:
    """Starts the groups of one batch; any number of calls may run at once.

    Args:
        client: Of the namespace in which batches run.
        key: The batch.
    """

    def __init__(self, client: Client, key: BatchKey) -> None:
        self._client = client
        self._key = key
        self._open: _Group | None = None

    async def start(self, load: LoadOrder, size: int) -> Settle | Abandon:
        """Start a load, together with those that come at the same moment.

        A message that was abandoned may be in a group nevertheless: it is loaded once.

        Args:
            load: Of the message.
            size: Bytes of its body.
        """
        group = self._open
        if group is None or group.full.is_set() or not group.add(load, size):
            group = self._open = _Group()
            group.add(load, size)
            group.started = asyncio.create_task(self._started(group))
        return await asyncio.shield(group.started)

    async def _started(self, group: _Group) -> Settle | Abandon:
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                await group.full.wait()
        if self._open is group:
            self._open = None
        workflow_id = f"{self._key.group_prefix}{uuid.uuid4().hex}"
        try:
            await self._client.start_workflow(
                # By its name: the function that comes through here is packed without the
                # libraries that loading takes.
                "DocumentGroup",
                GroupOrder(key=self._key, loads=tuple(group.loads)),
                id=workflow_id,
                task_queue=LOADING_TASK_QUEUE,
                priority=Priority(fairness_key=self._key.fairness_key),
                search_attributes=attributes.at_start("batches", "group", str(self._key.case_id)),
                static_summary=short(f"{len(group.loads)} messages of {self._key}"),
                rpc_timeout=START_TIMEOUT,
            )
        except RPCError as error:
            logger.warning("%d messages of %s not started: %s", len(group.loads), self._key, error)
            return given_back(error)
        return Settle(workflow_id)
