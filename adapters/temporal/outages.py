"""Outages as runs in Temporal, for `Outages`."""

import logging
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError

from contracts.dependencies import OUTAGE, PROBLEM, SETTINGS, OutageOrder

logger = logging.getLogger(__name__)

RPC_TIMEOUT: Final = timedelta(seconds=10)


class TemporalOutages:
    """Starts the run of an outage.

    Args:
        client: Of the namespace whose runs wait.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def begin(self, outage: OutageOrder, task_queue: str) -> None:
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
