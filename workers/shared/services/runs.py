"""Runs of every pipeline in Temporal: describe, query, answer, count; one translation of errors."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from types import MappingProxyType
from typing import Final, TypeVar
from urllib.parse import quote

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from workers import catalogue
from workers.shared.connect import connect, reason_of
from workers.shared.register import Pipeline, PipelineView, recognise
from workers.shared.services import search_attributes
from workers.shared.services.errors import (
    NotFound,
    Refused,
    ServiceError,
    TemporalRefused,
    TemporalUnavailable,
)
from workflows.shared import attributes
from workflows.shared.contracts import Contract
from workflows.shared.dependencies import WAITING
from workflows.shared.records import TERMINATED

_S = WorkflowExecutionStatus

_STANDS: Final = MappingProxyType(
    {
        _S.RUNNING: "has not ended",
        _S.CONTINUED_AS_NEW: "has not ended",
        _S.COMPLETED: "has ended",
        _S.FAILED: "has failed",
        _S.CANCELED: "was cancelled",
        _S.TERMINATED: "was terminated",
        _S.TIMED_OUT: "has run out of time",
    }
)


def standing(status: WorkflowExecutionStatus) -> str:
    """What follows "the run": `has ended`, `was terminated`."""
    return _STANDS.get(status, "has not ended")


Started = TypeVar("Started", bound=Contract)


async def started_with(client: Client, workflow_id: str, order: type[Started]) -> Started:
    """What the newest run of a workflow id was started with.

    Raises:
        RPCError: Temporal knows of no such run, or does not answer.
    """
    handle = client.get_workflow_handle(workflow_id)
    async for event in handle.fetch_history_events(page_size=1):
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        [found] = await client.data_converter.decode(payloads, [order])
        return found
    raise AssertionError("a history without its first event")


_WAITS: Final = "NeedsAttention = true"
_OPEN: Final = "ExecutionStatus = 'Running'"
_ENDED: Final = "ExecutionStatus NOT IN ('Running', 'Terminated')"
"""One that was terminated keeps its attributes, and awaits nothing."""
_IDS_PER_QUERY: Final = 100


async def needing_attention(
    client: Client, scope: str, limit: int | None = None
) -> Sequence[WorkflowExecution]:
    """Runs that wait for a person, or ended and left something to one; the newest first.

    Args:
        client: Of their namespace.
        scope: A further condition on visibility.
        limit: At most so many; None: all of them.

    Raises:
        RPCError: Temporal does not answer.
    """
    query = f"{_WAITS} AND {_open_or_kept()} AND {scope}"
    found = [run async for run in client.list_workflows(query, limit=limit)]
    last = await _last_runs(client, [run for run in found if _has_ended(run)])
    return [run for run in found if not _has_ended(run) or run.run_id in last]


async def number_needing_attention(client: Client, scope: str) -> int:
    """How many runs `needing_attention` finds without a limit.

    Raises:
        RPCError: Temporal does not answer.
    """
    open = (await client.count_workflows(f"{_WAITS} AND {_OPEN} AND {scope}")).count
    kept = _kept()
    if kept is None:
        return open
    # Those that ended are few; a later run of the same id may have settled what one left.
    query = f"{_WAITS} AND {_ENDED} AND {kept} AND {scope}"
    ended = [run async for run in client.list_workflows(query)]
    return open + len({run.run_id for run in ended} & await _last_runs(client, ended))


def _kept() -> str | None:
    """A condition: of a pipeline whose closed runs may need attention as well; None: of none."""
    names = [
        f"'{pipeline.name}'"
        for pipeline in catalogue.PIPELINES
        if any(kind.closed_may_need_attention for kind in pipeline.runs)
    ]
    return f"Pipeline IN ({', '.join(names)})" if names else None


def _open_or_kept() -> str:
    kept = _kept()
    return _OPEN if kept is None else f"({_OPEN} OR ({_ENDED} AND {kept}))"


def _has_ended(run: WorkflowExecution) -> bool:
    return run.status is not WorkflowExecutionStatus.RUNNING


async def _last_runs(client: Client, ended: Sequence[WorkflowExecution]) -> set[str]:
    """Run ids of the last run of each of their ids: what an earlier one left is settled."""
    kept = sorted({run.id for run in ended if _is_kept(run.id)})
    newest = await TemporalRuns(client, {}).newest(kept)
    return {run.run_id for run in newest.values()}


def _is_kept(workflow_id: str) -> bool:
    run = recognise(catalogue.PIPELINES, workflow_id)
    return run is not None and run.kind.closed_may_need_attention


async def _runs_of(client: Client, ids: Sequence[str]) -> AsyncIterator[WorkflowExecution]:
    """Every run of these ids."""
    left = iter(ids)
    while chunk := list(islice(left, _IDS_PER_QUERY)):
        names = ", ".join(map(quoted, chunk))
        async for run in client.list_workflows(f"WorkflowId IN ({names})"):
            yield run


T = TypeVar("T")
SECONDS_TO_ANSWER: Final = 10.0
"""How long a worker may take to answer a query or an update."""
PARKED: Final = "parked"
"""`State` of a run that waits for an operator, in every pipeline."""


@dataclass(frozen=True)
class RunView:
    """What Temporal knows of a run without asking a worker."""

    workflow_id: str
    run_id: str
    status: str
    """Temporal's own: `running`, `completed`, `failed`, `canceled`, `terminated`, `timed_out`."""
    closed: bool
    parked: bool
    """It waits for a person."""
    needs_attention: bool
    """It is open, and waits for a person in whatever state its pipeline calls so."""
    started_at: datetime
    link: str | None
    """Its page in the Temporal UI."""
    waits_for: str | None = None
    """Workflow id of the outage whose end it waits for."""
    awaits: str | None = None
    """Subject of the person whom it waits for, or `operators`."""
    since: datetime | None = None
    """Since when it waits for a person or for the end of an outage, UTC."""


@dataclass(frozen=True)
class _Queue:
    """A task queue of Temporal."""

    workers: int
    """How many poll it, or did in the last minutes."""
    backlog: int
    """Tasks that wait in it."""


class TemporalRuns:
    """Runs of one namespace, of whichever pipeline.

    Every method raises `TemporalUnavailable` when Temporal does not answer.

    Args:
        client: Of the namespace.
        environment: For `TEMPORAL_UI_ADDRESS`, and for task queues that settings name.
        seconds_to_answer: How long a worker may take.
    """

    def __init__(
        self,
        client: Client,
        environment: Mapping[str, str],
        *,
        seconds_to_answer: float = SECONDS_TO_ANSWER,
    ) -> None:
        self.client = client
        self._seconds_to_answer = seconds_to_answer
        self._environment = environment
        self._ui = environment.get("TEMPORAL_UI_ADDRESS", "").rstrip("/")

    @property
    def place(self) -> str:
        """Address and namespace, for people."""
        return f"{self.client.service_client.config.target_host}, {self.client.namespace}"

    def link(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """The run's page in the Temporal UI; None when TEMPORAL_UI_ADDRESS is not set."""
        return page_in_temporal(self._ui, self.client.namespace, workflow_id, run_id)

    async def look(self, workflow_id: str) -> RunView | None:
        """What Temporal knows of the newest run of an id; None: there is none."""
        with temporal_errors():
            try:
                found = await self.client.get_workflow_handle(workflow_id).describe()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return None
                raise
        status = found.status or WorkflowExecutionStatus.RUNNING
        # A run that was terminated keeps the state that it had.
        state = (
            found.typed_search_attributes.get(attributes.STATE)
            if status is WorkflowExecutionStatus.RUNNING
            else None
        )
        awaited = found.typed_search_attributes.get(attributes.WAITING_FOR)
        return RunView(
            workflow_id=found.id,
            run_id=found.run_id,
            status=status.name.lower(),
            closed=status is not WorkflowExecutionStatus.RUNNING,
            parked=state == PARKED,
            needs_attention=status is WorkflowExecutionStatus.RUNNING
            and bool(found.typed_search_attributes.get(attributes.NEEDS_ATTENTION)),
            started_at=found.start_time,
            link=self.link(found.id, found.run_id),
            waits_for=awaited if state == WAITING else None,
            awaits=awaited if state != WAITING else None,
            since=found.typed_search_attributes.get(attributes.WAITING_SINCE),
        )

    async def query(self, workflow_id: str, name: str, result_type: type[T]) -> T | None:
        """What a run's worker answers to a query; None: there is no such run.

        Raises:
            TemporalUnavailable: No worker answers.
        """
        handle = self.client.get_workflow_handle(workflow_id)
        try:
            return await handle.query(
                name,
                result_type=result_type,
                rpc_timeout=timedelta(seconds=self._seconds_to_answer),
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise TemporalUnavailable(
                f"no worker answers for {workflow_id}: {reason_of(error)}"
            ) from error
        except WorkflowQueryFailedError as error:
            raise TemporalUnavailable(f"{workflow_id} cannot be queried: {error}") from error

    async def update(
        self,
        workflow_id: str,
        name: str,
        answer: Contract,
        result_type: type[T],
        pipeline: str,
        *,
        refusal: Callable[[WorkflowUpdateFailedError], ServiceError] | None = None,
    ) -> T:
        """Send an update to a run and wait until it is applied.

        Args:
            workflow_id: The run.
            name: The update.
            answer: Its argument.
            result_type: Of its result.
            pipeline: Whose workers answer.
            refusal: What a refusal of the run means to its pipeline; None: `Refused`.

        Raises:
            NotFound: There is no such open run.
            Refused: The run refused; nothing has changed.
            TemporalUnavailable: No worker answered, so that it is not known what happened.
        """
        handle = self.client.get_workflow_handle(workflow_id)
        with temporal_errors():
            try:
                async with asyncio.timeout(self._seconds_to_answer):
                    return await handle.execute_update(name, answer, result_type=result_type)
            except WorkflowUpdateFailedError as error:
                if refusal is not None:
                    raise refusal(error) from error
                cause = error.cause
                why = cause.message if isinstance(cause, ApplicationError) else str(cause)
                raise Refused(f"{name} was refused: {why}") from error
            except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
                raise TemporalUnavailable(
                    f"no worker answered within {self._seconds_to_answer:g} s, so it is not known "
                    f"whether {name} was applied; is a worker of {pipeline} running?",
                    workflow_id=workflow_id,
                ) from error
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    raise NotFound(
                        f"there is no open run {workflow_id}: it has ended or was never started",
                        workflow_id=workflow_id,
                    ) from error
                raise

    async def pipeline(self, pipeline: Pipeline) -> PipelineView:
        """Workers of a pipeline, and its runs by state."""
        mine = f"Pipeline = '{pipeline.name}'"
        running = f"{mine} AND ExecutionStatus = 'Running'"
        lanes = pipeline.lanes_in(self._environment)
        counted = [(kind.workflow, str(state)) for kind in pipeline.runs for state in kind.states]
        own = [pipeline.task_queue, *(lane.task_queue for lane in lanes)]
        runs, steps, open, waiting, numbers = await asyncio.gather(
            self._queue(pipeline.task_queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW),
            asyncio.gather(
                *(self._queue(each, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY) for each in own)
            ),
            self.count_runs(running),
            self._number_awaiting(mine),
            asyncio.gather(
                *(
                    self.count_runs(f"{mine} AND WorkflowType = '{workflow}' AND {is_in(state)}")
                    for workflow, state in counted
                )
            ),
        )
        counts = dict.fromkeys((state for _, state in counted), 0)
        for (_, state), number in zip(counted, numbers, strict=True):
            counts[state] += number
        polled = {lane.name: each.workers for lane, each in zip(lanes, steps[1:], strict=True)}
        backlog = sum(each.backlog for each in (runs, *steps))
        return PipelineView(runs.workers, open, waiting, counts, polled, backlog)

    async def _number_awaiting(self, scope: str) -> int:
        with temporal_errors():
            return await number_needing_attention(self.client, scope)

    async def awaiting(self, scope: str, limit: int | None) -> Sequence[WorkflowExecution]:
        """Runs that wait for a person, as the inbox knows them, the newest first.

        Args:
            scope: A further condition on visibility.
            limit: At most so many; None: all of them.
        """
        with temporal_errors():
            return await needing_attention(self.client, scope, limit)

    async def newest(self, ids: Collection[str]) -> Mapping[str, WorkflowExecution]:
        """The newest run of each of some workflow ids that Temporal knows."""
        found: dict[str, WorkflowExecution] = {}
        with temporal_errors():
            async for run in _runs_of(self.client, list(ids)):
                if run.id not in found or run.start_time > found[run.id].start_time:
                    found[run.id] = run
        return found

    async def list(self, query: str, limit: int | None) -> Sequence[WorkflowExecution]:
        """Runs that fit a visibility query, the newest first; all of them without a limit."""
        with temporal_errors():
            return [run async for run in self.client.list_workflows(query, limit=limit)]

    async def pollers(self, task_queue: str) -> int:
        """How many workers poll a task queue for runs, or did in the last minutes."""
        return (await self._queue(task_queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)).workers

    async def _queue(self, task_queue: str, type: TaskQueueType.ValueType) -> _Queue:
        request = DescribeTaskQueueRequest(
            namespace=self.client.namespace,
            task_queue=TaskQueue(name=task_queue),
            task_queue_type=type,
            report_stats=True,
        )
        with temporal_errors():
            found = await self.client.workflow_service.describe_task_queue(request)
        workers = {poller.identity for poller in found.pollers}
        return _Queue(len(workers), found.stats.approximate_backlog_count)

    async def count_runs(self, query: str) -> int:
        """How many runs fit a visibility query."""
        with temporal_errors():
            return (await self.client.count_workflows(query)).count


def is_in(state: str) -> str:
    """A condition; a run that was terminated keeps the `State` that it had."""
    if state.lower() == TERMINATED:
        return "ExecutionStatus = 'Terminated'"
    return f"State = '{state}' AND ExecutionStatus != 'Terminated'"


def page_in_temporal(
    ui: str | None, namespace: str, workflow_id: str, run_id: str | None = None
) -> str | None:
    """A run's page in the Temporal UI; None when its address is not known."""
    if not ui:
        return None
    parts = [quote(part, safe="") for part in (workflow_id, run_id) if part]
    return f"{ui}/namespaces/{namespace}/workflows/{'/'.join(parts)}"


def quoted(value: str) -> str:
    """A text in a visibility query."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@contextmanager
def temporal_errors() -> Generator[None]:
    """Turn what Temporal's client raises into errors of the services.

    Raises:
        TemporalRefused: Temporal does not take the request, and never will.
        TemporalUnavailable: It does not answer.
    """
    try:
        yield
    # A client that was never connected raises a RuntimeError.
    except (RPCError, RuntimeError) as error:
        if isinstance(error, RPCError):
            if search_attributes.is_refusal(error):
                raise TemporalUnavailable(f"{error.message}; run `docflow setup`") from error
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                raise TemporalRefused(
                    f"Temporal does not take the request: {error.message}"
                ) from error
        raise TemporalUnavailable(
            f"Temporal does not answer at the moment: {reason_of(error)}; try again in a minute"
        ) from error


async def open_runs(environment: Mapping[str, str]) -> TemporalRuns:
    """Connect.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    return TemporalRuns(await connect(), environment)
