"""What can be done to runs of a pipeline that has no verbs of its own: all from its register."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC
from typing import Any

from pydantic import ValidationError

from workers.pipelines.base import Pipeline, Run
from workers.services.errors import InvalidRequest, NotFound
from workers.services.verbs import AnswerRequest, Filters, Report, RunEntry


class RegisteredVerbs:
    """Runs as Temporal knows them, answered by the updates that the register names.

    Args:
        pipeline: The register.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline.name
        self.naming = f"a workflow id of {pipeline.name}"
        self.states: Sequence[str] = tuple(
            dict.fromkeys(str(state) for kind in pipeline.runs for state in kind.states)
        )
        self.filters: frozenset[str] = frozenset()
        self.corrects: frozenset[str] = frozenset()

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """There are no short forms."""
        return None

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Runs within Temporal's retention, the newest first."""
        from workers.services.runs import open_runs, temporal_errors
        from workflows import attributes

        runs = await open_runs(environment)
        query = f"Pipeline = '{self.pipeline}'"
        if filters.state is not None:
            query += f" AND State = '{filters.state}'"
        with temporal_errors():
            found = [each async for each in runs.client.list_workflows(query, limit=filters.limit)]
        return [
            RunEntry(
                workflow_id=each.id,
                name=each.id,
                pipeline=self.pipeline,
                type=each.typed_search_attributes.get(attributes.DOCUMENT_TYPE)
                or each.workflow_type,
                state=each.typed_search_attributes.get(attributes.STATE) or "",
                since=each.start_time.astimezone(UTC),
            )
            for each in found
        ]

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send the update of the verb.

        Raises:
            InvalidRequest: The answer takes no reason, or not this one.
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        from workers.services.runs import open_runs

        contract = run.kind.answers[request.verb]
        given = {"by": request.by, "reason": request.reason}
        try:
            answer = contract.model_validate(
                {name: value for name, value in given.items() if value is not None}
            )
        except ValidationError as error:
            said = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, said["loc"]))
            raise InvalidRequest(f"{request.verb}: {field}: {said['msg']}") from error
        runs = await open_runs(environment)
        await runs.update(run.workflow_id, request.verb, answer, object, self.pipeline)
        return {"workflow_id": run.workflow_id, "answer": request.verb}

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """There is none.

        Raises:
            NotFound: Always.
        """
        raise NotFound(f"{run.workflow_id} has no report")
