"""The open runs in Temporal, for `OpenRuns`."""

import asyncio
from typing import Final

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from adapters.temporal.errors import RPC_TIMEOUT, temporal
from contracts.batches import BatchKey

AT_ONCE: Final = 50
"""Loads that are asked to stop side by side."""


class TemporalOpenRuns:
    """Asks Temporal.

    Args:
        client: Of the namespace in which batches run.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def is_open(self, workflow_id: str) -> bool:
        """Whether a run of that id is open, or continues as a new one."""
        handle = self._client.get_workflow_handle(workflow_id)
        with temporal():
            try:
                found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return False
                raise
        return found.close_time is None

    async def open_loads(self, key: BatchKey) -> int:
        """Loads of a batch that are open, of groups and of documents; late by a second or two."""
        with temporal():
            found = await self._client.count_workflows(_loads(key), rpc_timeout=RPC_TIMEOUT)
        return found.count

    async def cancel_loads(self, key: BatchKey) -> int:
        """Ask the open loads of a batch to stop, groups as well; how many were asked."""
        asked = 0
        with temporal():
            loads = self._client.list_workflows(_loads(key), rpc_timeout=RPC_TIMEOUT)
            page: list[WorkflowExecution] = []
            async for load in loads:
                page.append(load)
                if len(page) == AT_ONCE:
                    asked += await self._cancel(page)
                    page.clear()
            return asked + await self._cancel(page)

    async def _cancel(self, loads: list[WorkflowExecution]) -> int:
        return sum(await asyncio.gather(*(self._cancel_one(load) for load in loads)))

    async def _cancel_one(self, load: WorkflowExecution) -> bool:
        """False: it has ended meanwhile."""
        handle = self._client.get_workflow_handle(load.id, run_id=load.run_id)
        try:
            await handle.cancel(rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True


def _loads(key: BatchKey) -> str:
    """The visibility query; the prefixes are made of numbers, so there is nothing to quote.

    By the time of closing: a load that an operator has paused is open and does not count as
    `Running`.
    """
    prefixes = (key.load_prefix, key.group_prefix)
    ids = " OR ".join(f'WorkflowId STARTS_WITH "{prefix}"' for prefix in prefixes)
    return f"({ids}) AND CloseTime IS NULL"
