"""Imports over HTTP: upload, status, progress, end."""

from typing import Annotated, Final

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from adapters.database.spreadsheets.records import ImportFilter, ImportSorting
from contracts.spreadsheets import SpreadsheetState, TypeName
from workers.gateway.http.event_stream import event_stream
from workers.gateway.http.identity import Who
from workers.gateway.http.upload import Upload
from workers.gateway.spreadsheets import examples, serializers
from workers.gateway.spreadsheets.bodies import AssigneeBody
from workers.gateway.spreadsheets.dependencies import (
    PAGED,
    VERSIONED,
    IfMatch,
    ImportId,
    PageNumber,
    PageSize,
    TheService,
    answers_with,
    describe_page,
    describe_uncounted_page,
    etag,
    expected_version,
)
from workers.gateway.spreadsheets.problems import import_problems
from workers.gateway.spreadsheets.schemas import AnswerView, ImportTypeView, ImportView
from workers.services.identity import Identity
from workers.services.spreadsheets.queries import settled
from workers.services.spreadsheets.service import SpreadsheetService
from workers.services.spreadsheets.statuses import LARGEST_PAGE
from workers.services.spreadsheets.upload_form import check_beginning

router = APIRouter(prefix="/api", responses=import_problems(401, 403, 422, 503))

_ONE: Final = import_problems(404)


@router.post(
    "/imports",
    status_code=201,
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**examples.created, **import_problems(409, 410, 413, 415, 429)},
    openapi_extra={"requestBody": examples.upload_form},
)
async def create_import(
    service: TheService,
    who: Who,
    request: Request,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            description="A second request with the same key and content makes no second import.",
        ),
    ] = None,
) -> ImportView:
    """Upload a spreadsheet and start its import.

    The file is streamed: the answer comes within a second of its last byte, with the columns
    where they are known by then.
    """
    upload = Upload(request, service.settings.upload_limit, check_beginning)
    row = await service.create(who, upload, key=idempotency_key)
    response.headers["location"] = f"/api/imports/{row.uuid}"
    response.headers["etag"] = etag(row.version)
    columns = None
    if row.state is not SpreadsheetState.UPLOADED:
        columns = await service.columns(who, row.uuid)
    return serializers.import_view(row, columns)


@router.get(
    "/imports",
    tags=["imports"],
    response_model_exclude_unset=True,
    responses=answers_with(200, PAGED),
)
async def list_imports(
    service: TheService,
    who: Who,
    request: Request,
    response: Response,
    organisation_id: Annotated[int | None, Query(alias="organisationId", ge=1, le=2**53)] = None,
    status: SpreadsheetState | None = None,
    import_type: Annotated[TypeName | None, Query(alias="importType")] = None,
    context_id: Annotated[
        int | None,
        Query(alias="contextId", ge=1, le=2**53, description="With importType: of one event."),
    ] = None,
    created_by: Annotated[
        str | None, Query(alias="createdBy", max_length=200, description="Who uploaded them.")
    ] = None,
    search: Annotated[
        str, Query(max_length=200, description="Part of the file name, whatever its case.")
    ] = "",
    sort: ImportSorting = ImportSorting.NEWEST,
    page: PageNumber = 0,
    size: PageSize = 20,
) -> list[ImportView]:
    """Imports of your organisations, the newest first unless another order is asked for."""
    wanted = ImportFilter(status, import_type, context_id, created_by, search, sort)
    found = await service.list(who, wanted, organisation=organisation_id, page=page, size=size)
    if found.has_more:
        describe_uncounted_page(request, response, len(found.items), page, size)
    else:
        describe_page(request, response, found.total, page, size)
    names = await service.context_names(who, found.items)
    return [serializers.import_view(row, context_name=names.get(row.uuid)) for row in found.items]


@router.get(
    "/imports/{uuid}",
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**_ONE, **answers_with(200, VERSIONED)},
)
async def get_import(
    service: TheService,
    who: Who,
    uuid: ImportId,
    response: Response,
    include_mappings: Annotated[bool, Query(alias="includeMappings")] = False,
) -> ImportView:
    """The status of an import; with its columns and the first 200 values on request."""
    row = await service.get(who, uuid)
    response.headers["etag"] = etag(row.version)
    if not include_mappings or row.purged_at is not None:
        return serializers.import_view(row)
    columns = await service.columns(who, uuid)
    return serializers.import_view(row, columns, await service.cells(who, uuid, size=LARGEST_PAGE))


@router.delete(
    "/imports/{uuid}",
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**_ONE, **import_problems(409, 410)},
)
async def cancel_import(
    service: TheService,
    who: Who,
    uuid: ImportId,
    reason: Annotated[str | None, Query(max_length=500)] = None,
) -> ImportView:
    """Cancel an import. Rows that are in stay in, and can be undone."""
    await service.cancel(who, uuid, reason)
    return await _status(service, who, uuid)


@router.post(
    "/imports/{uuid}/start",
    status_code=202,
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**_ONE, **answers_with(202, VERSIONED), **import_problems(406, 409, 410, 412)},
)
async def start_import(
    service: TheService, who: Who, uuid: ImportId, response: Response, if_match: IfMatch = None
) -> ImportView:
    """Confirm all that matched by itself and process the rows.

    From COLUMN_MAPPING the values are not collected first: those that turn out to be open are
    asked for while the other rows are processed.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.start(who, uuid, version)
    response.headers["etag"] = etag(answer.version)
    return await _status(service, who, uuid)


@router.post(
    "/imports/{uuid}/retry",
    status_code=202,
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**_ONE, **import_problems(409, 410)},
)
async def retry_import(service: TheService, who: Who, uuid: ImportId) -> ImportView:
    """Try the step again that could not be done, and that the import waits at."""
    await service.retry(who, uuid)
    return await _status(service, who, uuid)


@router.post(
    "/imports/{uuid}/assignee",
    tags=["imports"],
    responses={**_ONE, **import_problems(400, 409, 410, 413)},
)
async def reassign_import(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[AssigneeBody, Body(openapi_examples=examples.assignee)],
) -> AnswerView:
    """Reassign the import to another person; reminders go to them from now on."""
    return serializers.answer_view(uuid, await service.reassign(who, uuid, body.to, body.notify))


@router.get(
    "/imports/{uuid}/events",
    tags=["imports"],
    response_class=StreamingResponse,
    responses={
        200: {"description": "Events `status`", "content": {"text/event-stream": {}}},
        204: {"description": "Nothing more will happen: do not come back"},
        **_ONE,
    },
)
async def watch_import(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    last_event_id: Annotated[
        str | None, Header(max_length=30, description="Revision that you have seen.")
    ] = None,
) -> Response:
    """The status whenever it changes, as server-sent events, until the import has ended."""
    row = await service.get(who, uuid)
    seen = _revision(last_event_id)
    if settled(row) and row.revision == seen:
        return Response(status_code=204)
    stopping = request.app.state.stopping
    rows = service.events(who, uuid, seen, stopping)
    return event_stream(
        rows,
        event="status",
        id=lambda row: str(row.revision),
        render=lambda row: serializers.import_view(row).model_dump_json(exclude_unset=True),
    )


@router.get("/import-types", tags=["types"])
async def list_types(service: TheService, who: Who) -> list[ImportTypeView]:
    """What can be imported, field by field; custom lists of an organisation come on top."""
    return [serializers.type_view(kind) for kind in service.types()]


def _revision(header: str | None) -> int | None:
    """The revision that a browser saw last; None: it sent none, or an invalid one."""
    return int(header) if header and header.isascii() and header.isdecimal() else None


async def _status(service: SpreadsheetService, who: Identity, uuid: str) -> ImportView:
    return serializers.import_view(await service.get(who, uuid))
