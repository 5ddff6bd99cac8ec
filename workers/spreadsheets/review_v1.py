"""The review of an upload's rows over HTTP, before anything is written."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.responses import FileResponse

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
from workers.spreadsheets import bodies
from workers.spreadsheets.bodies import ChangeBody
from workers.spreadsheets.http import (
    FILE,
    VERSIONED,
    IfMatch,
    ReportDownload,
    ThePlace,
    TheService,
    UploadId,
    answers_with,
    expected_version,
    import_problems,
)
from workers.spreadsheets.review_files import RowFilter
from workers.spreadsheets.upload_form import check_beginning
from workers.spreadsheets.v1 import PREFIX
from workflows.shared.contracts import PlainRecord, served


class ReviewRowPage(PlainRecord):
    """Some rows of a review, as they are now."""

    items: Annotated[Sequence[ReviewRow], served("The rows", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]
    total: Annotated[int, served("Rows that fit, on all pages", 150)]


class ReviewChangePage(PlainRecord):
    """Some changes of a review, the newest first."""

    items: Annotated[Sequence[ReviewOperationView], served("The changes", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


class SuggestionList(PlainRecord):
    """Changes that people made to such columns in earlier files."""

    items: Annotated[
        Sequence[RememberedOperation], served("The changes, as they are asked for", [])
    ]
    next: Annotated[None, served("Always null: there are few", None)] = None


review = APIRouter(
    prefix=f"{PREFIX}/{{uuid:uuid}}/review",
    tags=["review"],
    responses=import_problems(401, 403, 404, 409, 410, 422, 503),
)
_CHANGED: Final = {**answers_with(200, VERSIONED), **import_problems(412)}
_Change = Annotated[ChangeBody, Body(openapi_examples=bodies.changes)]


@review.get("", responses=answers_with(200, VERSIONED))
async def get_review(
    service: TheService, who: Who, uuid: UploadId, response: Response
) -> ReviewOverview:
    """Show figures and columns of a review."""
    found = await service.review.overview(who, uuid)
    response.headers["etag"] = etag(found.version)
    return found


@review.get("/rows", responses=answers_with(200, VERSIONED))
async def list_review_rows(
    service: TheService,
    who: Who,
    uuid: UploadId,
    response: Response,
    place: ThePlace,
    wanted: Annotated[
        RowFilter, Query(alias="filter", description="ALL begins with those with problems")
    ] = RowFilter.ALL,
    column: Annotated[
        int | None, Query(ge=1, le=256, description="With PROBLEMS: only in this column")
    ] = None,
) -> ReviewRowPage:
    """List rows as they are now, those with problems first."""
    version, found = await service.review.rows(
        who, uuid, wanted=wanted, column=column, page=place.page, size=place.size
    )
    response.headers["etag"] = etag(version)
    items, next = place.rest(found)
    return ReviewRowPage(items=items, next=next, total=found.total)


@review.get("/changes")
async def list_review_changes(
    service: TheService, who: Who, uuid: UploadId, place: ThePlace
) -> ReviewChangePage:
    """List the changes to the rows, in words and as they can be asked for."""
    found = await service.review.operations(who, uuid, page=place.page, size=place.size)
    items, next = place.rest(found)
    return ReviewChangePage(items=items, next=next)


@review.post("/changes", responses=_CHANGED)
async def change_review(
    service: TheService,
    who: Who,
    uuid: UploadId,
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


@review.post("/changes/preview")
async def preview_review_change(
    service: TheService, who: Who, uuid: UploadId, body: _Change
) -> ChangeEffect:
    """Show what a change would do: figures before and after, and some of the cells."""
    return await service.review.preview(who, uuid, body.root)


@review.get("/suggestions")
async def list_review_suggestions(service: TheService, who: Who, uuid: UploadId) -> SuggestionList:
    """List what was done to such columns in earlier files, to be asked for again."""
    return SuggestionList(items=await service.review.remembered(who, uuid))


@review.get("/file", response_class=FileResponse, responses=FILE)
async def export_review(
    service: TheService,
    who: Who,
    uuid: UploadId,
    wanted: Annotated[RowFilter, Query(alias="filter")] = RowFilter.PROBLEMS,
) -> ReportDownload:
    """Fetch rows with their numbers and problems as a spreadsheet, to correct and send back."""
    return ReportDownload(await service.review.export(who, uuid, wanted))


@review.post(
    "/file",
    responses={**_CHANGED, **import_problems(413, 415)},
    openapi_extra={"requestBody": bodies.file_form("An export of this review, corrected")},
)
async def import_review(
    service: TheService,
    who: Who,
    uuid: UploadId,
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
        found = ChangeEffect(version=overview.version, wrong_rows=overview.wrong)
    response.headers["etag"] = etag(found.version)
    return found
