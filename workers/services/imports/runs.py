"""Import runs in Temporal, as commands see and answer them."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from contracts.base import Contract
from contracts.imports import (
    TASK_QUEUE,
    Answer,
    ImportResult,
    ImportState,
    ImportStatus,
    Retry,
)
from workers.cli.errors import CommandError
from workers.cli.imports.ports import ParkedRun, PipelineView, RunView
from workers.connect import connect
from workers.pipelines.base import Pipeline
from workflows import attributes

T = TypeVar("T")
SECONDS_TO_ANSWER = 10.0
"""How long a worker may take to answer a query or an update."""


class TemporalRuns:
    """Import runs of one namespace."""

    def __init__(
        self,
        client: Client,
        environment: Mapping[str, str],
        *,
        seconds_to_answer: float = SECONDS_TO_ANSWER,
    ) -> None:
        self._client = client
        self._seconds_to_answer = seconds_to_answer
        self._ui = environment.get("TEMPORAL_UI_ADDRESS", "").rstrip("/")

    @property
    def place(self) -> str:
        """Where we look, for people."""
        return f"{self._client.service_client.config.target_host}, {self._client.namespace}"

    def link(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """The run's page in the Temporal UI; None when TEMPORAL_UI_ADDRESS is not set."""
        if not self._ui:
            return None
        parts = [quote(part, safe="") for part in (workflow_id, run_id) if part]
        return f"{self._ui}/namespaces/{self._client.namespace}/workflows/{'/'.join(parts)}"

    async def look(self, workflow_id: str) -> RunView | None:
        """What Temporal knows of a run without asking a worker; None: there is none."""
        try:
            found = await self._client.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise _lost(error) from error
        return self._view(found)

    def _view(self, found: WorkflowExecutionDescription) -> RunView:
        status = found.status or WorkflowExecutionStatus.RUNNING
        return RunView(
            workflow_id=found.id,
            run_id=found.run_id,
            status=status.name.lower(),
            closed=status is not WorkflowExecutionStatus.RUNNING,
            parked=found.typed_search_attributes.get(attributes.STATE) == ImportState.PARKED,
            link=self.link(found.id, found.run_id),
        )

    async def status(self, workflow_id: str) -> ImportStatus | None:
        """Where a run stands, from its worker; None when there is no answer."""
        try:
            return await self._client.get_workflow_handle(workflow_id).query(
                "status",
                result_type=ImportStatus,
                rpc_timeout=timedelta(seconds=self._seconds_to_answer),
            )
        except (RPCError, WorkflowQueryFailedError):
            return None

    async def result(self, workflow_id: str) -> ImportResult:
        """The result of a closed run, failed ones included.

        Raises:
            CommandError: It was terminated, cancelled in Temporal or timed out.
        """
        handle = self._client.get_workflow_handle(workflow_id, result_type=ImportResult)
        try:
            return await handle.result()
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.details:
                return ImportResult.model_validate(cause.details[0])
            raise CommandError(
                f"the run of {workflow_id} ended without a result: {cause}; "
                f"`docflow show {workflow_id}` tells what was written"
            ) from error
        except RPCError as error:
            raise _lost(error) from error

    async def answer(self, workflow_id: str, name: str, answer: Retry | Answer) -> ImportStatus:
        """Send an update (`retry`, `skip`, `fail`, `cancel`) and wait until it is taken.

        Raises:
            CommandError: There is no such open run, it refused, or no worker answered.
        """
        return await send_update(
            self._client.get_workflow_handle(workflow_id),
            name,
            answer,
            result_type=ImportStatus,
            seconds=self._seconds_to_answer,
            worker="docflow worker imports",
            tells=f"docflow show {workflow_id}",
        )

    async def workers(self) -> int:
        """How many workers poll the task queue of imports, or did in the last minutes."""
        return await self._pollers(TASK_QUEUE)

    async def pipeline(self, pipeline: Pipeline) -> PipelineView:
        """Workers of a pipeline, and its runs by state."""
        running = f"Pipeline = '{pipeline.name}' AND ExecutionStatus = 'Running'"
        counted = [(kind.workflow, str(state)) for kind in pipeline.runs for state in kind.states]
        workers, open, waiting, numbers = await asyncio.gather(
            self._pollers(pipeline.task_queue),
            self._count(running),
            self._count(f"{running} AND NeedsAttention = true"),
            asyncio.gather(
                *(
                    self._count(
                        f"Pipeline = '{pipeline.name}' AND WorkflowType = '{workflow}' "
                        f"AND State = '{state}'"
                    )
                    for workflow, state in counted
                )
            ),
        )
        states = [state for _, state in counted]
        return PipelineView(workers, open, waiting, dict(zip(states, numbers, strict=True)))

    async def parked(self, pipeline: Pipeline, limit: int) -> Sequence[ParkedRun]:
        """Open runs of a pipeline that are parked, the longest wait first."""
        query = f"Pipeline = '{pipeline.name}' AND ExecutionStatus = 'Running' AND State = 'parked'"
        try:
            found = [
                self._parked(pipeline, run)
                async for run in self._client.list_workflows(query, limit=limit)
            ]
        except RPCError as error:
            raise _lost(error) from error
        return sorted(found, key=lambda run: run.since)

    def _parked(self, pipeline: Pipeline, run: WorkflowExecution) -> ParkedRun:
        found = run.typed_search_attributes
        return ParkedRun(
            pipeline=pipeline.name,
            id=run.id,
            type=found.get(attributes.DOCUMENT_TYPE) or run.workflow_type,
            since=found.get(attributes.WAITING_SINCE) or run.start_time,
        )

    async def _pollers(self, task_queue: str) -> int:
        """How many workers poll a task queue, or did in the last minutes."""
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        try:
            found = await self._client.workflow_service.describe_task_queue(request)
        except RPCError as error:
            raise _lost(error) from error
        return len({poller.identity for poller in found.pollers})

    async def _count(self, query: str) -> int:
        try:
            return (await self._client.count_workflows(query)).count
        except RPCError as error:
            raise _lost(error) from error


async def send_update(
    handle: WorkflowHandle[Any, Any],
    name: str,
    answer: Contract,
    *,
    result_type: type[T],
    seconds: float,
    worker: str,
    tells: str,
) -> T:
    """Send an update to a run and wait until it is taken.

    Args:
        handle: The run.
        name: The update.
        answer: What it carries.
        result_type: What it answers.
        seconds: How long a worker may take.
        worker: The command that starts one.
        tells: The command that tells where the run stands.

    Raises:
        CommandError: There is no such open run, it refused, or no worker answered.
    """
    try:
        async with asyncio.timeout(seconds):
            return await handle.execute_update(name, answer, result_type=result_type)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        why = cause.message if isinstance(cause, ApplicationError) else str(cause)
        raise CommandError(f"{name} was refused: {why}") from error
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        raise CommandError(
            f"no worker answered within {seconds:g} s, so it is not known whether {name} was "
            f"taken; is `{worker}` running? `{tells}` tells where it stands"
        ) from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise CommandError(
                f"there is no open run {handle.id}: it is over or was never started; "
                f"`{tells}` tells"
            ) from error
        raise _lost(error) from error


def _lost(error: RPCError) -> CommandError:
    return CommandError(f"Temporal does not answer: {error.message}; is it running?")


async def open_runs(environment: Mapping[str, str]) -> TemporalRuns:
    """Connect.

    Raises:
        TemporalUnreachable: Nobody answers.
    """
    return TemporalRuns(await connect(), environment)
