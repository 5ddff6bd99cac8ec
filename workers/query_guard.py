"""Queries that meet the end of a local activity: the workflow task is done again, not recorded.

Temporal gives a query of a run whose workflow task is pending along with that task. SDK 1.32 to
1.35 answer it while local activities of the task are still running. One that ends before the
answer is sent is recorded as part of the task, and the workflow learns of it in the next task
only; what it does then is recorded there. A replay resolves it at once, so that commands come in
another order: such a history never replays, and the run is stuck.

So a local activity does not report its end while a query of its run is being answered, and where
one has reported it just before, the workflow task fails: the server gives it out again, and its
local activities wait a moment for the query before they end. Versions that wait for local
activities before they answer (1.31) need none of this.
"""

import asyncio
import threading
import time
from collections import defaultdict
from typing import Any, Final

import temporalio.worker
from temporalio import activity
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ExecuteActivityInput,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)

_LEGACY: Final = "legacy_query"
"""Id of a query that comes without a workflow task: nothing is recorded with its answer."""
SENDING_SECONDS: Final = 0.05
"""How long an answer takes on its way to the SDK's core, behind which ends may be reported."""
REPORTING_SECONDS: Final = 1.0
"""After so long the core knows of an end, and the workflow as well."""
WAITING_SECONDS: Final = 0.3
"""How long a local activity of a task that is done again waits for the query before it ends."""
_SUSPECT_SECONDS: Final = 60.0
_PAUSE: Final = 0.002


class QueryMetEnd(Exception):
    """A query came while the end of a local activity was on its way to the workflow."""


class QueryGuard(temporalio.worker.Interceptor):
    """What local activities and queries of a worker know of each other; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: defaultdict[str, dict[str, float]] = defaultdict(dict)
        """By run: activities that have reported their end, and when."""
        self._answered: dict[str, float] = {}
        """By run: until when no end is reported."""
        self._suspect: dict[str, float] = {}
        """By run whose task is done again: until when its local activities wait for the query."""

    def intercept_activity(
        self, next: temporalio.worker.ActivityInboundInterceptor
    ) -> temporalio.worker.ActivityInboundInterceptor:
        """Hold the ends of local activities back while a query is being answered."""
        return _Activity(next, self)

    def guarding(self, runner: WorkflowRunner) -> WorkflowRunner:
        """The same runner, whose runs answer queries only where no end is on its way."""
        return _GuardingRunner(runner, self)

    def reports(self, run_id: str, activity_id: str, began: float, *, is_end: bool) -> bool:
        """Note the end of a local activity; false: not now, a query comes or is being answered."""
        now = time.monotonic()
        with self._lock:
            if self._answered.get(run_id, 0.0) > now:
                return False
            if self._suspect.get(run_id, 0.0) > now and now < began + WAITING_SECONDS:
                return False
            self._answered.pop(run_id, None)
            if is_end:
                self._ended[run_id][activity_id] = now
        return True

    def begin(self, activation: WorkflowActivation) -> bool:
        """Begin an activation; true: it is a query, whose answer is to be followed by `answered`.

        Raises:
            QueryMetEnd: It is a query, and the workflow does not know of an end yet.
        """
        run_id = activation.run_id
        with self._lock:
            ended = self._ended.get(run_id)
            for job in activation.jobs:
                if job.HasField("resolve_activity") and ended is not None:
                    ended.pop(str(job.resolve_activity.seq), None)
            is_evicted = any(job.HasField("remove_from_cache") for job in activation.jobs)
            if is_evicted:
                self._answered.pop(run_id, None)
            if not ended or is_evicted:
                self._ended.pop(run_id, None)
                ended = None
            if not any(_is_query(job) for job in activation.jobs):
                return False
            now = time.monotonic()
            if ended and any(at > now - REPORTING_SECONDS for at in ended.values()):
                self._ended.pop(run_id, None)
                open_ones = {run: until for run, until in self._suspect.items() if until > now}
                self._suspect = {**open_ones, run_id: now + _SUSPECT_SECONDS}
                raise QueryMetEnd(
                    "a query met the end of a local activity: the workflow task is done again"
                )
            self._answered[run_id] = float("inf")
        return True

    def answered(self, run_id: str) -> None:
        """A query is answered; its answer is on the way."""
        with self._lock:
            self._suspect.pop(run_id, None)
            self._answered[run_id] = time.monotonic() + SENDING_SECONDS


class _Activity(temporalio.worker.ActivityInboundInterceptor):
    def __init__(
        self, next: temporalio.worker.ActivityInboundInterceptor, guard: QueryGuard
    ) -> None:
        super().__init__(next)
        self._guard = guard

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if not info.is_local:
            return await super().execute_activity(input)
        is_end, began = True, time.monotonic()
        try:
            return await super().execute_activity(input)
        except Exception as error:
            is_end = _is_last(info, error)
            raise
        finally:
            run_id = info.workflow_run_id or ""
            # Queries are answered in other threads, and for milliseconds: an event would not do.
            while not self._guard.reports(  # noqa: ASYNC110
                run_id, info.activity_id, began, is_end=is_end
            ):
                await asyncio.sleep(_PAUSE)


class _GuardingRunner(WorkflowRunner):
    def __init__(self, runner: WorkflowRunner, guard: QueryGuard) -> None:
        self._runner, self._guard = runner, guard

    def prepare_workflow(self, defn: Any) -> None:
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Any) -> None:
        self._runner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = self._runner.create_instance(det)
        activate = instance.activate

        def guarded(act: WorkflowActivation) -> WorkflowActivationCompletion:
            is_query = self._guard.begin(act)
            try:
                return activate(act)
            finally:
                if is_query:
                    self._guard.answered(act.run_id)

        instance.activate = guarded
        return instance


def _is_query(job: Any) -> bool:
    return job.HasField("query_workflow") and job.query_workflow.query_id != _LEGACY


def _is_last(info: activity.Info, error: Exception) -> bool:
    """Whether the workflow learns of a failure; others are followed by another attempt."""
    if isinstance(error, ApplicationError) and error.non_retryable:
        return True
    policy = info.retry_policy
    return policy is not None and 0 < policy.maximum_attempts <= info.attempt
