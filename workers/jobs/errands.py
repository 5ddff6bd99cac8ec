"""What people ask of the workers of jobs, beside what they ask about their queue."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from workers.jobs.factory import job_service
from workers.jobs.service import JobService
from workers.shared.register import Context
from workers.shared.services.errands import arguments_of
from workers.shared.services.identity import OPERATOR, Identity
from workflows.jobs.runs import JobRequest


class Restart(BaseModel):
    """Which job begins again, and where."""

    model_config = ConfigDict(extra="forbid")

    job: Annotated[str, Field(min_length=1, max_length=200)]
    """Its id, the first 8 characters of it or more, or its alias."""
    from_stage: Annotated[int | None, Field(ge=1)] = None
    """None: the stage that failed."""


async def start(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Start a job, or find the one that does the same.

    Raises:
        InvalidRequest: A field of the request is wrong; nothing was started.
        InvalidJob: A parameter is wrong, or its type is not installed; nothing was started.
        TemporalUnavailable: Temporal does not answer.
    """
    service, who = _service(context, by)
    done = await service.submit(who, arguments_of(JobRequest, given))
    return done.model_dump(mode="json")


async def restart(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Begin another attempt at the stage of a job that failed, or at an earlier one.

    Raises:
        InvalidRequest: A field of the request is wrong, or there is no such stage.
        NotFound: There is no such job.
        WrongState: The job runs, or has completed.
        TemporalUnavailable: Temporal does not answer.
    """
    asked = arguments_of(Restart, given)
    service, who = _service(context, by)
    done = await service.restart(who, asked.job, asked.from_stage)
    return done.model_dump(mode="json")


def _service(context: Context, by: str) -> tuple[JobService, Identity]:
    service = job_service(context.environment, context.client, context.resources)
    return service, Identity(by, (), frozenset({OPERATOR}))
