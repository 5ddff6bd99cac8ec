"""The review of rows over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.responses import FileResponse

from activities.spreadsheets.records import SpreadsheetRow
from activities.spreadsheets.review_rules import (
    ChangeEffect,
    RememberedOperation,
    ReviewOperationView,
    ReviewOverview,
    ReviewRow,
)
from workers.shared.gateway.http.etags import etag
from workers.shared.gateway.http.requests import Who
from workers.shared.gateway.http.upload import Upload
from workers.spreadsheets.api import (
    PAGED,
    VERSIONED,
    XLSX,
    IfMatch,
    ImportId,
    PageNumber,
    PageSize,
    ReportDownload,
    TheService,
    answers_with,
    describe_page,
    expected_version,
    import_problems,
)
from workers.spreadsheets.bodies import ChangeBody
from workers.spreadsheets.review_files import RowFilter
from workers.spreadsheets.upload_form import check_beginning

UPLOADS: Final = "/api/imports/{uuid}/review/upload"
"""Takes a file."""

router = APIRouter(
    prefix="/api/imports/{uuid}/review",
    tags=["review"],
    responses=import_problems(401, 403, 404, 409, 410, 422, 503),
)

_CHANGED: Final = {**answers_with(202, VERSIONED), **import_problems(400, 412, 413)}
_EXAMPLES: Final[dict[str, Any]] = {
    name: {"value": value}
    for name, value in {
        "set": {"kind": "SET", "cells": [{"row": 17, "column": 3, "value": "anna@example.org"}]},
        "replace": {"kind": "REPLACE", "column": 3, "find": "(at)", "put": "@"},
        "constant": {"kind": "CONSTANT", "column": 5, "value": "AT", "blanks": True},
        "split": {"kind": "SPLIT", "column": 1, "fields": ["FIRST_NAME", "LAST_NAME"]},
        "join": {"kind": "JOIN", "columns": [4, 5], "field": "STREET"},
        "notation": {"kind": "NOTATION", "column": 4, "notation": "DAY_FIRST"},
        "exclude": {"kind": "EXCLUDE", "rows": [4, 9]},
        "undo": {"kind": "UNDO", "version": 6},
    }.items()
}


_Change = Annotated[ChangeBody, Body(openapi_examples=_EXAMPLES)]
_FORM: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {
                        "type": "string",
                        "format": "binary",
                        "description": "An export of this review, corrected",
                    }
                },
            }
        }
    },
}


@router.get("", responses=answers_with(200, VERSIONED))
async def get_review(
    service: TheService, who: Who, uuid: ImportId, response: Response
) -> ReviewOverview:
    """Figures and columns of a review."""
    found = await service.review.overview(who, uuid)
    response.headers["etag"] = etag(found.version)
    return found


@router.get("/rows", responses=answers_with(200, PAGED, VERSIONED))
async def get_review_rows(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    wanted: Annotated[
        RowFilter, Query(alias="filter", description="ALL begins with those with problems.")
    ] = RowFilter.ALL,
    column: Annotated[
        int | None,
        Query(alias="columnId", ge=1, le=256, description="With PROBLEMS: only in this column."),
    ] = None,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[ReviewRow]:
    """Rows as they are now, those with problems first."""
    version, found = await service.review.rows(
        who, uuid, wanted=wanted, column=column, page=page, size=size
    )
    describe_page(request, response, found.total, page, size)
    response.headers["etag"] = etag(version)
    return found.items


@router.get("/operations", responses=answers_with(200, PAGED))
async def get_review_operations(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[ReviewOperationView]:
    """The changes to the rows, the newest first."""
    found = await service.review.operations(who, uuid, page=page, size=size)
    describe_page(request, response, found.total, page, size)
    return found.items


@router.post("/operations", status_code=202, responses=_CHANGED)
async def change_review(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: _Change,
    response: Response,
    if_match: IfMatch = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            pattern="^[ -~]+$",
            description="A second request with the same key and change changes nothing more.",
        ),
    ] = None,
) -> ChangeEffect:
    """Change rows. 412: they were changed meanwhile; the problem says by whom and what."""
    version = await expected_version(service, who, uuid, if_match)
    found = await service.review.change(who, uuid, body.root, version, key=idempotency_key)
    response.headers["etag"] = etag(found.version)
    return found


@router.post("/operations/preview", responses=import_problems(400, 413))
async def preview_review_change(
    service: TheService, who: Who, uuid: ImportId, body: _Change
) -> ChangeEffect:
    """What a change would do: figures before and after, and some of the cells."""
    return await service.review.preview(who, uuid, body.root)


@router.get("/remembered")
async def get_remembered_operations(
    service: TheService, who: Who, uuid: ImportId
) -> Sequence[RememberedOperation]:
    """What was done to such columns in earlier imports, to be requested again."""
    return await service.review.remembered(who, uuid)


@router.post(
    "/import",
    status_code=202,
    response_model_exclude_unset=True,
    responses={**answers_with(202, VERSIONED), **import_problems(412)},
)
async def import_review(
    service: TheService, who: Who, uuid: ImportId, response: Response, if_match: IfMatch = None
) -> SpreadsheetRow:
    """Confirm the rows as they are and write them, those of a dry run too."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.review.import_now(who, uuid, version)
    response.headers["etag"] = etag(answer.version)
    return await service.get(who, uuid)


@router.get(
    "/export",
    response_class=FileResponse,
    responses={
        200: {
            "description": "XLSX",
            "content": {XLSX: {"schema": {"type": "string", "format": "binary"}}},
        },
    },
)
async def export_review(
    service: TheService,
    who: Who,
    uuid: ImportId,
    wanted: Annotated[RowFilter, Query(alias="filter")] = RowFilter.PROBLEMS,
) -> ReportDownload:
    """Rows with their numbers and problems, to be corrected and uploaded again."""
    return ReportDownload(await service.review.export(who, uuid, wanted))


@router.post(
    "/upload",
    status_code=202,
    responses={**_CHANGED, **import_problems(415)},
    openapi_extra={"requestBody": _FORM},
)
async def upload_review(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
) -> ChangeEffect:
    """Take a corrected export in: one change, of all cells that differ."""
    await service.writable(who, uuid)
    version = await expected_version(service, who, uuid, if_match)
    upload = Upload(request, service.settings.upload_limit, check_beginning)
    found = await service.review.upload(who, uuid, upload, version)
    if found is None:
        overview = await service.review.overview(who, uuid)
        response.headers["etag"] = etag(overview.version)
        return ChangeEffect(version=overview.version, wrong_rows=overview.wrong)
    response.headers["etag"] = etag(found.version)
    return found
