"""What the gateway serves of jobs."""

from typing import Final

from workers.gateway.jobs import api
from workers.gateway.jobs.dependencies import invalid_job
from workers.gateway.parts import GatewayPart
from workers.pipelines.base import Context
from workers.services.jobs.errors import InvalidJob
from workers.services.jobs.opening import job_service
from workers.services.jobs.service import JobService

_DESCRIPTION: Final = (
    "Run staged jobs: submit one, follow its stages and tasks, restart it from the stage that "
    "failed, and see what became of its webhooks."
)


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    return part_of(job_service(context.environment, context.client, context.resources))


def part_of(service: JobService) -> GatewayPart:
    """The part over a service."""
    return GatewayPart(
        service=service,
        description=_DESCRIPTION,
        routers=(api.router,),
        problems={InvalidJob: invalid_job},
    )
