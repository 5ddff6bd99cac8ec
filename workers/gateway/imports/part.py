"""What the gateway serves of document imports: where one stands, and the answers to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapters.database.imports.views import SqlImportTasks
from workers.gateway.imports import api
from workers.gateway.imports.page import ImportPage
from workers.gateway.pages.contribution import PageRoute, PipelinePages
from workers.gateway.pages.site import Site
from workers.gateway.parts import GatewayPart
from workers.pipelines.base import Context
from workers.services.imports.runs import ImportRuns
from workers.services.imports.service import ImportService

TEMPLATES: Final = Path(__file__).parent / "templates"
_DESCRIPTION: Final = (
    "Answer document imports that wait for a person: with another sheet, the meaning of a column, "
    "the schedule that a file updates, or a corrected file."
)


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    resources = context.resources
    return part_of(
        ImportService(
            ImportRuns(context.client, context.environment),
            SqlImportTasks(resources.database),
            resources.blobs,
        )
    )


def part_of(service: ImportService) -> GatewayPart:
    """The part over a service."""

    def routes(site: Site) -> Sequence[PageRoute]:
        page = ImportPage(site, service)
        return (
            ("GET", "/documents", page.show),
            ("POST", "/documents/answers", page.answer),
            ("POST", "/documents/files", page.retry_with_file),
        )

    return GatewayPart(
        service=service,
        description=_DESCRIPTION,
        routers=(api.router,),
        uploads=("/api/documents/files", "/documents/files"),
        pages=PipelinePages(routes=routes, templates=TEMPLATES),
    )
