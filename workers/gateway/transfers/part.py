"""What the gateway serves of transfers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapters.database.transfers.store import SqlTransferStore
from workers.gateway.pages.site import Site
from workers.gateway.parts import GatewayPart, MenuEntry, PageRoute, PipelinePages
from workers.gateway.transfers.pages.routes_page import RoutesPage
from workers.pipelines.base import Context
from workers.resources.transfers import route_store
from workers.services.transfers.routes import RouteService
from workers.settings.transfers import queues_of

TEMPLATES: Final = Path(__file__).parent / "pages" / "templates"


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    database = context.resources.database
    service = RouteService(
        route_store(context.environment, database),
        SqlTransferStore(database),
        tuple(queues_of(context.environment)),
    )
    return part_of(service)


def part_of(service: RouteService) -> GatewayPart:
    """The part over a service.

    Args:
        service: Of routes.
    """

    def routes(site: Site) -> Sequence[PageRoute]:
        page = RoutesPage(site, service)
        return (
            ("GET", "/routes", page.show),
            ("POST", "/routes/add", page.add),
            ("POST", "/routes/change", page.change),
            ("POST", "/routes/test", page.test),
        )

    return GatewayPart(
        service=service,
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            menu=(MenuEntry("/routes", "Routes", operators=True),),
        ),
    )
