"""Errands: what the gateway asks of a pipeline's worker, because only that has the keys."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from adapters.ports.errors import PortError
from workers import catalogue
from workers.shared.errors import SettingsError
from workers.shared.register import Context, Pipeline, load
from workers.shared.services.errors import (
    Conflict,
    InvalidRequest,
    NotFound,
    Refused,
    ServiceError,
    ServiceUnavailable,
    TemporalUnavailable,
    WrongState,
)
from workers.shared.services.identity import Identity
from workers.shared.services.runs import temporal_errors
from workflows.shared import attributes
from workflows.shared.contracts import problem_text
from workflows.shared.errands import (
    ERRAND,
    ERRAND_PREFIX,
    LONGEST_ANSWER,
    ErrandInput,
    ErrandResult,
)

PATIENCE_SECONDS: Final = 30.0
"""How long a caller waits for an errand."""
WAY_IN: Final = "errand"
"""Stands in the place of a queue's name in what is known of where a message came from."""
_LIFE: Final = timedelta(minutes=10)
_REFUSALS: Final[Mapping[str, type[ServiceError]]] = {
    each.kind: each for each in (NotFound, WrongState, Conflict, Refused, ServiceUnavailable)
}


Arguments = TypeVar("Arguments", bound=BaseModel)


def arguments_of(model: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    """The arguments of an errand that anybody with the Temporal CLI may ask for.

    Raises:
        InvalidRequest: One is missing, wrong or not known.
    """
    try:
        return model.model_validate(given, by_alias=False, by_name=True)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        named = (f"{'.'.join(map(str, each['loc']))}: {problem_text(each)}" for each in problems)
        raise InvalidRequest("; ".join(named)) from error


def errands_of(
    context: Context, pipeline: Pipeline, own: Any
) -> Callable[[ErrandInput], Awaitable[ErrandResult]]:
    """What carries the errands of a pipeline out, in its worker.

    Args:
        context: What the process has opened.
        pipeline: Its register.
        own: What the pipeline opened for itself.
    """

    async def carry_out(order: ErrandInput) -> ErrandResult:
        entry = pipeline.errands.get(order.kind)
        if entry is None:
            return _refusal(Refused.kind, f"workers of {pipeline.name} do no {order.kind}")
        try:
            found = await load(entry)(context, own, order.arguments, order.by)
        except ServiceError as error:
            return _refusal(error.kind, str(error))
        except SettingsError as error:
            return _refusal(Refused.kind, f"a setting of the worker: {error}")
        except PortError as error:
            return _refusal(ServiceUnavailable.kind, str(error))
        answer = json.dumps(found)
        if len(answer) > LONGEST_ANSWER:
            return _refusal(Refused.kind, "the answer is too long: ask for less at a time")
        return ErrandResult(answer=answer)

    return carry_out


def _refusal(kind: str, problem: str) -> ErrandResult:
    return ErrandResult(refused=kind, problem=problem[:2_000])


class ErrandService:
    """Asks something of a pipeline's worker, and waits for the answer.

    Args:
        client: Of Temporal.
        patience: Seconds that a caller waits.
    """

    def __init__(self, client: Client, patience: float = PATIENCE_SECONDS) -> None:
        self._client, self._patience = client, patience

    async def ask(
        self, who: Identity, pipeline: str, kind: str, arguments: Mapping[str, Any]
    ) -> Any:
        """Have an errand done, for somebody who may ask for it.

        Args:
            who: Who asks.
            pipeline: Whose worker does it.
            kind: What is done, as its register names it.
            arguments: JSON.

        Returns:
            JSON.

        Raises:
            InvalidRequest: There is no such pipeline, or it does no such errand.
            ServiceUnavailable: No worker has done it in time; the message names the run.
        """
        asked = next((each for each in catalogue.PIPELINES if each.name == pipeline), None)
        if asked is None or kind not in asked.errands:
            known = " and ".join(each.name for each in catalogue.PIPELINES if kind in each.errands)
            raise InvalidRequest(f"{pipeline!r} does not do this; {known} can")
        found = await self._done(
            asked, ErrandInput(kind=kind, arguments=dict(arguments), by=who.subject)
        )
        if found.refused is not None:
            raise _REFUSALS.get(found.refused, Refused)(found.problem or "it was refused")
        return json.loads(found.answer)

    async def _done(self, pipeline: Pipeline, order: ErrandInput) -> ErrandResult:
        id = f"{ERRAND_PREFIX}/{pipeline.name}/{order.kind}/{uuid4().hex}"
        pair = SearchAttributePair(attributes.PIPELINE, pipeline.name)
        with temporal_errors():
            handle = await self._client.start_workflow(
                ERRAND,
                order,
                id=id,
                task_queue=pipeline.task_queue,
                execution_timeout=_LIFE,
                search_attributes=TypedSearchAttributes([pair]),
                result_type=ErrandResult,
            )
            try:
                async with asyncio.timeout(self._patience):
                    return await handle.result()
            except TimeoutError as error:
                raise TemporalUnavailable(
                    f"no worker of {pipeline.name} has answered within {self._patience:.0f} "
                    f"seconds; the run {id} ends by itself",
                    workflow_id=id,
                ) from error
            except WorkflowFailureError as error:
                raise ServiceUnavailable(
                    f"the run {id} failed: {error.cause}", workflow_id=id
                ) from error
