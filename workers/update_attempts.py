"""Updates that meet an event: Temporal gives them back, and they are sent again."""

import asyncio
import dataclasses
import uuid
from typing import Any, Final

from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    StartWorkflowUpdateInput,
    WorkflowUpdateHandle,
)
from temporalio.service import RPCError, RPCStatusCode

ATTEMPTS: Final = 10
SECONDS_BETWEEN: Final = 0.2


class UpdateAttempts(Interceptor):
    """Sends an update again that was given back before the run accepted it.

    An update that ends a run meets, now and then, the end of another step of that run: Temporal
    takes the answer of the workflow task back and the update with it, with FAILED_PRECONDITION
    and not with an error that the SDK retries. Without this its sender would read that it failed.
    """

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Send updates of a client so."""
        return _Client(next)


class _Client(OutboundInterceptor):
    async def start_workflow_update(
        self, input: StartWorkflowUpdateInput
    ) -> WorkflowUpdateHandle[Any]:
        # The same id at every attempt: an update that got through is not applied twice.
        input = dataclasses.replace(input, update_id=input.update_id or str(uuid.uuid4()))
        for _ in range(ATTEMPTS - 1):
            try:
                return await super().start_workflow_update(input)
            except RPCError as error:
                if error.status is not RPCStatusCode.FAILED_PRECONDITION:
                    raise
            await asyncio.sleep(SECONDS_BETWEEN)
        return await super().start_workflow_update(input)
