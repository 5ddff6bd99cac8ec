"""What can be done to the runs of a pipeline: by its own verbs, or all from its register."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import ValidationError

from workers.shared.register import Run, RunGroup
from workers.shared.services.errors import InvalidRequest, NotFound
from workflows.shared.contracts import problem_text
from workflows.shared.dependencies import WAITING, WAITS
from workflows.shared.records import TERMINATED

if TYPE_CHECKING:
    from temporalio.client import WorkflowExecution


@dataclass(frozen=True)
class Filters:
    """Which runs are listed."""

    limit: int
    """At most so many of each pipeline."""
    state: str | None = None
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    """Filters that not every pipeline has, by name: `type`, `project`."""
    needs_attention: bool = False
    """Only runs that wait for a person, as the inbox shows them."""


@dataclass(frozen=True)
class RunEntry:
    """A run in a list."""

    workflow_id: str
    name: str
    """How people name it."""
    pipeline: str
    type: str
    state: str
    since: datetime
    """When it last changed."""
    note: str | None = None
    """What to know about it."""
    is_open: bool = False
    """Its row says that it has not ended; Temporal knows whether it waits for a dependency."""
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """Numbers that only this pipeline shows."""
    row: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All that is known of it, for programs."""


@dataclass(frozen=True)
class AnswerRequest:
    """A person's answer to a run."""

    verb: str
    by: str | None = None
    reason: str | None = None
    correction: bytes | None = None
    """A corrected message, as its sender would send it."""
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of its message that get another value."""
    file: Path | None = None
    """A corrected document."""


@dataclass(frozen=True)
class Report:
    """The report of a run, not yet fetched."""

    filename: str
    download: Callable[[Path], Awaitable[object]]
    sentence: str
    """What to do with it."""


class RunVerbs(Protocol):
    """What can be done to the runs of one pipeline; its register says which verbs they offer."""

    pipeline: str
    naming: str
    """How a person may write an id."""
    states: Sequence[str]
    """That its list knows; Temporal is asked for runs in any other of the register."""
    filters: frozenset[str]
    """Filters of a list that this pipeline has, beyond state."""
    corrects: frozenset[str]
    """Verbs that take a corrected message."""
    changes: frozenset[str]
    """Verbs that take a corrected document, and new values for fields of its message."""

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """The runs that a short form names; None: it is not one of this pipeline.

        Raises:
            InvalidRequest: It could be taken for the id of another run.
        """
        ...

    def name(self, run: Run) -> str:
        """How people name a run."""
        ...

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Runs, the newest change first."""
        ...

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send an answer and wait until it is applied; what it did, for programs.

        Raises:
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        ...

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """The report of what was rejected.

        Raises:
            ServiceError: There is none; the message says why.
        """
        ...


_ATTRIBUTES: Final[Mapping[str, str]] = {"type": "DocumentType", "project": "ProjectId"}
"""Filter of a list to the search attribute that has its value."""


async def list_in_temporal(
    pipeline: RunGroup,
    environment: Mapping[str, str],
    filters: Filters,
    name: Callable[[Run], str],
    *,
    execution: str | None = None,
) -> Sequence[RunEntry]:
    """Runs of a pipeline within Temporal's retention, the newest first.

    Args:
        pipeline: The register.
        environment: Settings.
        filters: Which of them; the state as the register spells it.
        name: How people name a run.
        execution: Only those that Temporal calls so: `Running`, `Terminated`.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.shared.services.runs import is_in, open_runs
    from workflows.shared import attributes

    conditions = [f"Pipeline = {quoted(pipeline.name)}"]
    if execution is not None:
        states = () if filters.state is None else (f"State = {quoted(filters.state)}",)
        conditions += (*states, f"ExecutionStatus = {quoted(execution)}")
    elif filters.state is not None:
        conditions.append(is_in(filters.state))
    conditions += [f"{_ATTRIBUTES[name]} = {quoted(value)}" for name, value in filters.more.items()]
    runs = await open_runs(environment)
    ask = runs.awaiting if filters.needs_attention else runs.list
    return [
        RunEntry(
            workflow_id=each.id,
            name=each.id if (run := pipeline.recognise(each.id)) is None else name(run),
            pipeline=pipeline.name,
            type=each.typed_search_attributes.get(attributes.DOCUMENT_TYPE) or each.workflow_type,
            state=_state(each),
            since=(
                each.typed_search_attributes.get(attributes.WAITING_SINCE) or each.start_time
            ).astimezone(UTC),
            note=await _waits(each),
        )
        for each in await ask(" AND ".join(conditions), filters.limit)
    ]


async def _waits(run: "WorkflowExecution") -> str | None:
    """What it waits for; None: for nothing, or a person."""
    from temporalio.client import WorkflowExecutionStatus

    from workflows.shared import attributes

    found = run.typed_search_attributes
    if run.status is not WorkflowExecutionStatus.RUNNING or found.get(attributes.STATE) != WAITING:
        return None
    waits = (await run.memo()).get(WAITS)
    outage = found.get(attributes.WAITING_FOR)
    return waits if isinstance(waits, str) else outage and f"waits for {outage}"


def _state(run: "WorkflowExecution") -> str:
    """Its `State`, which a run that was terminated keeps as it was."""
    from temporalio.client import WorkflowExecutionStatus

    from workflows.shared import attributes

    if run.status is WorkflowExecutionStatus.TERMINATED:
        return TERMINATED
    return run.typed_search_attributes.get(attributes.STATE) or ""


def quoted(value: str) -> str:
    """A text in a visibility query."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


async def send_answer(
    environment: Mapping[str, str], run: Run, request: AnswerRequest, **more: Any
) -> Mapping[str, Any]:
    """Send the update of a verb, with the argument that the register names.

    Args:
        environment: Settings.
        run: The run.
        request: Who decides, and why.
        more: Further fields of the argument.

    Raises:
        InvalidRequest: The answer takes no reason, or not this one.
        ServiceError: There is no such open run, it refused, or no worker answered.
    """
    from workers.shared.services.runs import open_runs

    contract = run.kind.answers[request.verb]
    given = {"by": request.by, "reason": request.reason, **more}
    try:
        answer = contract.model_validate(
            {name: value for name, value in given.items() if value is not None}
        )
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, problem["loc"]))
        raise InvalidRequest(f"{request.verb}: {field}: {problem_text(problem)}") from error
    runs = await open_runs(environment)
    await runs.update(run.workflow_id, request.verb, answer, object, run.pipeline.name)
    return {"workflow_id": run.workflow_id, "answer": request.verb}


class RegisteredVerbs:
    """Runs as Temporal knows them, answered by the updates that the register names.

    Args:
        pipeline: The register.
    """

    def __init__(self, pipeline: RunGroup) -> None:
        self._register = pipeline
        self.pipeline = pipeline.name
        self.naming = f"a workflow id of {pipeline.name}"
        self.states: Sequence[str] = pipeline.states
        self.filters: frozenset[str] = frozenset()
        self.corrects: frozenset[str] = frozenset()
        self.changes: frozenset[str] = frozenset()

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """There are no short forms."""
        return None

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Runs within Temporal's retention, the newest first."""
        return await list_in_temporal(self._register, environment, filters, self.name)

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send the update of the verb.

        Raises:
            InvalidRequest: The answer takes no reason, or not this one.
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        return await send_answer(environment, run, request)

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """There is none.

        Raises:
            NotFound: Always.
        """
        raise NotFound(f"{run.workflow_id} has no report")
