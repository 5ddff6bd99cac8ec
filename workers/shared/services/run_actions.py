"""What a gateway does to the runs of a pipeline: by its own service, or all from its register."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from workers.shared.register import Run
from workers.shared.services.bodies import correction_of
from workers.shared.services.errors import InvalidRequest, NotFound
from workers.shared.services.identity import OPERATOR, Identity, require_role
from workflows.shared.contracts import problem_text

if TYPE_CHECKING:
    from workers.shared.services.runs import TemporalRuns


@dataclass(frozen=True)
class AnswerRequest:
    """A person's answer to a run."""

    verb: str
    by: str | None = None
    organisation_id: int | None = None
    """Whose run it is; None: it belongs to no organisation."""
    reason: str | None = None
    correction: bytes | None = None
    """A corrected message, as its sender would send it."""
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of its message that get another value."""


@dataclass(frozen=True)
class Report:
    """The report of a run, not yet fetched."""

    filename: str
    download: Callable[[Path], Awaitable[object]]
    sentence: str
    """What to do with it."""


class ServedRuns(Protocol):
    """What a gateway does to the runs of one pipeline, with the rights of a person."""

    async def details(self, who: Identity, run: Run) -> Mapping[str, Any] | None:
        """What the pipeline knows of a run, as JSON; None: nothing beyond its status.

        Raises:
            ServiceError: The person may not see it, or there is no such run.
        """
        ...

    async def answer(self, who: Identity, run: Run, request: AnswerRequest) -> None:
        """Send an answer and wait until it is applied.

        Raises:
            ServiceError: The person may not, there is no such open run, it refused, or no worker
                answered.
        """
        ...

    def report(self, who: Identity, run: Run) -> AbstractAsyncContextManager[Report]:
        """The report of what was rejected.

        Raises:
            ServiceError: The person may not, or there is none; the message says why.
        """
        ...


class DefaultServedRuns:
    """Runs that operators answer by the updates that the register names.

    Args:
        runs: Of Temporal.
        correction: Field of the answer that takes the corrected input; None: none does.
    """

    def __init__(self, runs: "TemporalRuns", correction: str | None = None) -> None:
        self._runs = runs
        self._correction = correction

    async def details(self, who: Identity, run: Run) -> Mapping[str, Any] | None:
        """Nothing."""
        return None

    async def answer(self, who: Identity, run: Run, request: AnswerRequest) -> None:
        """Send the update of the verb."""
        require_role(who, OPERATOR, request.organisation_id)
        more: dict[str, Any] = {}
        if self._correction is not None:
            more = {self._correction: correction_of(request.correction, self._correction)}
        await self._update(run, request, **more)

    def report(self, who: Identity, run: Run) -> AbstractAsyncContextManager[Report]:
        """There is none."""
        raise NotFound(f"{run.workflow_id} has no report")

    async def _update(self, run: Run, request: AnswerRequest, **more: Any) -> None:
        """Send the update of a verb, with the argument that the register names.

        Raises:
            InvalidRequest: The answer takes no reason, or not this one.
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        contract = run.kind.answers[request.verb]
        every = {"by": request.by, "reason": request.reason, **more}
        given = {name: value for name, value in every.items() if value is not None}
        if unused := sorted(given.keys() - contract.model_fields.keys() - {"by"}):
            raise InvalidRequest(f"{request.verb} of {run.workflow_id} takes no {unused[0]}")
        try:
            answer = contract.model_validate(given)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, problem["loc"]))
            raise InvalidRequest(f"{request.verb}: {field}: {problem_text(problem)}") from error
        await self._runs.update(run.workflow_id, request.verb, answer, object, run.pipeline.name)
