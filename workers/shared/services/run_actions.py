"""What can be done to the runs of a pipeline: by its own verbs, or all from its register."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from workers.shared.register import Run, RunGroup
from workers.shared.services.errors import InvalidRequest, NotFound
from workflows.shared.contracts import problem_text

if TYPE_CHECKING:
    pass


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


class RunActions(Protocol):
    """What can be done to the runs of one pipeline; its register says which verbs they offer."""

    pipeline: str
    naming: str
    """How a person may write an id."""
    corrects: frozenset[str]
    """Verbs that take a corrected message."""
    changes: frozenset[str]
    """Verbs that take a corrected document, and new values for fields of its message."""

    def name(self, run: Run) -> str:
        """How people name a run."""
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


class DefaultRunActions:
    """Runs as Temporal knows them, answered by the updates that the register names.

    Args:
        pipeline: The register.
    """

    def __init__(self, pipeline: RunGroup) -> None:
        self.pipeline = pipeline.name
        self.naming = f"a workflow id of {pipeline.name}"
        self.corrects: frozenset[str] = frozenset()
        self.changes: frozenset[str] = frozenset()

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

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
