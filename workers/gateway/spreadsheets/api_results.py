"""Outcome of the rows, and taking them back."""

from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse

from contracts.spreadsheets import Outcome
from workers.gateway.http.identity import Who
from workers.gateway.spreadsheets import serializers
from workers.gateway.spreadsheets.dependencies import (
    PAGED,
    ImportId,
    PageNumber,
    PageSize,
    TheService,
    answers_with,
    describe_page,
)
from workers.gateway.spreadsheets.downloads import XLSX, ReportDownload
from workers.gateway.spreadsheets.problems import import_problems
from workers.gateway.spreadsheets.schemas import (
    DecisionView,
    ResultView,
    SummaryView,
    UndoPreviewView,
    UndoView,
)
from workers.services.errors import NotFound

router = APIRouter(
    prefix="/api/imports/{uuid}",
    tags=["results"],
    responses=import_problems(401, 403, 404, 410, 422, 503),
)

_CONFLICTS: Final = 200
_UNDO_AT: Final = {
    "Location": {
        "schema": {"type": "string"},
        "description": "Where the undo can be followed",
        "example": "/api/imports/0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11/undo",
    }
}


@router.get("/results", responses=answers_with(200, PAGED))
async def get_results(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    outcome: Outcome | None = None,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> list[ResultView]:
    """Outcome of each row by its number in the file, with its cells and what is wrong with them."""
    found = await service.results(who, uuid, outcome=outcome, page=page, size=size)
    describe_page(request, response, found.total, page, size)
    row = await service.get(who, uuid)
    lines = [each.line for each in found.items]
    headers, changed = await service.review.corrections(row, lines)
    shown = await service.result_rows.read(row, lines)
    return serializers.result_views(found.items, headers, changed, shown)


@router.get("/results/summary")
async def get_summary(service: TheService, who: Who, uuid: ImportId) -> SummaryView:
    """Rows per outcome; after a dry run the first 100 differences as well."""
    return serializers.summary_view(await service.summary(who, uuid))


@router.get(
    "/report",
    response_class=FileResponse,
    responses={
        200: {
            "description": "XLSX",
            "content": {XLSX: {"schema": {"type": "string", "format": "binary"}}},
        },
        **import_problems(409),
    },
)
async def get_report(service: TheService, who: Who, uuid: ImportId) -> ReportDownload:
    """The rows that did not go in, with comments on the cells that are wrong."""
    return ReportDownload(await service.report(who, uuid))


@router.get("/decisions", responses=answers_with(200, PAGED))
async def get_decisions(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> list[DecisionView]:
    """Who decided what and when, and what else there was to choose from; the newest first."""
    found = await service.decisions(who, uuid, page=page, size=size)
    describe_page(request, response, found.total, page, size)
    return serializers.decision_views(found.items)


@router.post(
    "/undo",
    status_code=202,
    responses={**import_problems(409), **answers_with(202, _UNDO_AT)},
)
async def undo_import(service: TheService, who: Who, uuid: ImportId, response: Response) -> None:
    """Take the rows of an import back: delete created ones, restore updated ones.

    A row of which anything was changed since is left alone and reported: `UNDONE_PARTLY`. It can
    be undone again, for what is left.
    """
    await service.undo(who, uuid)
    response.headers["location"] = f"/api/imports/{uuid}/undo"


@router.get("/undo/preview", responses=import_problems(409))
async def preview_undo(service: TheService, who: Who, uuid: ImportId) -> UndoPreviewView:
    """What an undo would take back now, and the first rows that it would leave alone and why."""
    found, conflicts = await service.preview_undo(who, uuid)
    return serializers.undo_preview_view(found, conflicts)


@router.get("/undo")
async def get_undo(service: TheService, who: Who, uuid: ImportId) -> UndoView:
    """How far an undo has come, and what it left alone."""
    found = await service.undo_view(who, uuid)
    if found is None:
        raise NotFound("no undo of this import has begun")
    conflicts = await service.undo_conflicts(who, uuid, size=_CONFLICTS)
    return serializers.undo_view(found, conflicts.items)
