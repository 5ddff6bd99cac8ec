"""What the gateway serves of spreadsheets."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.ports.errors import PortError
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.pages.renderer import N_, MenuEntry
from workers.shared.gateway.pages.site import PageRoute, PipelinePages, Site
from workers.shared.register import Context
from workers.shared.services.quotas import Quotas
from workers.spreadsheets import api, memory_v1, people_v1, review_v1, upload_tokens, v1
from workers.spreadsheets.api import still_open
from workers.spreadsheets.pages import labels
from workers.spreadsheets.pages.actions import (
    DecisionPages,
    HandlingPages,
    MemoryPages,
    ValueFilePages,
)
from workers.spreadsheets.pages.import_pages import ImportListPage, ImportPage
from workers.spreadsheets.pages.review import ReviewPages
from workers.spreadsheets.pages.review_grid import GridPages
from workers.spreadsheets.pages.upload_pages import UploadPages
from workers.spreadsheets.resources import spreadsheet_resources
from workers.spreadsheets.run_actions import ServedSpreadsheets
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.settings import SpreadsheetSettings

TEMPLATES: Final = Path(__file__).parent / "templates"
_DESCRIPTION: Final = (
    "Import spreadsheets: upload one, decide what its columns and values mean where docflow does "
    "not know, and follow its rows. Every error is a problem (RFC 9457). Mapping statuses read "
    "AUTO_MATCHED, MANUAL_MATCHED, UNRESOLVED and IGNORED."
)
_MENU: Final = (MenuEntry("/uploads", N_("Import"), key="u"),)


_ONE: Final = "/uploads/{uuid}"
_BY_UPLOAD_TOKEN: Final = (
    *("createUpload", "getUpload", "watchUpload", "previewUpload", "changeUpload"),
    *("listUploadColumns", "decideUploadColumns", "listUploadCandidates"),
    *("listUploadValues", "decideUploadValues", "exportUploadValues", "importUploadValues"),
    *("getReview", "listReviewRows", "listReviewChanges", "listReviewSuggestions"),
    *("previewReviewChange", "changeReview", "exportReview", "importReview"),
    *("confirmUpload", "listUploadResults", "getUploadSummary", "listUploadDecisions"),
    *("GET /uploads/new", "GET /uploads/templates/{name}", "POST /uploads", f"GET {_ONE}"),
    *(f"GET {_ONE}/{each}" for each in ("live", "candidates", "report", "decisions")),
    *(f"GET {_ONE}/{each}/export" for each in ("values", "review")),
    *(f"POST {_ONE}/{each}" for each in ("columns", "layout", "rows", "values", "retry", "cancel")),
    *(f"POST {_ONE}/review/{each}" for each in ("rows", "preview", "change", "upload")),
    *(f"GET {_ONE}/review/{each}" for each in ("grid", "lines", "state")),
    *(f"POST {_ONE}/review/{each}" for each in ("grid", "grid/preview")),
    f"POST {_ONE}/values/upload",
)
"""Its pages and operations for who makes one upload, maps, reviews and confirms it."""


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
            Quotas.read(context.environment, resources.database),
        )
    )


def part_of(service: SpreadsheetService) -> GatewayPart:
    """The part over a service."""

    def routes(site: Site) -> Sequence[PageRoute]:
        return _routes(site, service)

    def type_titles() -> Mapping[str, str]:
        return {each.name: each.title for each in discover().values()}

    async def describe(document: dict[str, Any]) -> None:
        # Without the database, the document is as good as it was when it was written.
        with suppress(PortError):
            named = {each.name: each.title for each in await service.types()}
            for path, name in (("/api/imports", "importType"), (v1.PREFIX, "import_type")):
                form = document["paths"][path]["post"]["requestBody"]["content"]
                kind = form["multipart/form-data"]["schema"]["properties"][name]
                kind["enum"] = [*named]
                kind["examples"] = [*named][:3]
                kind["description"] = "; ".join(f"{name}: {title}" for name, title in named.items())

    return GatewayPart(
        service=service,
        runs=ServedSpreadsheets(service),
        describe=describe,
        description=_DESCRIPTION,
        routers=(
            *api.ROUTERS,
            *memory_v1.ROUTERS,
            *v1.ROUTERS,
            review_v1.review,
            people_v1.router,
            upload_tokens.router,
        ),
        uploads=(
            *("/api/imports", v1.PREFIX),
            *(f"{v1.PREFIX}/{{uuid}}/{each}/file" for each in ("values", "review")),
            *("/uploads", "/uploads/{uuid}/review/upload", "/uploads/{uuid}/values/upload"),
        ),
        by_upload_token=_BY_UPLOAD_TOKEN,
        problems={v1.Unconfirmed: v1.unconfirmed, StillOpen: still_open},
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            names={"words": labels},
            reading=(
                "/uploads/{uuid}/review/preview",
                "/uploads/{uuid}/review/grid/preview",
            ),
            menu=_MENU,
            importer="/uploads/new",
            new=(MenuEntry("/uploads/new", N_("New upload"), writes=True),),
            type_titles=type_titles,
            state_titles=labels.WAITING,
        ),
    )


def _routes(site: Site, service: SpreadsheetService) -> Sequence[PageRoute]:
    imports, upload = ImportListPage(site, service), UploadPages(site, service)
    page = ImportPage(site, service)
    memory = MemoryPages(site, service)
    review, grid = ReviewPages(site, service, page), GridPages(site, service)
    value_files = ValueFilePages(site, service, page)
    decide, handle = DecisionPages(site, service, page), HandlingPages(site, service, page)
    one = _ONE
    return (
        ("GET", "/uploads", imports.show),
        ("GET", "/uploads/new", upload.show),
        ("GET", "/uploads/memory", memory.show),
        ("GET", "/uploads/templates/{name}", upload.template),
        ("POST", "/uploads/memory", memory.change),
        ("POST", "/uploads/contexts", upload.make_context),
        ("POST", "/uploads", upload.submit),
        ("GET", one, page.show),
        ("GET", f"{one}/live", page.live),
        ("POST", f"{one}/columns", decide.columns),
        ("POST", f"{one}/layout", decide.layout),
        ("POST", f"{one}/rows", decide.rows),
        ("POST", f"{one}/values", decide.values),
        ("GET", f"{one}/values/export", value_files.export),
        ("POST", f"{one}/values/upload", value_files.upload),
        ("GET", f"{one}/candidates", decide.candidates),
        ("GET", f"{one}/review/grid", grid.rows),
        ("GET", f"{one}/review/lines", grid.lines),
        ("GET", f"{one}/review/state", grid.state),
        ("POST", f"{one}/review/grid", grid.change),
        ("POST", f"{one}/review/grid/preview", grid.preview),
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
