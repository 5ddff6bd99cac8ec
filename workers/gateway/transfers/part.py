"""What the gateway serves of transfers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapters.database.transfers.store import SqlTransferStore
from domain.causes import cause_key, cause_of
from workers.gateway.pages.contribution import Alike, PageRoute, PipelinePages
from workers.gateway.pages.language import N_
from workers.gateway.pages.menu import MenuEntry
from workers.gateway.pages.site import Site
from workers.gateway.parts import GatewayPart
from workers.gateway.transfers import api
from workers.gateway.transfers.pages import labels
from workers.gateway.transfers.pages.group_page import GROUPS, GroupPage
from workers.gateway.transfers.pages.routes_page import RoutesPage
from workers.gateway.transfers.pages.transfer_page import TransferPage
from workers.pipelines.base import Context
from workers.resources.transfers import route_store
from workers.services.transfers.factory import (
    parked_groups,
    transfer_page_service,
    transfer_service,
)
from workers.services.transfers.overview import TransferPageService
from workers.services.transfers.parked_groups import ParkedGroups
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
    service = transfer_service(context.environment, context.client, database)
    blobs = context.resources.blobs
    one = transfer_page_service(
        context.environment, context.client, database, service, lambda: blobs
    )
    groups = parked_groups(context.environment, context.client, service)
    return part_of(service, routes, one, groups)


def part_of(
    service: TransferService,
    routes: RouteService,
    one: TransferPageService,
    groups: ParkedGroups,
) -> GatewayPart:
    """The part over services.

    Args:
        service: Of transfers.
        routes: Of routes.
        one: Of the page of one transfer.
        groups: Of those that wait for one cause.
    """

    def pages(site: Site) -> Sequence[PageRoute]:
        page = RoutesPage(site, routes, service.reroute)
        transfer, at = TransferPage(site, one), "/transfers/{transfer}"
        group = GroupPage(site, groups)
        return (
            ("GET", f"{GROUPS}/{{group}}", group.show),
            ("POST", f"{GROUPS}/{{group}}", group.answer),
            ("GET", at, transfer.show),
            ("POST", f"{at}/answer", transfer.answer),
            ("POST", f"{at}/assign", transfer.assign),
            ("POST", f"{at}/reroute", transfer.reroute),
            ("POST", f"{at}/cancel", transfer.cancel),
            ("POST", f"{at}/resend", transfer.resend),
            ("POST", f"{at}/redrive", transfer.redrive),
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
            names={"transfer_words": labels},
            menu=(MenuEntry("/routes", N_("Routes"), operators=True),),
            type_titles=lambda: {name: f"queue {name}" for name in service.queues},
            questions=service.parked,
            command=_command,
            alike=_alike,
            answer_at="#answer",
        ),
    )


def _command(workflow_id: str) -> str:
    """Of what has no page, as a gap in what is expected."""
    return f"docflow show {workflow_id}"


def _alike(queue: str, question: str) -> Alike:
    """Transfers of a queue that wait for one cause."""
    return Alike(f"{GROUPS}/{cause_key(queue, question)}", cause_of(question))
