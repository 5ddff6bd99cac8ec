"""How a job type is written, and what its plans, tasks and aggregations are given.

How a job type is written: one class with its stages, its plan and its task functions.

    @job_type(
        WorkflowDefinition(job_type="count_words", description="...", total_stages=1, stages=(
            StageDefinition(stage_number=1, stage_name="count", task_type="count_words",
                            max_parallel_tasks=10),
        ))
    )
    class CountWords(JobType[CountParameters]):
        parameters = CountParameters

        async def plan(self, stage, context):
            for number, name in enumerate(context.parameters.files):
                yield PlannedTask(index=str(number), parameters={"file": name})

        @task("count_words")
        async def count(self, context: TaskContext[CountParameters]) -> TaskDone:
            ...

The entry point group `docflow.jobs` names the class; nothing else has to know it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import EntryPoint
from inspect import getmembers, isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from pydantic import Field, ValidationError

from activities.jobs.folders import StageFolders
from activities.jobs.store import SqlJobStore
from adapters.installed import Installed, installed
from adapters.ports.blobs import Blobs
from adapters.ports.spatial import Computation, SubprocessExecutor
from workflows.jobs.definitions import (
    InvalidDefinition,
    StageDefinition,
    WorkflowDefinition,
    check_definition,
)
from workflows.jobs.records import InputIdentity, JsonObject
from workflows.jobs.runs import FinishedTask, JobInput, PlannedTask, StageInput, StageRef
from workflows.shared.contracts import AuthoredContract, Contract, problem_text
from workflows.shared.errors import RuleViolation

if TYPE_CHECKING:
    from activities.jobs.catalogue import Catalogue

ENTRY_POINTS: Final = "docflow.jobs"
_TASK: Final = "__docflow_task__"

P = TypeVar("P", bound=Contract)
J = TypeVar("J", bound="JobType[Any]")


@dataclass(frozen=True)
class JobResources:
    """What tasks work with; blob names are relative to the container of their tier."""

    bronze: Blobs
    """As it came in; never written by a task."""
    silver: Blobs
    """Ready for analysis."""
    gold: Blobs
    """Published exports."""
    catalogue: "Catalogue"
    scratch: Path
    """Folder for files while they are worked on; a task has one of its own in its context."""
    more: Mapping[type, Any] = field(default_factory=dict[type, Any])
    """Further ports by their protocol, so that a job type may need what others do not."""

    def port(self, protocol: type[Any]) -> Any:
        """A further port.

        Raises:
            KeyError: The worker has opened none.
        """
        return self.more[protocol]


@dataclass(frozen=True)
class StageContext(Generic[P]):
    """What a plan or an aggregation may use."""

    job_id: str
    attempt: int
    parameters: P
    """Of the job."""
    inputs: Sequence[InputIdentity]
    """Resolved when the job was submitted."""
    previous: Callable[[], AsyncIterator[FinishedTask]]
    """Tasks of the stage that this one depends on, by ordinal; for an aggregation, its own."""
    stage_results: Mapping[int, JsonObject]
    """Aggregated results of the stages before."""
    resources: JobResources
    organisation_id: int | None = None
    """Organisation that the job belongs to; None: the installation."""


@dataclass(frozen=True)
class TaskContext(Generic[P]):
    """What a task function is given."""

    job_id: str
    attempt: int
    stage: int
    index: str
    parameters: P
    """Of the job."""
    task: JsonObject
    """Parameters of the task, as planned."""
    inputs: Sequence[InputIdentity]
    predecessor: FinishedTask | None
    """The task of the same index in the stage that this one depends on; None: there is none."""
    stage_results: Mapping[int, JsonObject]
    resources: JobResources
    make_folder: Callable[[], Path]
    progress: Callable[[float, str], None]
    """Say how far the work is: a share from 0 to 1, and in words. Cheap."""
    organisation_id: int | None = None
    """Organisation that the job belongs to; None: the installation."""

    @cached_property
    def folder(self) -> Path:
        """A folder of the task's own: made when it is first asked for, and removed afterwards."""
        return self.make_folder()

    async def compute(self, function: Computation, argument: JsonObject) -> JsonObject:
        """Call a function in a process that is bounded, as a task of the heavy lane should.

        Its memory is that of `DOCFLOW_JOBS_HEAVY_MEMORY_MB`; it writes into the task's folder
        alone, reads that and its own package, and reaches no host. A cancelled task ends it.

        Args:
            function: Of a module: no lambda, and no inner function.
            argument: What it is given; like its result, what JSON can hold.

        Raises:
            RuleViolation: It raised that, or something that it does not explain.
            UnreadableDocument: It needs more memory than it may.
            Unavailable: The process was lost.
        """
        computing: SubprocessExecutor = self.resources.port(SubprocessExecutor)
        return await computing.compute(function, argument, self.folder)

    @property
    def key(self) -> str:
        """Names the task in the storage: another attempt of the job overwrites nothing."""
        return f"{self.job_id}/{self.attempt}/{self.stage}/{self.index}"


class TaskDone(AuthoredContract):
    """Result of a task that succeeded."""

    result: JsonObject = Field(default_factory=dict)
    next_stage_params: JsonObject = Field(default_factory=dict)
    """Handed to the task of the same index in the next stage, and to its plan."""


class NotReady(Exception):
    """What the task needs is not there yet: it is asked again.

    Attributes:
        seconds: Until then.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class InputNeeded(Exception):
    """A parameter has to be given by a person: the job parks and asks.

    Attributes:
        parameter: Of the job; its name.
    """

    def __init__(self, parameter: str, question: str) -> None:
        super().__init__(question)
        self.parameter = parameter


TaskFunction = Callable[[Any, TaskContext[Any]], Awaitable[TaskDone]]


def task(task_type: str) -> Callable[[TaskFunction], TaskFunction]:
    """Decorate the method that does the tasks of a type.

    It may run twice, so what it writes is written under the task's key. It raises what ports
    raise: `UnreadableDocument`, `InvalidDocument`, `RuleViolation` fail the task for good;
    `Throttled` and other passing failures are retried; `NotReady` asks again; `InputNeeded` parks.
    """

    def mark(function: TaskFunction) -> TaskFunction:
        setattr(function, _TASK, task_type)
        return function

    return mark


class JobType(Generic[P]):
    """Base of job types."""

    definition: ClassVar[WorkflowDefinition]
    task_functions: ClassVar[Mapping[str, str]]
    """Task type to the name of its method."""
    file_parameter: ClassVar[str | None] = None
    """Names the file that a request brings along; None: the type takes none."""
    parameters: type[P]
    """Refuses what it does not know (`extra="forbid"`), so that a misspelt one is not ignored."""

    def check(self, parameters: P) -> None:
        """Refuse parameters that no run could use, when a job is submitted or corrected.

        Raises:
            RuleViolation: The message says which, and why.
        """

    def inputs(self, parameters: P) -> Sequence[str]:
        """Names of the blobs in the bronze container that the job reads.

        `name/` is all of a folder, `@name` all that a blob lists, one a line.
        """
        return ()

    def of_organisation(self, organisation_id: int) -> JsonObject:
        """Parameters that a job of an organisation has unless its request names them."""
        return {}

    def beside(self, name: str) -> Sequence[str]:
        """Names that files belonging to a file of this name may have; they are not read."""
        return ()

    def plan(self, stage: StageDefinition, context: StageContext[P]) -> AsyncIterator[PlannedTask]:
        """The tasks of a stage; none: the stage is skipped."""
        raise NotImplementedError

    async def aggregate(self, stage: StageDefinition, context: StageContext[P]) -> JsonObject:
        """What the stage as a whole has found; at most 100 KB of JSON.

        Its numbers `rows` and `bytes`, if there are any, count for the quotas of the organisation.
        """
        return {}

    async def result(self, context: StageContext[P]) -> JsonObject:
        """The result of the job, at most 1 MB of JSON; that of its last stage by default."""
        return dict(context.stage_results.get(self.definition.total_stages, {}))

    @classmethod
    def has_own_result(cls) -> bool:
        """Whether it makes the result of a job from more than its last stage."""
        return cls.result is not JobType.result


def job_type(definition: WorkflowDefinition) -> Callable[[type[J]], type[J]]:
    """Give a class its definition.

    Raises:
        InvalidDefinition: The stages cannot run, or a task type has no function, or the class no
            plan or parameters.
    """

    def register(cls: type[J]) -> type[J]:
        functions: dict[str, str] = {}
        for name, function in getmembers(cls, isfunction):
            if (task_type := getattr(function, _TASK, None)) is None:
                continue
            if task_type in functions:
                raise InvalidDefinition(
                    definition.job_type, [f"two functions do tasks of the type {task_type!r}"]
                )
            functions[task_type] = name
        check_definition(definition, functions)
        missing = [] if hasattr(cls, "parameters") else ["parameters"]
        if not any("plan" in each.__dict__ for each in cls.__mro__ if each is not JobType):
            missing.append("plan")
        if missing:
            text = f"{cls.__name__} does not say its {' and '.join(missing)}"
            raise InvalidDefinition(definition.job_type, [text])
        cls.definition = definition
        cls.task_functions = functions
        return cls

    return register


class JobTypes(Mapping[str, JobType[Any]]):
    """The job types of a process, by name."""

    def __init__(self, *types: type[JobType[Any]]) -> None:
        self._types: dict[str, JobType[Any]] = {}
        self.packages: Mapping[str, str] = {}
        """Name of a type to the package that brings it."""
        self.problems: Sequence[str] = ()
        """Types of packages that were refused, and why."""
        for each in types:
            name = each.definition.job_type
            if name in self._types:
                raise InvalidDefinition(name, ["it is registered twice"])
            self._types[name] = each()

    @classmethod
    def installed(cls) -> "JobTypes":
        """Those that installed packages name as entry points, docflow's own among them."""
        every: Installed[type[JobType[Any]]] = installed(ENTRY_POINTS, _brought)
        types = cls(*every.found.values())
        types.packages, types.problems = every.packages, every.problems
        return types

    def __getitem__(self, name: str) -> JobType[Any]:
        return self._types[name]

    def __iter__(self) -> Any:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


def _brought(point: EntryPoint) -> list[tuple[str, type[JobType[Any]]]]:
    """The job type of an entry point."""
    found: Any = point.load()
    definition = getattr(found, "definition", None)
    if not isinstance(definition, WorkflowDefinition) or not issubclass(found, JobType):
        raise TypeError(f"{point.value} is no class that derives from JobType and has @job_type")
    return [(definition.job_type, found)]


@dataclass(frozen=True)
class JobPorts:
    """What the activities of jobs work with; one object for everything in a process."""

    types: JobTypes
    resources: JobResources
    folders: StageFolders
    store: SqlJobStore
    result_bytes: int
    """Longer results of tasks go to a blob of their own."""

    def job_type(self, order: JobInput) -> JobType[Any]:
        """The code of a job.

        Raises:
            RuleViolation: This worker has none, or it lacks tasks of the job's stages.
        """
        name = order.definition.job_type
        found = self.types.get(name)
        if found is None:
            known = ", ".join(sorted(self.types)) or "none"
            text = (
                f"this worker has no job type {name!r}; installed are: {known}. "
                "Install its package where the worker runs, then retry"
            )
            raise RuleViolation("; ".join((text, *self.types.problems)))
        for stage in order.definition.stages:
            if stage.task_type not in found.task_functions:
                raise RuleViolation(
                    f"the job type {name!r} of this worker has no function for tasks of type "
                    f"{stage.task_type!r}, which this job has from an earlier release"
                )
        return found

    def resources_of(self, job: JobInput) -> JobResources:
        """What the tasks of a job work with: its catalogue is that of the job's organisation."""
        catalogue = self.resources.catalogue.acting_for(job.organisation_id)
        return replace(self.resources, catalogue=catalogue)

    async def stage_results(self, order: StageInput) -> Mapping[int, JsonObject]:
        """Aggregated results of the stages before."""
        return {
            ref.stage: await self.folders.stage_result(order.job.job_id, ref) for ref in order.done
        }

    async def stage_context(
        self, order: StageInput, previous: Callable[[], AsyncIterator[FinishedTask]]
    ) -> StageContext[Any]:
        """What the plan or the aggregation of a stage is given."""
        job = order.job
        return StageContext(
            job_id=job.job_id,
            attempt=job.attempt,
            parameters=parameters_of(self.job_type(job), job),
            inputs=job.inputs,
            previous=previous,
            stage_results=await self.stage_results(order),
            resources=self.resources_of(job),
            organisation_id=job.organisation_id,
        )


def parameters_of(job_type: JobType[Any], job: JobInput) -> Contract:
    """The parameters of a job as its type knows them.

    Raises:
        RuleViolation: They do not fit; each problem is named.
    """
    try:
        return job_type.parameters.model_validate(job.parameters)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {problem_text(each)}"
            for each in error.errors(include_url=False, include_input=False)
        )
        raise RuleViolation(f"the parameters of the job are wrong: {problems}") from error


def depended_on(order: StageInput) -> StageRef | None:
    """The stage whose tasks a stage is planned from; None: of none."""
    number = order.definition.planned_from
    return next((ref for ref in order.done if ref.stage == number), None)
