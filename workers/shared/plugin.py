"""One plugin for client, worker, replayer and tests, so that all of them encode and run alike.

Queries that meet the end of a local activity: the workflow task is done again, not recorded.

Temporal gives a query of a run whose workflow task is pending along with that task. SDK 1.32 to
1.35 answer it while local activities of the task are still running. One that ends before the
answer is sent is recorded as part of the task, and the workflow learns of it in the next task
only; what it does then is recorded there. A replay resolves it at once, so that commands come in
another order: such a history never replays, and the run is stuck.

So a local activity does not report its end while a query of its run is being answered, and not
within the few milliseconds in which one would come. Where it has reported its end all the same
just before, the workflow task fails: the server gives it out again, its local
activities run again, and wait a moment for the query before they report their ends. Versions that
wait for local activities before they answer (1.31) need none of this.
"""

import asyncio
import concurrent.futures
import dataclasses
import math
import sys
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, Final, TypeVar, cast

import temporalio.worker
from temporalio import activity
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.client import (
    ClientConfig,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowUpdateInput,
    WorkflowUpdateHandle,
)
from temporalio.common import HeaderCodecBehavior
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
)
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import (
    ExecuteActivityInput,
    ReplayerConfig,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerConfig,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from workers import catalogue
from workers.shared.message_context import MessageContext
from workers.shared.payload_codec import EncryptedPayloads, EncryptingCodec
from workflows.shared.contracts import Contract
from workflows.shared.run_notifications import RunEnds

_Result = TypeVar("_Result")

_LEGACY: Final = "legacy_query"
"""Id of a query that comes without a workflow task: nothing is recorded with its answer."""
_COMING_SECONDS: Final = 0.005
"""How long a query takes to come after the local activities of its task began: none ends sooner."""
_RETRY_SECONDS: Final = 10.0
"""How long a failed attempt may be the last one, of which the workflow is to learn."""
_WAITING_SECONDS: Final = 0.3
"""How long a local activity of a task that is done again waits for the query before it ends."""
_SUSPECT_SECONDS: Final = 60.0
_THREADS: Final = 500
"""Workflow tasks at once, as the SDK has it."""


class QueryMetEnd(Exception):
    """A query came while the end of a local activity was on its way to the workflow."""


class QueryGuard(temporalio.worker.Interceptor):
    """What local activities and queries of one event loop's workers know of each other."""

    def __init__(self) -> None:
        self._ended: defaultdict[str, dict[str, float]] = defaultdict(dict)
        """By run: activities whose end the workflow does not know of yet, and until when that
        counts."""
        self._answers: dict[str, asyncio.Event] = {}
        """By run: set when the answer to its query is sent."""
        self._expected: dict[str, asyncio.Event] = {}
        """By run whose task is done again: set when the query has come."""

    def intercept_activity(
        self, next: temporalio.worker.ActivityInboundInterceptor
    ) -> temporalio.worker.ActivityInboundInterceptor:
        """Hold the ends of local activities back while a query is being answered."""
        return _Activity(next, self)

    async def before_end(self, run_id: str) -> None:
        """Wait until no query of a run is expected soon or being answered."""
        if (expected := self._expected.get(run_id)) is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(expected.wait(), _WAITING_SECONDS)
        while (answer := self._answers.get(run_id)) is not None:
            await answer.wait()

    def ended(self, run_id: str, activity_id: str, *, failed: bool = False) -> None:
        """Note that a local activity reports its end; failed: or that of an attempt of it."""
        now = asyncio.get_running_loop().time()
        self._ended[run_id][activity_id] = now + _RETRY_SECONDS if failed else math.inf

    def begin(self, activation: WorkflowActivation) -> asyncio.Event | None:
        """Note an activation; an event: it is a query, whose answer `answered` is to follow.

        Raises:
            QueryMetEnd: It is a query, and the workflow does not know of an end yet.
        """
        run_id = activation.run_id
        for job in activation.jobs:
            if job.HasField("resolve_activity"):
                self._ended[run_id].pop(str(job.resolve_activity.seq), None)
        if any(job.HasField("remove_from_cache") for job in activation.jobs):
            self._ended.pop(run_id, None)
        if not (ends := self._ended.get(run_id)):
            self._ended.pop(run_id, None)
        if not any(_is_query(job) for job in activation.jobs):
            return None
        if (expected := self._expected.pop(run_id, None)) is not None:
            expected.set()
        loop = asyncio.get_running_loop()
        if ends and max(ends.values()) > loop.time():
            del self._ended[run_id]
            self._expect(loop, run_id)
            raise QueryMetEnd(
                "a query met the end of a local activity: the workflow task is done again"
            )
        answer = self._answers[run_id] = asyncio.Event()
        return answer

    def _expect(self, loop: asyncio.AbstractEventLoop, run_id: str) -> None:
        expected = self._expected[run_id] = asyncio.Event()

        def forget() -> None:
            if self._expected.get(run_id) is expected:
                del self._expected[run_id]

        loop.call_later(_SUSPECT_SECONDS, forget)

    def answered(self, run_id: str, answer: asyncio.Event) -> None:
        """The SDK's core has the answer to a query."""
        answer.set()
        if self._answers.get(run_id) is answer:
            del self._answers[run_id]


class GuardedExecutor(concurrent.futures.ThreadPoolExecutor):
    """Threads of workflow tasks; the guard sees every activation before it begins."""

    def __init__(self, guard: QueryGuard) -> None:
        super().__init__(_THREADS, thread_name_prefix="temporal_workflow_")
        self._guard = guard

    def submit(
        self, fn: Callable[..., _Result], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[_Result]:
        """Run an activation, unless it is a query that met the end of a local activity.

        Raises:
            QueryMetEnd: It did, so that the SDK reports the workflow task as failed.
        """
        [activation] = (each for each in args if isinstance(each, WorkflowActivation))
        answer = self._guard.begin(activation)
        future = super().submit(fn, *args, **kwargs)
        if answer is not None:
            # The task that has the activation carried out, and sends what comes of it.
            handling = asyncio.current_task()
            assert handling is not None
            handling.add_done_callback(lambda _: self._guard.answered(activation.run_id, answer))
        return future


class _Activity(temporalio.worker.ActivityInboundInterceptor):
    def __init__(
        self, next: temporalio.worker.ActivityInboundInterceptor, guard: QueryGuard
    ) -> None:
        super().__init__(next)
        self._guard = guard

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        run_id = info.workflow_run_id
        if not info.is_local or run_id is None:
            return await super().execute_activity(input)
        loop = asyncio.get_running_loop()
        began = loop.time()
        failed = True
        try:
            result = await super().execute_activity(input)
            failed = False
            return result
        finally:
            if (left := began + _COMING_SECONDS - loop.time()) > 0:
                await asyncio.sleep(left)
            await self._guard.before_end(run_id)
            self._guard.ended(run_id, info.activity_id, failed=failed)


def _is_query(job: Any) -> bool:
    return job.HasField("query_workflow") and job.query_workflow.query_id != _LEGACY


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


def build_contracts(definitions: Iterable[object]) -> None:
    """Build the validators of contracts: of the pipelines that these belong to, and of all.

    A contract is built when it is used, once per process; but decoding a payload builds only what
    decodes it. Each run has a converter of its own, so that a contract which a worker decodes and
    never makes would be built again for every run.

    Args:
        definitions: Classes of workflows and methods of activities.
    """
    words = {_word(str(getattr(each, "__module__", ""))) for each in definitions}
    for contract in _subclasses(Contract):
        package, _, name = contract.__module__.partition(".")
        if package == "workflows" and name.partition(".")[0] in {*words, "shared"}:
            contract.model_rebuild()


def _word(module: str) -> str:
    """The name of the pipeline that a module in a package of its layer belongs to."""
    _, _, name = module.partition(".")
    return name.partition(".")[0]


def _subclasses(contract: type[Contract]) -> Iterator[type[Contract]]:
    for each in contract.__subclasses__():
        yield each
        yield from _subclasses(each)


_CONVERTERS = (*PydanticPayloadConverter().converters.values(), EncryptedPayloads())


class SharedConverters(CompositePayloadConverter):
    """The SDK's converters of pydantic, which it makes anew for every workflow task.

    They hold nothing but caches, and making them takes as long as to encode a payload.
    """

    def __init__(self) -> None:
        super().__init__(*_CONVERTERS)


def passthrough() -> list[str]:
    """Modules that the sandbox shares with the worker: those of workflows that define none.

    They hold constants, functions and classes, and no state. Imported again for every run, they
    would cost as much as the run itself.
    """
    packages = ["workflows"]
    for pipeline in catalogue.PIPELINES:
        pipeline.workflows()
        packages += [pipeline.contracts, pipeline.activities_package]
    prefixes = tuple(f"{package}." for package in packages)
    return [
        name
        for name, module in sorted(sys.modules.items())
        if (name in packages or name.startswith(prefixes))
        and not hasattr(module, "__path__")
        and not _defines_workflow(module)
    ]


def _defines_workflow(module: ModuleType) -> bool:
    return any(
        hasattr(value, "__temporal_workflow_definition") and value.__module__ == module.__name__
        for value in vars(module).values()
    )


def _sandboxed(runner: WorkflowRunner | None) -> WorkflowRunner:
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner or SandboxedWorkflowRunner()
    restrictions = runner.restrictions.with_passthrough_modules(*passthrough())
    return dataclasses.replace(runner, restrictions=restrictions)


def _unsandboxed(runner: WorkflowRunner | None) -> WorkflowRunner:
    # The SDK's default is the sandbox; a runner of a test's own stays.
    if runner is None or isinstance(runner, SandboxedWorkflowRunner):
        return UnsandboxedWorkflowRunner()
    return runner


def _is_document(workflow_type: str) -> bool:
    kinds = (kind for pipeline in catalogue.PIPELINES for kind in pipeline.kinds)
    return any(kind.is_document for kind in kinds if kind.workflow == workflow_type)


def _converter(codec: EncryptingCodec | None) -> DataConverter:
    encrypts = codec is not None and codec.key_id is not None
    return DataConverter(
        payload_converter_class=SharedConverters,
        payload_codec=codec,
        # Messages and stack traces of failures are payloads then.
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes
        if encrypts
        else DefaultFailureConverter,
    )


class _Plugin(SimplePlugin):
    """A plugin whose workers have their queries guarded."""

    def __init__(self, *, sandboxed: bool, codec: EncryptingCodec | None) -> None:
        self._guard = QueryGuard()
        self._headers = HeaderCodecBehavior.CODEC if codec else HeaderCodecBehavior.NO_CODEC
        super().__init__(
            "docflow",
            data_converter=_converter(codec),
            interceptors=[MessageContext(), UpdateAttempts(), RunEnds(_is_document), self._guard],
            workflow_runner=_sandboxed if sandboxed else _unsandboxed,
        )

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        """Encrypt headers as payloads are."""
        config = super().configure_client(config)
        config["header_codec_behavior"] = self._headers
        return config

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Let the guard see what a worker is given to do, and build what it decodes."""
        config = super().configure_worker(config)
        given = cast("Mapping[str, Any]", config)
        build_contracts([*given.get("workflows", ()), *given.get("activities", ())])
        if config.get("workflow_task_executor") is None:
            config["workflow_task_executor"] = GuardedExecutor(self._guard)
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Build what histories hold."""
        config = super().configure_replayer(config)
        config["header_codec_behavior"] = self._headers
        build_contracts(cast("Mapping[str, Any]", config).get("workflows", ()))
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """End the threads with the worker, as the SDK does with threads of its own."""
        try:
            await next(worker)
        finally:
            executor = worker.config(active_config=True).get("workflow_task_executor")
            if isinstance(executor, GuardedExecutor):
                executor.shutdown()


def docflow_plugin(
    *, sandboxed: bool = False, codec: EncryptingCodec | None = None
) -> SimplePlugin:
    """Pydantic payloads, ends of runs in log and metrics, and how workflows are run.

    Args:
        sandboxed: Run workflows in the SDK's sandbox, which refuses clock, randomness, I/O and
            state of modules at run time. Without it, tests and lint have refused them before
            (docs/decisions/workflows-without-sandbox.md).
        codec: Encrypts payloads, failures and headers; None: they stand in clear.
    """
    return _Plugin(sandboxed=sandboxed, codec=codec)
