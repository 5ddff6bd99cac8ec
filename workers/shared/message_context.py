"""The id of the message that a run comes from, in every line that is logged about the run.

Temporal carries it: the client that starts a run, or sends it an update, puts the id into a
header, and the run passes it to its activities, its children and its next run.
"""

from typing import Any, Final, NoReturn, Protocol

import temporalio.client
import temporalio.worker
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import StartWorkflowInput, StartWorkflowUpdateWithStartInput
from temporalio.converter import PayloadConverter
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    HandleUpdateInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInterceptorClassInput,
)

from workers.shared import logs

MESSAGE_ID: Final = "message_id"
"""Fact of a line, as the consumer binds it."""
HEADER: Final = "docflow-message-id"
LONGEST: Final = 200
"""Characters of an id that a header carries; senders may write as many as they like."""


class _Carrier(Protocol):
    headers: Any


class MessageContext(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Carries the id of a message from client to run, and from run to activity."""

    def intercept_client(
        self, next: temporalio.client.OutboundInterceptor
    ) -> temporalio.client.OutboundInterceptor:
        """Add the id to what a client starts."""
        return _Client(next)

    def intercept_activity(
        self, next: temporalio.worker.ActivityInboundInterceptor
    ) -> temporalio.worker.ActivityInboundInterceptor:
        """Bind the id while an activity runs."""
        return _Activity(next)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[temporalio.worker.WorkflowInboundInterceptor] | None:
        """Bind the id while a run is worked on, and pass it on."""
        return _Run


class _Client(temporalio.client.OutboundInterceptor):
    async def start_workflow(
        self, input: StartWorkflowInput
    ) -> temporalio.client.WorkflowHandle[Any, Any]:
        _carry(input)
        return await super().start_workflow(input)

    async def start_update_with_start_workflow(
        self, input: StartWorkflowUpdateWithStartInput
    ) -> temporalio.client.WorkflowUpdateHandle[Any]:
        # The run serves many messages; the update is about this one.
        _carry(input.update_workflow_input)
        return await super().start_update_with_start_workflow(input)


class _Activity(temporalio.worker.ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        # The SDK logs a failure after this, in the same task.
        logs.bind(**{MESSAGE_ID: _carried(input)})
        return await super().execute_activity(input)


class _Run(temporalio.worker.WorkflowInboundInterceptor):
    def init(self, outbound: temporalio.worker.WorkflowOutboundInterceptor) -> None:
        super().init(_Calls(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        logs.bind(**{MESSAGE_ID: _carried(input)})
        return await super().execute_workflow(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        logs.bind(**{MESSAGE_ID: _carried(input)})
        return await super().handle_update_handler(input)


class _Calls(temporalio.worker.WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        _carry(input)
        return super().start_activity(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        _carry(input)
        return super().start_local_activity(input)

    async def start_child_workflow(
        self, input: StartChildWorkflowInput
    ) -> workflow.ChildWorkflowHandle[Any, Any]:
        _carry(input)
        return await super().start_child_workflow(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        _carry(input)
        super().continue_as_new(input)


def _carry(call: _Carrier) -> None:
    """Put the id of the message that is bound now into the headers of a call."""
    message_id = logs.current().get(MESSAGE_ID)
    if message_id is not None:
        [payload] = PayloadConverter.default.to_payloads([message_id[:LONGEST]])
        call.headers = {**call.headers, HEADER: payload}


def _carried(call: _Carrier) -> str | None:
    payload: Payload | None = call.headers.get(HEADER)
    if payload is None:
        return None
    found = PayloadConverter.default.from_payload(payload)
    return found if isinstance(found, str) else None
