"""What the gateway serves of spreadsheets."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from adapters.database.spreadsheets.views import SqlSpreadsheetViews
from contracts.spreadsheets import workflow_id
from workers.gateway.pages.contribution import PageRoute, PipelinePages
from workers.gateway.pages.language import N_
from workers.gateway.pages.menu import MenuEntry
from workers.gateway.pages.site import Site
from workers.gateway.parts import GatewayPart
from workers.gateway.spreadsheets import (
    api,
    api_mappings,
    api_memory,
    api_results,
    api_review,
    api_templates,
    api_value_files,
)
from workers.gateway.spreadsheets.pages import labels
from workers.gateway.spreadsheets.pages.actions import HandlingPages
from workers.gateway.spreadsheets.pages.decisions import DecisionPages
from workers.gateway.spreadsheets.pages.import_list import ImportListPage
from workers.gateway.spreadsheets.pages.import_page import ImportPage
from workers.gateway.spreadsheets.pages.memory import MemoryPages
from workers.gateway.spreadsheets.pages.review import ReviewPages
from workers.gateway.spreadsheets.pages.upload import UploadPages
from workers.gateway.spreadsheets.pages.value_files import ValueFilePages
from workers.gateway.spreadsheets.problems import still_open
from workers.pipelines.base import Context
from workers.resources.spreadsheets import spreadsheet_resources
from workers.services.identity import Identity
from workers.services.spreadsheets.errors import StillOpen
from workers.services.spreadsheets.service import SpreadsheetService
from workers.settings.spreadsheets import SpreadsheetSettings

TEMPLATES: Final = Path(__file__).parent / "pages" / "templates"
_DESCRIPTION: Final = (
    "Import spreadsheets: upload one, decide what its columns and values mean where docflow does "
    "not know, and follow its rows. Every error is a problem (RFC 9457). Mapping statuses read "
    "AUTO_MATCHED, MANUAL_MATCHED, UNRESOLVED and IGNORED."
)
_MENU: Final = (
    MenuEntry("/imports", N_("Imports")),
    MenuEntry("/imports/new", N_("New import"), True),
)


def open_part(context: Context, settings: SpreadsheetSettings) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: Of uploads and answers.
    """
    resources = context.resources
    sheets = spreadsheet_resources(resources.database)
    return part_of(
        SpreadsheetService(
            context.client,
            SqlSpreadsheetViews(resources.database),
            sheets.store,
            resources.blobs,
            sheets.types,
            settings,
            resources.scratch,
        )
    )


def part_of(service: SpreadsheetService) -> GatewayPart:
    """The part over a service."""

    def routes(site: Site) -> Sequence[PageRoute]:
        return _routes(site, service)

    def type_titles() -> Mapping[str, str]:
        return {each.name: each.title for each in service.types()}

    async def started_by(who: Identity) -> Collection[str]:
        return [workflow_id(uuid) for uuid in await service.waiting_of(who)]

    return GatewayPart(
        service=service,
        description=_DESCRIPTION,
        routers=(
            api.router,
            api_mappings.router,
            api_results.router,
            api_memory.router,
            api_review.router,
            api_value_files.router,
            api_templates.router,
        ),
        uploads=(
            *("/api/imports", api_review.UPLOADS, api_value_files.UPLOADS),
            *("/imports", "/imports/{uuid}/review/upload", "/imports/{uuid}/values/upload"),
        ),
        problems={StillOpen: still_open},
        started_by=started_by,
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            names={"words": labels},
            menu=_MENU,
            type_titles=type_titles,
            state_titles=labels.WAITING,
        ),
    )


def _routes(site: Site, service: SpreadsheetService) -> Sequence[PageRoute]:
    imports, upload = ImportListPage(site, service), UploadPages(site, service)
    page = ImportPage(site, service)
    memory = MemoryPages(site, service)
    review = ReviewPages(site, service, page)
    value_files = ValueFilePages(site, service, page)
    decide, handle = DecisionPages(site, service, page), HandlingPages(site, service, page)
    one = "/imports/{uuid}"
    return (
        ("GET", "/imports", imports.show),
        ("GET", "/imports/new", upload.show),
        ("GET", "/imports/memory", memory.show),
        ("GET", "/imports/templates/{name}", upload.template),
        ("POST", "/imports/memory", memory.change),
        ("POST", "/imports", upload.submit),
        ("GET", one, page.show),
        ("GET", f"{one}/live", page.live),
        ("POST", f"{one}/columns", decide.columns),
        ("POST", f"{one}/layout", decide.layout),
        ("POST", f"{one}/rows", decide.rows),
        ("POST", f"{one}/values", decide.values),
        ("GET", f"{one}/values/export", value_files.export),
        ("POST", f"{one}/values/upload", value_files.upload),
        ("GET", f"{one}/candidates", decide.candidates),
        ("POST", f"{one}/review/rows", review.rows),
        ("POST", f"{one}/review/preview", review.preview),
        ("POST", f"{one}/review/change", review.change),
        ("GET", f"{one}/review/export", review.export),
        ("POST", f"{one}/review/upload", review.upload),
        ("POST", f"{one}/retry", handle.retry),
        ("POST", f"{one}/reassign", handle.reassign),
        ("POST", f"{one}/cancel", handle.cancel),
        ("POST", f"{one}/undo", handle.undo),
        ("GET", f"{one}/undo-preview", handle.undo_preview),
        ("GET", f"{one}/report", handle.report),
        ("GET", f"{one}/decisions", handle.decisions),
    )
