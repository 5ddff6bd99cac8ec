"""How runs ended, which are open, and outages, in Temporal.

The open runs in Temporal, for `TemporalOpenRuns`.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports.errors import Denied, Throttled, Unavailable
from adapters.ports.records import RunEnd
from workflows.batches.names import BatchKey
from workflows.shared.dependencies import OUTAGE, PROBLEM, SETTINGS, OutageInput

RPC_TIMEOUT: Final = timedelta(seconds=10)
_REFUSALS: Final = frozenset(
    {
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
    }
)


@contextmanager
def temporal() -> Generator[None]:
    """Translate what the block raises.

    Raises:
        Throttled: Temporal asks to slow down.
        Denied: It refuses permanently.
        Unavailable: It does not answer.
    """
    try:
        yield
    except RPCError as error:
        message = f"Temporal does not answer: {error.message}"
        if error.status is RPCStatusCode.RESOURCE_EXHAUSTED:
            raise Throttled(message) from error
        if error.status in _REFUSALS:
            raise Denied(f"Temporal refuses: {error.message}") from error
        raise Unavailable(message) from error


AT_ONCE: Final = 50
"""Loads that are asked to stop side by side."""


class TemporalOpenRuns:
    """The open runs in Temporal.

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


logger = logging.getLogger(__name__)


class TemporalOutages:
    """Starts the run of an outage.

    Args:
        client: Of the namespace whose runs wait.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def begin(self, outage: OutageInput, task_queue: str) -> None:
        """Start the run unless it is open; what fails is done by the next check."""
        try:
            await self._client.start_workflow(
                OUTAGE,
                outage,
                id=outage.workflow_id,
                task_queue=task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                static_summary=f"Outage: {outage.label}",
                # People see these without a worker.
                memo={PROBLEM: outage.problem, SETTINGS: list(outage.settings)},
                rpc_timeout=RPC_TIMEOUT,
            )
        except RPCError as error:
            logger.warning("the outage of the %s is not shown: %s", outage.label, error)


_DOCUMENT_TYPE = SearchAttributeKey.for_keyword("DocumentType")
_OPEN = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW)


class TemporalRunEnds:
    """Asks Temporal.

    Args:
        client: Of the namespace in which the runs are.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def end(self, workflow_id: str) -> RunEnd | None:
        """How the newest run of an id ended; None: it is open, or continues as a new one."""
        handle = self._client.get_workflow_handle(workflow_id)
        with temporal():
            try:
                found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return RunEnd("unknown")
                raise
        # A paused run has no close time, whatever its status is called.
        if found.close_time is None or found.status is None or found.status in _OPEN:
            return None
        kind = found.typed_search_attributes.get(_DOCUMENT_TYPE)
        return RunEnd(found.status.name.lower(), found.close_time, kind or found.workflow_type)
