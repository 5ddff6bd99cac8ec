"""Uploads of spreadsheets over HTTP: sent, mapped, confirmed, followed and undone.

What holds for every run, `retry`, `cancel` and the report of rejected rows, is asked of the run:
`/api/v1/runs/spreadsheet/{uuid}`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi_problem.error import Problem
from pydantic import Field

from activities.spreadsheets.records import (
    AnswerView,
    CellView,
    ColumnView,
    DecisionView,
    ImportFilter,
    QuestionGroup,
    ResultRow,
    SkippedRowView,
    SpreadsheetRow,
    SummaryView,
    UndoPreview,
    UndoView,
    mapping_status,
)
from activities.spreadsheets.value_store import ValueFilter
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.answers import event_stream
from workers.shared.gateway.http.etags import etag
from workers.shared.gateway.http.problems import (
    QUOTA_PROBLEMS,
    ProblemDescription,
    problem_of,
    problem_responses,
)
from workers.shared.gateway.http.requests import PageCursor, PageLimit, Who, cursor_of
from workers.shared.gateway.http.upload import Upload
from workers.shared.services.errors import NotFound, WrongState
from workers.shared.services.identity import Identity
from workers.shared.services.lists import Cursor
from workers.spreadsheets import bodies
from workers.spreadsheets.bodies import (
    ColumnDecisionsBody,
    ConfirmationBody,
    UndoBody,
    UploadChange,
    ValueDecisionsBody,
)
from workers.spreadsheets.http import (
    FILE,
    VERSIONED,
    IfMatch,
    MappingStatusName,
    ReportDownload,
    ThePlace,
    TheService,
    UploadId,
    answers_with,
    expected_version,
    import_problems,
)
from workers.spreadsheets.queries import settled
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.upload_form import LayoutFields, Naming, check_beginning
from workflows.shared.contracts import PlainRecord, served
from workflows.spreadsheets.mappings import (
    Candidate,
    FieldName,
    MappingsAnswer,
    Outcome,
    SpreadsheetState,
    TypeName,
)
from workflows.spreadsheets.people import QuestionKind

PREFIX: Final = "/api/v1/uploads"
_NEXT: Final = "`cursor` of the next page; null on the last page"


class UploadPage(PlainRecord):
    """Some uploads, the newest first."""

    items: Annotated[Sequence[SpreadsheetRow], served("The uploads", [])]
    next: Annotated[str | None, served(_NEXT, None)]


class PreviewRow(PlainRecord):
    """A row as a person sees it."""

    line: Annotated[int, served("Line of the row, as a spreadsheet shows it, from 1", 17)]
    cells: Annotated[Sequence[str], served("Its cells", ["Anna", "Meier"])]


class PreviewView(PlainRecord):
    """The top of the file, and how it is read."""

    format: Annotated[str, served("Kind of the file", "xlsx")]
    sheets: Annotated[Sequence[str], served("Sheets of the workbook", ["Registrations"])]
    layout: Annotated[LayoutFields, served("How the file is read", {"sheet": "Registrations"})]
    rows: Annotated[Sequence[PreviewRow], served("The first rows, from the headers on", [])]
    skipped_rows: Annotated[
        Sequence[SkippedRowView],
        served("Rows that are no people, or may be none, with the reason; at most 200", []),
    ]


class ColumnList(PlainRecord):
    """All columns of an upload, by place."""

    items: Annotated[Sequence[ColumnView], served("The columns", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


class ValuePage(PlainRecord):
    """Some distinct values of an upload, in the order in which they were found."""

    items: Annotated[Sequence[CellView], served("The values", [])]
    next: Annotated[str | None, served(_NEXT, None)]
    total: Annotated[int, served("Values that fit, on all pages", 4)]
    questions: Annotated[
        Sequence[QuestionGroup],
        served("Open questions about people, by kind; `for_all` answers all of a kind", []),
    ]


class CandidateList(PlainRecord):
    """What the values of a field may mean, the likeliest first."""

    items: Annotated[Sequence[Candidate], served("The candidates; at most 50", [])]
    next: Annotated[None, served("Always null: search for others", None)] = None


class ResultPage(PlainRecord):
    """Outcome of some rows, by line."""

    items: Annotated[Sequence[ResultRow], served("The rows", [])]
    next: Annotated[str | None, served(_NEXT, None)]
    total: Annotated[int, served("Rows that fit, on all pages", 150)]


class DecisionPage(PlainRecord):
    """Some decisions, the newest first."""

    items: Annotated[Sequence[DecisionView], served("The decisions", [])]
    next: Annotated[str | None, served(_NEXT, None)]


class Unconfirmed(StillOpen):
    """Something required is open: nothing is confirmed."""

    status = 409


def unconfirmed(error: Unconfirmed) -> Problem:
    """What is open, and the version of the mappings."""
    answer = AnswerView.of("", error.answer).model_dump(
        mode="json", include={"missing_fields", "open_values", "first_open_values"}
    )
    return problem_of(error, {"etag": etag(error.answer.version)}, **answer)


router = APIRouter(prefix=PREFIX, tags=["uploads"], responses=import_problems(401, 403, 422, 503))
one = APIRouter(
    prefix=f"{PREFIX}/{{uuid:uuid}}",
    tags=["uploads"],
    responses=import_problems(401, 403, 404, 422, 503),
)
_KEPT: Final = import_problems(410)
"""Of what is removed after its retention."""
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The same was asked for before", "model": SpreadsheetRow},
    **bodies.created,
}
_ANSWERED: Final = {**answers_with(200, VERSIONED), **import_problems(409, 410, 412)}


@router.post(
    "",
    status_code=201,
    responses={**_MADE, **import_problems(410, 413, 415), **QUOTA_PROBLEMS},
    openapi_extra={"requestBody": bodies.upload_form()},
)
async def create_upload(
    service: TheService,
    who: Who,
    request: Request,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            description="A second request with the same key and content makes no second upload.",
        ),
    ] = None,
) -> SpreadsheetRow:
    """Upload a spreadsheet and start its import.

    The file is streamed: the answer comes within a second of its last byte. Its columns are known
    once its state is COLUMN_MAPPING.
    """
    upload = Upload(request, service.settings.upload_limit, check_beginning)
    done = await service.create(who, upload, key=idempotency_key, naming=Naming.SNAKE)
    row, response.status_code = done.row, 201 if done.is_new else 200
    response.headers["location"] = f"{PREFIX}/{row.uuid}"
    response.headers["etag"] = etag(row.version)
    return row


@router.get("")
async def list_uploads(
    service: TheService,
    who: Who,
    organisation_id: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    state: SpreadsheetState | None = None,
    import_type: TypeName | None = None,
    context_id: Annotated[
        int | None, Query(ge=1, le=2**53, description="With `import_type`: of one event")
    ] = None,
    by: Annotated[str | None, Query(max_length=200, description="Who uploaded them")] = None,
    text: Annotated[
        str, Query(max_length=200, description="Part of the file name, whatever its case")
    ] = "",
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> UploadPage:
    """List uploads of your organisations, the newest first."""
    last = cursor_of(cursor)
    found = await service.newest(
        who,
        ImportFilter(state, import_type, context_id, by, text),
        organisation=organisation_id,
        behind=None if last is None else (last.at, last.id or ""),
        limit=limit + 1,
    )
    items = await service.with_contexts(who, found[:limit])
    next = str(Cursor(items[-1].created_at, items[-1].uuid)) if len(found) > limit else None
    return UploadPage(items=items, next=next)


@one.get("", responses=answers_with(200, VERSIONED))
async def get_upload(
    service: TheService, who: Who, uuid: UploadId, response: Response
) -> SpreadsheetRow:
    """Show one upload: where it stands, its rows in figures, and what it waits for."""
    row = await service.get(who, uuid)
    response.headers["etag"] = etag(row.version)
    return row.model_copy(update={"type_changed": await service.is_superseded(row)})


@one.patch("", responses=_ANSWERED)
async def change_upload(
    service: TheService,
    who: Who,
    uuid: UploadId,
    body: Annotated[UploadChange, Body(openapi_examples=bodies.upload_changes)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Change how the file is read, which of its rows are skipped, or who is waited for.

    If the file is read in another way, its columns are matched again. Rows are kept or skipped
    before the columns are confirmed.
    """
    version = await expected_version(service, who, uuid, if_match)
    if body.layout is not None:
        answer = await service.change_layout(who, uuid, body.layout.layout(), version)
    elif body.rows is not None:
        rows = body.rows
        answer = await service.decide_rows(who, uuid, rows.lines, version, keep=rows.keep)
    else:
        assert body.assignee is not None
        answer = await service.reassign(
            who, uuid, body.assignee.to, body.assignee.notify, expected_version=version
        )
    return _answered(uuid, answer, response)


@one.get("/preview", responses={**_KEPT, **import_problems(409)})
async def preview_upload(service: TheService, who: Who, uuid: UploadId) -> PreviewView:
    """Show the first rows of the file, how it is read, and which rows are skipped."""
    row = await service.get(who, uuid)
    found = await service.preview(who, uuid)
    if found is None:
        raise WrongState("the file is still being analysed; try again in a moment")
    return PreviewView(
        format=found.format,
        sheets=found.sheets,
        layout=LayoutFields.model_validate(row.layout.model_dump()),
        rows=[PreviewRow(line=line, cells=cells) for line, cells in found.rows],
        skipped_rows=[
            SkippedRowView.model_validate(each) for each in await service.skipped_rows(who, uuid)
        ],
    )


@one.get("/columns", responses={**_KEPT, **answers_with(200, VERSIONED)})
async def list_upload_columns(
    service: TheService, who: Who, uuid: UploadId, response: Response
) -> ColumnList:
    """List the columns, what each means, and some of its values."""
    found = await service.columns(who, uuid)
    response.headers["etag"] = etag(found.version)
    return ColumnList(items=found.columns)


@one.patch("/columns", responses=_ANSWERED)
async def decide_upload_columns(
    service: TheService,
    who: Who,
    uuid: UploadId,
    body: Annotated[ColumnDecisionsBody, Body(openapi_examples=bodies.column_decisions)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what columns mean; `missing_fields` says what is open afterwards.

    All decisions are saved, or none.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_columns(who, uuid, body.decisions, version)
    return _answered(uuid, answer, response)


@one.get("/values", responses={**_KEPT, **answers_with(200, VERSIONED)})
async def list_upload_values(
    service: TheService,
    who: Who,
    uuid: UploadId,
    response: Response,
    place: ThePlace,
    field: FieldName | None = None,
    status: MappingStatusName | None = None,
    question: QuestionKind | None = None,
    text: Annotated[str, Query(max_length=200, description="Part of the value")] = "",
) -> ValuePage:
    """List the distinct values of fields that refer to other tables, and what each means."""
    kind = None if question is None else question.value
    wanted = ValueFilter(field, mapping_status(status), kind, text)
    found = await service.cells(who, uuid, wanted, page=place.page, size=place.size)
    response.headers["etag"] = etag(found.version)
    items, next = place.rest(found)
    questions = await service.questions(who, uuid)
    return ValuePage(items=items, next=next, total=found.total, questions=questions)


@one.patch("/values", responses=_ANSWERED)
async def decide_upload_values(
    service: TheService,
    who: Who,
    uuid: UploadId,
    body: Annotated[ValueDecisionsBody, Body(openapi_examples=bodies.value_decisions)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what values mean, one by one or by rules; `open_values` says how many are open.

    All decisions are saved, or none.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_cells(who, uuid, body.decisions, version, rules=body.rules)
    return _answered(uuid, answer, response)


@one.get("/candidates", responses=_KEPT)
async def list_upload_candidates(
    service: TheService,
    who: Who,
    uuid: UploadId,
    field: Annotated[FieldName, Query(examples=["EVENT_CATEGORY_NAME"])],
    text: Annotated[str, Query(max_length=200, description="Part of the name")] = "",
) -> CandidateList:
    """List what a value of a field may mean, the likeliest first; at most 50."""
    found = await service.candidates(who, uuid, field, text)
    return CandidateList(items=[Candidate(id=each.id, name=each.name) for each in found])


@one.get(
    "/values/file",
    response_class=FileResponse,
    responses={**_KEPT, **FILE, **import_problems(409)},
)
async def export_upload_values(
    service: TheService,
    who: Who,
    uuid: UploadId,
    only_open: Annotated[bool, Query(description="Values without a meaning only")] = False,
) -> ReportDownload:
    """Fetch the values with their meanings as a spreadsheet, to fill in and send back."""
    return ReportDownload(await service.value_files.export(who, uuid, only_open=only_open))


@one.post(
    "/values/file",
    responses={**_ANSWERED, **import_problems(413, 415)},
    openapi_extra={"requestBody": bodies.file_form("An export of the values, filled in")},
)
async def import_upload_values(
    service: TheService,
    who: Who,
    uuid: UploadId,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
) -> SpreadsheetRow:
    """Take the meanings of a filled-in export; what is blank there stays as it is."""
    await service.writable(who, uuid)
    version = await expected_version(service, who, uuid, if_match)
    upload = Upload(request, service.settings.upload_limit, check_beginning)
    await service.value_files.upload(who, uuid, upload, version)
    row = await service.get(who, uuid)
    response.headers["etag"] = etag(row.version)
    return row


@one.post(
    "/confirm",
    status_code=202,
    responses={
        **answers_with(202, VERSIONED),
        **import_problems(410, 412),
        **problem_responses(
            409,
            further={
                409: ProblemDescription(
                    StillOpen.kind,
                    "something required is open, or the state does not allow it (`wrong-state`)",
                )
            },
        ),
    },
)
async def confirm_upload(
    service: TheService,
    who: Who,
    uuid: UploadId,
    body: Annotated[ConfirmationBody, Body(openapi_examples=bodies.confirmations)],
    response: Response,
    if_match: IfMatch = None,
) -> SpreadsheetRow:
    """Confirm columns, values, the rows of the review, or all that matched by itself.

    If something required is open, nothing is confirmed, and the problem `still-open` lists it. With
    `all` from COLUMN_MAPPING, values are not collected first: those that turn out to be open are
    asked for while the other rows are processed.
    """
    version = await expected_version(service, who, uuid, if_match)
    try:
        answer = await _confirmed(service, who, uuid, body, version)
    except StillOpen as error:
        raise Unconfirmed(str(error), error.answer) from error
    response.headers["etag"] = etag(answer.version)
    return await service.get(who, uuid)


async def _confirmed(
    service: SpreadsheetService,
    who: Identity,
    uuid: str,
    body: ConfirmationBody,
    version: int | None,
) -> MappingsAnswer:
    match body.what:
        case "columns":
            return await service.confirm_columns(who, uuid, version, incomplete=body.incomplete)
        case "values":
            return await service.confirm_cells(who, uuid, version)
        case "rows":
            return await service.review.import_now(who, uuid, version)
        case "all":
            return await service.start(who, uuid, version)


@one.get("/results", responses=_KEPT)
async def list_upload_results(
    service: TheService,
    who: Who,
    uuid: UploadId,
    place: ThePlace,
    outcome: Outcome | None = None,
) -> ResultPage:
    """List the outcome of each row, with its cells and what is wrong with them."""
    found = await service.result_page(who, uuid, outcome, place.page, place.size)
    items, next = place.rest(found)
    return ResultPage(items=items, next=next, total=found.total)


@one.get("/summary", responses=_KEPT)
async def get_upload_summary(service: TheService, who: Who, uuid: UploadId) -> SummaryView:
    """Show rows per outcome; after a dry run the first 100 differences as well."""
    return await service.summary(who, uuid)


@one.get("/decisions")
async def list_upload_decisions(
    service: TheService, who: Who, uuid: UploadId, place: ThePlace
) -> DecisionPage:
    """List who decided what and when, and what else there was to choose from."""
    found = await service.decisions(who, uuid, page=place.page, size=place.size)
    items, next = place.rest(found)
    return DecisionPage(items=items, next=next)


@one.get(
    "/events",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Events `upload`", "content": {"text/event-stream": {}}},
        204: {"description": "Nothing more will happen: do not come back"},
    },
)
async def watch_upload(
    service: TheService,
    who: Who,
    uuid: UploadId,
    request: Request,
    last_event_id: Annotated[
        str | None, Header(max_length=30, description="Revision that you have seen.")
    ] = None,
) -> Response:
    """Send the upload whenever it changes, as server-sent events, until it has ended."""
    row = await service.get(who, uuid)
    seen = _revision(last_event_id)
    if settled(row) and row.revision == seen:
        return Response(status_code=204)
    stopping = request.app.state.stopping
    return event_stream(
        request,
        who,
        service.events(who, uuid, seen, stopping),
        event="upload",
        id=lambda row: str(row.revision),
        render=lambda row: row.model_dump_json(by_alias=True),
    )


def _revision(header: str | None) -> int | None:
    """The revision that a browser saw last; None: it sent none, or an invalid one."""
    return int(header) if header and header.isascii() and header.isdecimal() else None


_CONFLICTS: Final = 200
_UNDO_AT: Final[dict[str, Any]] = {
    "Location": {
        "schema": {"type": "string"},
        "description": "Where the undo can be followed",
        "example": f"{PREFIX}/0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11/undo",
    }
}


@one.get("/undo")
async def get_undo(service: TheService, who: Who, uuid: UploadId) -> UndoView:
    """Show how far an undo has come, and what it left alone."""
    found = await service.undo_view(who, uuid)
    if found is None:
        raise NotFound("no undo of this import has begun")
    conflicts = await service.undo_conflicts(who, uuid, size=_CONFLICTS)
    return found.model_copy(update={"conflicts": conflicts.items})


@one.get("/undo/preview", responses=import_problems(409))
async def preview_undo(
    service: TheService,
    who: Who,
    uuid: UploadId,
    line: Annotated[
        list[Annotated[int, Field(ge=1)]] | None,
        Query(max_length=1_000, description="Rows of the file; without: all of them"),
    ] = None,
) -> UndoPreview:
    """Show what an undo would take back now, and the first rows that it would leave alone."""
    return await service.preview_undo(who, uuid, line or ())


@one.post(
    "/undo",
    status_code=202,
    responses={**import_problems(409), **answers_with(202, _UNDO_AT)},
)
async def undo_upload(
    service: TheService,
    who: Who,
    uuid: UploadId,
    response: Response,
    act: TheAct,
    body: UndoBody | None = None,
) -> None:
    """Take the rows of an upload back: delete created ones, restore updated ones.

    Without a body, or without lines in it, all rows are taken back.

    A row of which anything was changed since is left alone and reported: `UNDONE_PARTLY`. It can
    be undone again, for what is left.
    """
    lines = body.lines if body else ()
    act.after = {"lines": lines or "all"}
    await service.undo(who, uuid, lines)
    response.headers["location"] = f"{PREFIX}/{uuid}/undo"


def _answered(uuid: str, answer: MappingsAnswer, response: Response) -> AnswerView:
    response.headers["etag"] = etag(answer.version)
    return AnswerView.of(uuid, answer)


ROUTERS: Final = (router, one)
