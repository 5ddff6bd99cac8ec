"""What the gateway serves of jobs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fastapi import APIRouter

from adapters.database.jobs.catalogue import open_catalogue
from workers.gateway.jobs import api
from workers.gateway.jobs.dependencies import invalid_job
from workers.gateway.jobs.pages import labels
from workers.gateway.jobs.pages.job_list import JobListPage
from workers.gateway.jobs.pages.job_page import JobPage
from workers.gateway.jobs.stac import stac_router
from workers.gateway.pages.contribution import PageRoute, PipelinePages
from workers.gateway.pages.language import N_
from workers.gateway.pages.menu import MenuEntry
from workers.gateway.pages.site import Site
from workers.gateway.parts import GatewayPart
from workers.pipelines.base import Context
from workers.services.jobs.errors import InvalidJob
from workers.services.jobs.factory import job_service
from workers.services.jobs.service import JobService
from workers.settings.common import AddressSettings

TEMPLATES: Final = Path(__file__).parent / "pages" / "templates"
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
    resources = context.resources
    service = job_service(context.environment, context.client, resources)
    public_url = AddressSettings.read(context.environment).public_url
    stac = stac_router(open_catalogue(resources.database), public_url, service.published)
    return part_of(service, resources.scratch, stac)


def part_of(service: JobService, scratch: Path, *further: APIRouter) -> GatewayPart:
    """The part over a service.

    Args:
        service: Of jobs.
        scratch: Folder for files on their way to a person.
        further: Further parts of its API.
    """

    def routes(site: Site) -> Sequence[PageRoute]:
        return _routes(site, service, scratch)

    return GatewayPart(
        service=service,
        description=_DESCRIPTION,
        routers=(api.router, *further),
        problems={InvalidJob: invalid_job},
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            names={"job_words": labels},
            questions=service.queries.parked,
            answer_at="#answer",
            menu=(MenuEntry("/jobs", N_("Jobs"), operators=True),),
        ),
    )


def _routes(site: Site, service: JobService, scratch: Path) -> Sequence[PageRoute]:
    page, one = JobPage(site, service, scratch), "/jobs/{job}"
    return (
        ("GET", "/jobs", JobListPage(site, service).show),
        ("GET", one, page.show),
        ("GET", f"{one}/live", page.live),
        ("GET", f"{one}/events", page.events),
        ("GET", f"{one}/preview", page.preview),
        ("GET", f"{one}/files", page.file),
        ("POST", f"{one}/answer", page.answer),
        ("POST", f"{one}/restart", page.restart),
        ("POST", f"{one}/cancel", page.cancel),
        ("POST", f"{one}/webhooks/{{number}}/send", page.send_again),
    )
