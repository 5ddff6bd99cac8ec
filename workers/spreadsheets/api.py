"""Imports over HTTP: upload, status, progress, results, end.

A spreadsheet to begin with: the columns of an import type, and help.

Its first sheet has headers alone: an example that stays there would be imported as a person.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, cast
from urllib.parse import urlencode
from uuid import uuid4

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi_problem.error import Problem
from pydantic import AfterValidator

from activities.spreadsheets.records import (
    AnswerView,
    DecisionView,
    ImportFilter,
    ImportSorting,
    ImportTypeView,
    ResultRow,
    SpreadsheetRow,
    SummaryView,
    UndoPreview,
    UndoView,
)
from activities.spreadsheets.types.base import SheetType
from adapters.files.tables.workbooks import WorkbookSheet, write_workbook
from workers.shared.gateway.http.answers import Download, event_stream
from workers.shared.gateway.http.etags import etag, versions_of
from workers.shared.gateway.http.problems import ProblemDescription, problem_of, problem_responses
from workers.shared.gateway.http.requests import Who
from workers.shared.gateway.http.upload import Upload
from workers.shared.gateway.pages.renderer import N_, gettext, localised
from workers.shared.services.errors import Conflict, NotFound, UnsupportedFile, WrongState
from workers.shared.services.identity import Identity
from workers.spreadsheets import bodies
from workers.spreadsheets.bodies import AssigneeBody
from workers.spreadsheets.queries import ReportFile, settled
from workers.spreadsheets.register import NAME
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.statuses import LARGEST_PAGE
from workers.spreadsheets.upload_form import check_beginning
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.spreadsheets.mappings import Outcome, SpreadsheetState, TypeName

_DESCRIPTIONS: Final[Mapping[int, ProblemDescription]] = {
    404: ProblemDescription(NotFound.kind, "no such import in your organisations"),
    406: ProblemDescription(StillOpen.kind, "required mappings are still open"),
    409: ProblemDescription(WrongState.kind, "not in this state of the import"),
    412: ProblemDescription(Conflict.kind, "the mappings were changed by another person"),
    415: ProblemDescription(UnsupportedFile.kind, "not a spreadsheet, or not a form upload"),
}


def import_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Entries of an OpenAPI document for problems of these statuses."""
    return problem_responses(*statuses, further=_DESCRIPTIONS)


def still_open(error: StillOpen) -> Problem:
    """What is open, and the version of the mappings."""
    return problem_of(
        error,
        {"etag": f'"{error.answer.version}"'},
        saved=error.saved,
        **AnswerView.of("", error.answer).model_dump(
            mode="json", by_alias=True, exclude={"identifier", "status", "version"}
        ),
    )


XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class ReportDownload(Download):
    """Sends an error report and deletes it."""

    def __init__(self, report: ReportFile) -> None:
        super().__init__(report.path, media_type=XLSX, filename=report.filename)


_VERSION: Final = re.compile(r"\d{1,15}")
_LAST_PAGE: Final = 1_000_000


def _service_of(request: Request) -> SpreadsheetService:
    return cast("SpreadsheetService", request.app.state.services[NAME])


TheService = Annotated[SpreadsheetService, Depends(_service_of)]
ImportId = Annotated[
    str,
    # A UUID is the same in capitals (RFC 9562, section 4).
    AfterValidator(str.lower),
    Path(
        alias="uuid",
        max_length=100,
        description="Identifier of an import.",
        examples=["0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11"],
    ),
]
PageNumber = Annotated[int, Query(alias="page", ge=0, le=_LAST_PAGE, description="From 0.")]
PageSize = Annotated[int, Query(alias="size", ge=1, le=LARGEST_PAGE, description="Items a page.")]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1000,
        description="ETag of the mappings that the answer is based on; 412 when they have changed.",
        examples=['"3"'],
    ),
]


VERSIONED: Final[dict[str, Any]] = {
    "ETag": {
        "schema": {"type": "string"},
        "description": "Version of the mappings, for If-Match",
        "example": '"3"',
    }
}
"""Header of answers about mappings."""
PAGED: Final[dict[str, Any]] = {
    "X-Total-Count": {
        "schema": {"type": "integer"},
        "description": "Items on all pages; left out where there are too many to count",
        "example": 137,
    },
    "Link": {
        "schema": {"type": "string"},
        "description": "Addresses of the other pages (RFC 8288)",
        "example": '</api/imports?page=1&size=20>; rel="next"',
    },
}
"""Headers of answers that are a page of many."""


def answers_with(status: int, *headers: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """An entry of an OpenAPI document for the headers of an answer."""
    named = {name: value for each in headers for name, value in each.items()}
    return {status: {"description": "Successful Response", "headers": named}}


async def expected_version(
    service: SpreadsheetService, who: Identity, uuid: str, header: str | None
) -> int | None:
    """The version that an answer is based on.

    Of several, the one that is current counts.

    Raises:
        Conflict: None of the tags can be current.
    """
    tags = versions_of(header)
    if tags is None:
        return None
    versions = [int(tag) for tag in tags if _VERSION.fullmatch(tag)]
    if len(versions) == 1:
        return versions[0]
    current = (await service.get(who, uuid)).version
    if current in versions:
        return current
    raise Conflict(
        f"If-Match holds none of the current tags: the mappings are at version {current}", current
    )


def describe_page(request: Request, response: Response, total: int, page: int, size: int) -> None:
    """Add the total and links to the other pages (RFC 8288)."""
    last = max(0, (total - 1) // size)
    pages = {"first": 0, "last": last}
    if page > 0:
        pages["prev"] = min(page - 1, last)
    if page < last:
        pages["next"] = page + 1
    response.headers["x-total-count"] = str(total)
    _link(request, response, pages, size)


def describe_uncounted_page(
    request: Request, response: Response, items: int, page: int, size: int
) -> None:
    """Add links to the other pages where it is not known how many there are.

    A total that is too small would be taken for all there are, so there is none, and no last page.

    Args:
        request: For a page.
        response: Gets the header.
        items: Items on this page; fewer than `size` are the end.
        page: From 0.
        size: Items of a full page.
    """
    pages = {"first": 0}
    if page > 0:
        pages["prev"] = page - 1
    if items == size:
        pages["next"] = page + 1
    _link(request, response, pages, size)


def _link(request: Request, response: Response, pages: Mapping[str, int], size: int) -> None:
    response.headers["link"] = ", ".join(
        f'<{_address(request, {"page": number, "size": size})}>; rel="{name}"'
        for name, number in pages.items()
    )


def _address(request: Request, changes: Mapping[str, int]) -> str:
    query = {**dict(request.query_params), **changes}
    return f"{request.url.path}?{urlencode(query)}"


_KINDS: Final[Mapping[ColumnKind, str]] = {
    ColumnKind.TEXT: N_("Text"),
    ColumnKind.CODE: N_("Identifier, kept as it stands"),
    ColumnKind.MAIL: N_("Mail address"),
    ColumnKind.DECIMAL: N_("Number"),
    ColumnKind.INTEGER: N_("Whole number"),
    ColumnKind.PLACE: N_("Whole number"),
    ColumnKind.DATE: N_("Date"),
    ColumnKind.DURATION: N_("Time as hours:minutes:seconds"),
    ColumnKind.ENTITY: N_("Name of an existing entry"),
    ColumnKind.BOOLEAN: N_("Yes or no"),
    ColumnKind.TIME: N_("Time of day"),
    ColumnKind.TIMESTAMP: N_("Date with a time of day"),
    ColumnKind.MONEY: N_("Amount of money"),
    ColumnKind.PHONE: N_("Telephone number"),
}
_CREATES: Final = N_("Name of an entry, existing or new")
_CHOICES: Final = 20
"""Choices that the help names."""
_ALIASES: Final = 4
"""Other headers of a field that the help names."""


def kind_words(field: FieldSpec) -> str:
    """What the cells of a field hold, in the language of the request."""
    if field.kind is ColumnKind.CHOICE:
        named = list(field.choices)[:_CHOICES]
        more = ["…"] if len(field.choices) > _CHOICES else []
        return gettext("One of: %(choices)s", choices=", ".join([*named, *more]))
    return localised(_CREATES if field.creates else _KINDS[field.kind])


def template_sheets(kind: SheetType) -> Sequence[WorkbookSheet]:
    """The sheets of a template: columns to fill in, and help."""
    fields = kind.fields
    headers = [localised(field.title) for field in fields]
    help_headers = (
        gettext("Column"),
        gettext("Required"),
        gettext("What it holds"),
        gettext("Examples"),
        gettext("Also understood"),
    )
    rows = [
        (
            header,
            gettext("yes") if field.required else gettext("no"),
            kind_words(field),
            ", ".join(field.examples),
            ", ".join(field.aliases[:_ALIASES]),
        )
        for header, field in zip(headers, fields, strict=True)
    ]
    hint = gettext(
        "Write your rows below the headers of the first sheet. Columns may be left out, unless "
        "they are required, and stand in any order."
    )
    return (
        WorkbookSheet(localised(kind.title), headers, []),
        WorkbookSheet(gettext("Help"), help_headers, [*rows, (hint, "", "", "", "")]),
    )


async def template_file(service: SpreadsheetService, name: str) -> ReportFile:
    """The template of an import type as XLSX, in the language of the request.

    Raises:
        NotFound: There is no such type.
    """
    kind = next((each for each in await service.types() if each.name == name), None)
    if kind is None:
        raise NotFound(gettext("there is no such import type"))
    path = service.scratch / f"template-{uuid4().hex}.xlsx"
    await asyncio.to_thread(write_workbook, template_sheets(kind), path)
    return ReportFile(path, f"{kind.name.lower().replace('_', '-')}-template.xlsx")


router = APIRouter(prefix="/api", responses=import_problems(401, 403, 422, 503))

_ONE: Final = import_problems(404)


@router.post(
    "/imports",
    status_code=201,
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**bodies.created, **import_problems(409, 410, 413, 415, 429)},
    openapi_extra={"requestBody": bodies.upload_form},
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
) -> SpreadsheetRow:
    """Upload a spreadsheet and start its import.

    The file is streamed: the answer comes within a second of its last byte, with the columns
    where they are known by then.
    """
    upload = Upload(request, service.settings.upload_limit, check_beginning)
    row = await service.create(who, upload, key=idempotency_key)
    response.headers["location"] = f"/api/imports/{row.uuid}"
    response.headers["etag"] = etag(row.version)
    if row.state is SpreadsheetState.UPLOADED:
        return row
    columns = await service.columns(who, row.uuid)
    return row.model_copy(update={"column_mappings": columns.columns})


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
) -> list[SpreadsheetRow]:
    """Imports of your organisations, the newest first unless another order is asked for."""
    wanted = ImportFilter(status, import_type, context_id, created_by, search, sort)
    found = await service.list(who, wanted, organisation=organisation_id, page=page, size=size)
    if found.has_more:
        describe_uncounted_page(request, response, len(found.items), page, size)
    else:
        describe_page(request, response, found.total, page, size)
    names = await service.context_names(who, found.items)
    return [
        row.model_copy(update={"context_name": names[row.uuid]}) if row.uuid in names else row
        for row in found.items
    ]


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
) -> SpreadsheetRow:
    """The status of an import; with its columns and the first 200 values on request."""
    row = await service.get(who, uuid)
    response.headers["etag"] = etag(row.version)
    if not include_mappings or row.purged_at is not None:
        return row
    columns = await service.columns(who, uuid)
    cells = await service.cells(who, uuid, size=LARGEST_PAGE)
    return row.model_copy(update={"column_mappings": columns.columns, "cell_mappings": cells.items})


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
) -> SpreadsheetRow:
    """Cancel an import. Rows that are in stay in, and can be undone."""
    await service.cancel(who, uuid, reason)
    return await service.get(who, uuid)


@router.post(
    "/imports/{uuid}/start",
    status_code=202,
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**_ONE, **answers_with(202, VERSIONED), **import_problems(406, 409, 410, 412)},
)
async def start_import(
    service: TheService, who: Who, uuid: ImportId, response: Response, if_match: IfMatch = None
) -> SpreadsheetRow:
    """Confirm all that matched by itself and process the rows.

    From COLUMN_MAPPING the values are not collected first: those that turn out to be open are
    asked for while the other rows are processed.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.start(who, uuid, version)
    response.headers["etag"] = etag(answer.version)
    return await service.get(who, uuid)


@router.post(
    "/imports/{uuid}/retry",
    status_code=202,
    tags=["imports"],
    response_model_exclude_unset=True,
    responses={**_ONE, **import_problems(409, 410)},
)
async def retry_import(service: TheService, who: Who, uuid: ImportId) -> SpreadsheetRow:
    """Try the step again that could not be done, and that the import waits at."""
    await service.retry(who, uuid)
    return await service.get(who, uuid)


@router.post(
    "/imports/{uuid}/assignee",
    tags=["imports"],
    responses={**_ONE, **import_problems(400, 409, 410, 413)},
)
async def reassign_import(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[AssigneeBody, Body(openapi_examples=bodies.assignee)],
) -> AnswerView:
    """Reassign the import to another person; reminders go to them from now on."""
    return AnswerView.of(uuid, await service.reassign(who, uuid, body.to, body.notify))


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
        render=lambda row: row.model_dump_json(by_alias=True, exclude_unset=True),
    )


@router.get("/import-types", tags=["types"])
async def list_types(service: TheService, who: Who) -> list[ImportTypeView]:
    """What can be imported, field by field; custom lists of an organisation come on top."""
    return [ImportTypeView.model_validate(kind) for kind in await service.types()]


def _revision(header: str | None) -> int | None:
    """The revision that a browser saw last; None: it sent none, or an invalid one."""
    return int(header) if header and header.isascii() and header.isdecimal() else None


results_router = APIRouter(
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


@results_router.get("/results", responses=answers_with(200, PAGED))
async def get_results(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    outcome: Outcome | None = None,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[ResultRow]:
    """Outcome of each row by its number in the file, with its cells and what is wrong with them."""
    found = await service.result_page(who, uuid, outcome, page, size)
    describe_page(request, response, found.total, page, size)
    return found.items


@results_router.get("/results/summary")
async def get_summary(service: TheService, who: Who, uuid: ImportId) -> SummaryView:
    """Rows per outcome; after a dry run the first 100 differences as well."""
    return await service.summary(who, uuid)


@results_router.get(
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


@results_router.get("/decisions", responses=answers_with(200, PAGED))
async def get_decisions(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[DecisionView]:
    """Who decided what and when, and what else there was to choose from; the newest first."""
    found = await service.decisions(who, uuid, page=page, size=size)
    describe_page(request, response, found.total, page, size)
    return found.items


@results_router.post(
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


@results_router.get("/undo/preview", responses=import_problems(409))
async def preview_undo(service: TheService, who: Who, uuid: ImportId) -> UndoPreview:
    """What an undo would take back now, and the first rows that it would leave alone and why."""
    return await service.preview_undo(who, uuid)


@results_router.get("/undo")
async def get_undo(service: TheService, who: Who, uuid: ImportId) -> UndoView:
    """How far an undo has come, and what it left alone."""
    found = await service.undo_view(who, uuid)
    if found is None:
        raise NotFound("no undo of this import has begun")
    conflicts = await service.undo_conflicts(who, uuid, size=_CONFLICTS)
    return found.model_copy(update={"conflicts": conflicts.items})


templates_router = APIRouter(prefix="/api", responses=import_problems(401, 403, 404, 422, 503))


@templates_router.get(
    "/import-types/{name}/template",
    tags=["types"],
    response_class=FileResponse,
    responses={
        200: {
            "description": "XLSX",
            "content": {XLSX: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def download_template(service: TheService, who: Who, name: TypeName) -> ReportDownload:
    """A spreadsheet with the columns of a type, and help with examples on a second sheet.

    Each of its columns is recognised when it is uploaded.
    """
    return ReportDownload(await template_file(service, name))
