"""What the gateway serves of transfers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapters.database.transfers.store import SqlTransferStore
from contracts.transfers import TRANSFER_PREFIX
from workers.gateway.pages.contribution import PageRoute, PipelinePages
from workers.gateway.pages.language import N_
from workers.gateway.pages.menu import MenuEntry
from workers.gateway.pages.site import Site
from workers.gateway.parts import GatewayPart
from workers.gateway.transfers import api
from workers.gateway.transfers.pages.routes_page import RoutesPage
from workers.pipelines.base import Context
from workers.resources.transfers import route_store
from workers.services.transfers.factory import transfer_service
from workers.services.transfers.routes import RouteService
from workers.services.transfers.service import TransferService
from workers.settings.transfers import queues_of

TEMPLATES: Final = Path(__file__).parent / "pages" / "templates"
_DESCRIPTION: Final = (
    "Have files moved: send an event that says that one is there, and see what became of it."
)


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    database = context.resources.database
    routes = RouteService(
        route_store(context.environment, database),
        SqlTransferStore(database),
        tuple(queues_of(context.environment)),
    )
    return part_of(transfer_service(context.environment, context.client, database), routes)


def part_of(service: TransferService, routes: RouteService) -> GatewayPart:
    """The part over services.

    Args:
        service: Of transfers.
        routes: Of routes.
    """

    def pages(site: Site) -> Sequence[PageRoute]:
        page = RoutesPage(site, routes, service.reroute)
        return (
            ("GET", "/routes", page.show),
            ("POST", "/routes/add", page.add),
            ("POST", "/routes/change", page.change),
            ("POST", "/routes/test", page.test),
            ("POST", "/routes/reroute", page.reroute),
        )

    return GatewayPart(
        service=service,
        description=_DESCRIPTION,
        routers=(api.router,),
        pages=PipelinePages(
            routes=pages,
            templates=TEMPLATES,
            menu=(MenuEntry("/routes", N_("Routes"), operators=True),),
            type_titles=lambda: {name: f"queue {name}" for name in service.queues},
            questions=service.parked,
            command=_command,
        ),
    )


def _command(workflow_id: str) -> str:
    """A job by the beginning of its transfer's id, as its title has it; a gap by its own id."""
    prefix, _, rest = workflow_id.partition("/")
    return f"docflow show {rest[:8] if prefix == TRANSFER_PREFIX else workflow_id}"
