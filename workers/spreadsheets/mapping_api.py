"""Columns, values and what was learnt over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import FileResponse

from activities.spreadsheets.records import (
    AnswerView,
    AvailableContext,
    CandidateView,
    CellView,
    ColumnView,
    LearntColumn,
    LearntEdit,
    LearntValue,
    QuestionGroup,
    SkippedRowView,
    SpreadsheetRow,
    mapping_status,
)
from activities.spreadsheets.value_store import ValueFilter
from workers.shared.gateway.http.etags import etag
from workers.shared.gateway.http.requests import Who
from workers.shared.gateway.http.upload import Upload
from workers.shared.services.errors import WrongState
from workers.spreadsheets import bodies
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
from workers.spreadsheets.bodies import (
    CellDecisionsBody,
    CellRulesBody,
    ColumnDecisionsBody,
    LearntColumnBody,
    LearntValueBody,
    RowDecisionsBody,
)
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.statuses import LARGEST_PAGE
from workers.spreadsheets.upload_form import LayoutBody, NewContext, check_beginning
from workflows.shared.contracts import Record, served
from workflows.spreadsheets.decisions import titled
from workflows.spreadsheets.mappings import (
    FieldName,
    MappingsAnswer,
    TypeName,
)
from workflows.spreadsheets.people import QuestionKind

router = APIRouter(
    prefix="/api/imports/{uuid}",
    tags=["mappings"],
    responses=import_problems(401, 403, 404, 410, 422, 503),
)

_ANSWERED: Final = {**answers_with(202, VERSIONED), **import_problems(406, 409, 412)}
_WRITTEN: Final = {**_ANSWERED, **import_problems(400, 413)}
"""Of requests with a body."""
MappingStatusName = Literal["AUTO_MATCHED", "MANUAL_MATCHED", "UNRESOLVED", "IGNORED"]


class PreviewRow(Record):
    """A row as a person sees it."""

    row_number: Annotated[int, served("Line of the row, from 1", 17)]
    cells: Annotated[Sequence[str], served("Its cells", ["Anna", "Meier"])]


class PreviewView(Record):
    """The top of the file, and how it is read."""

    format: Annotated[str, served("Kind of the file", "xlsx")]
    sheets: Annotated[Sequence[str], served("Sheets of the workbook", ["Registrations"])]
    layout: Annotated[LayoutBody, served("How the file is read", {"sheet": "Registrations"})]
    rows: Annotated[Sequence[PreviewRow], served("The first rows, from the headers on", [])]


@router.get("/preview", responses=import_problems(409))
async def preview(service: TheService, who: Who, uuid: ImportId) -> PreviewView:
    """The first rows of the file, and how it is read."""
    row = await service.get(who, uuid)
    found = await service.preview(who, uuid)
    if found is None:
        raise WrongState("the file is still being analysed; try again in a moment")
    return PreviewView(
        format=found.format,
        sheets=found.sheets,
        layout=LayoutBody.model_validate(row.layout.model_dump()),
        rows=[PreviewRow(row_number=line, cells=cells) for line, cells in found.rows],
    )


@router.put("/layout", status_code=202, responses=_WRITTEN)
async def change_layout(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[LayoutBody, Body(openapi_examples=bodies.layout)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Read the file in another way; its columns are matched again."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.change_layout(who, uuid, body.layout(), version)
    response.headers["etag"] = etag(answer.version)
    return AnswerView.of(uuid, answer)


@router.get("/skipped-rows")
async def get_skipped_rows(service: TheService, who: Who, uuid: ImportId) -> list[SkippedRowView]:
    """Rows that are no people, or may be none, with the reason; at most 200."""
    return [SkippedRowView.model_validate(row) for row in await service.skipped_rows(who, uuid)]


@router.put("/skipped-rows", status_code=202, responses=_WRITTEN)
async def put_skipped_rows(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: RowDecisionsBody,
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Keep rows, or leave them out, before the columns are confirmed."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.decide_rows(who, uuid, body.rows, version, keep=body.keep)
    response.headers["etag"] = etag(answer.version)
    return AnswerView.of(uuid, answer)


@router.get("/column-mappings", responses=answers_with(200, VERSIONED))
async def get_columns(
    service: TheService, who: Who, uuid: ImportId, response: Response
) -> Sequence[ColumnView]:
    """Every column, what it means, and some of its values."""
    found = await service.columns(who, uuid)
    response.headers["etag"] = etag(found.version)
    return found.columns


@router.put("/column-mappings", status_code=202, responses=_WRITTEN)
async def put_columns(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[ColumnDecisionsBody, Body(openapi_examples=bodies.column_decisions)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what columns mean.

    All decisions are saved, or none. 202: every required field has a column. 406: the decisions
    are saved (`saved`), and the problem names the fields that are still open.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_columns(who, uuid, body, version)
    if answer.missing_fields:
        titles = {each.name: each.title for each in await service.fields(who, uuid)}
        raise StillOpen(
            "the decisions are saved; required fields without a column: "
            + ", ".join(titled(answer.missing_fields, titles)),
            answer,
            saved=True,
        )
    response.headers["etag"] = etag(answer.version)
    return AnswerView.of(uuid, answer)


@router.post(
    "/column-mappings/confirm",
    status_code=202,
    response_model_exclude_unset=True,
    responses=_ANSWERED,
)
async def confirm_columns(
    service: TheService,
    who: Who,
    uuid: ImportId,
    response: Response,
    incomplete: Annotated[
        bool, Query(description="Columns of required fields are made in the review.")
    ] = False,
    if_match: IfMatch = None,
) -> SpreadsheetRow:
    """Confirm all columns and continue with the values; answers with the first 200 of them."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.confirm_columns(who, uuid, version, incomplete=incomplete)
    response.headers["etag"] = etag(answer.version)
    cells = await service.cells(who, uuid, size=LARGEST_PAGE)
    row = await service.get(who, uuid)
    return row.model_copy(update={"cell_mappings": cells.items})


@router.get("/cell-mappings", responses=answers_with(200, PAGED, VERSIONED))
async def get_cells(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    field: Annotated[FieldName | None, Query(alias="targetField")] = None,
    status: MappingStatusName | None = None,
    question: QuestionKind | None = None,
    text: Annotated[str, Query(max_length=200, description="Part of the value")] = "",
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[CellView]:
    """The distinct values of fields that refer to other tables, and what they mean."""
    kind = None if question is None else question.value
    wanted = ValueFilter(field, mapping_status(status), kind, text)
    found = await service.cells(who, uuid, wanted, page=page, size=size)
    describe_page(request, response, found.total, page, size)
    response.headers["etag"] = etag(found.version)
    return found.items


@router.get("/cell-mappings/questions")
async def get_questions(service: TheService, who: Who, uuid: ImportId) -> Sequence[QuestionGroup]:
    """Open questions about people, by kind; a decision with `forAll` answers all of a kind."""
    return await service.questions(who, uuid)


@router.get("/cell-mappings/candidates")
async def get_candidates(
    service: TheService,
    who: Who,
    uuid: ImportId,
    field: Annotated[FieldName, Query(alias="targetField", examples=["EVENT_CATEGORY_NAME"])],
    query: Annotated[str, Query(max_length=200)] = "",
) -> list[CandidateView]:
    """What a value of a field may mean, the likeliest first; at most 50."""
    found = await service.candidates(who, uuid, field, query)
    return [CandidateView(id=each.id, name=each.name) for each in found]


@router.put("/cell-mappings", status_code=202, responses=_WRITTEN)
async def put_cells(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[CellDecisionsBody, Body(openapi_examples=bodies.cell_decisions)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what values mean.

    All decisions are saved, or none. 202: every value has a meaning. 406: the decisions are
    saved (`saved`), and the problem names the first values that are still open.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_cells(who, uuid, body, version)
    return _saved(uuid, answer, response)


@router.post("/cell-mappings/rules", status_code=202, responses=_WRITTEN)
async def apply_rules(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[CellRulesBody, Body(openapi_examples=bodies.cell_rules)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what whole sets of values mean, in the order of the rules.

    All rules are applied, or none. 202: every value has a meaning. 406: the decisions are saved
    (`saved`), and the problem names the first values that are still open.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_cells(who, uuid, (), version, rules=body)
    return _saved(uuid, answer, response)


def _saved(uuid: str, answer: MappingsAnswer, response: Response) -> AnswerView:
    if answer.cells.open:
        raise StillOpen(
            f"the decisions are saved; values that still have no meaning: {answer.cells.open}",
            answer,
            saved=True,
        )
    response.headers["etag"] = etag(answer.version)
    return AnswerView.of(uuid, answer)


@router.post(
    "/cell-mappings/confirm",
    status_code=202,
    response_model_exclude_unset=True,
    responses=_ANSWERED,
)
async def confirm_cells(
    service: TheService, who: Who, uuid: ImportId, response: Response, if_match: IfMatch = None
) -> SpreadsheetRow:
    """Confirm all values and process the rows."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.confirm_cells(who, uuid, version)
    response.headers["etag"] = etag(answer.version)
    return await service.get(who, uuid)


memory_router = APIRouter(prefix="/api", responses=import_problems(401, 403, 422, 503))

Organisation = Annotated[
    int | None,
    Query(
        alias="organisationId", ge=1, le=2**53, description="One of yours; all of them when absent."
    ),
]
Owner = Annotated[
    int | None,
    Query(alias="organisationId", ge=1, le=2**53, description="The first of yours when absent."),
]
OfType = Annotated[
    TypeName | None, Query(alias="importType", description="Only of this import type.")
]
TypeOf = Annotated[TypeName, Query(alias="importType", description="The import type.")]
Text = Annotated[str, Query(max_length=200, description="Part of the header or value.")]


@memory_router.get("/contexts", tags=["types"])
async def list_contexts(
    service: TheService, who: Who, import_type: OfType = None
) -> list[AvailableContext]:
    """Events, membership periods, races and custom lists that imports can belong to: values of
    `contextId`.

    The newest 200 of each.
    """
    found = await service.contexts(who)
    tables = {
        kind.context.table
        for kind in await service.types()
        if kind.context is not None and import_type in (None, kind.name)
    }
    return [each for each in found if each.table in tables]


@memory_router.post("/contexts", tags=["types"], status_code=201)
async def make_context(service: TheService, who: Who, body: NewContext) -> AvailableContext:
    """Make an event, a membership period, a race or a custom list that imports can belong to.

    If there is one of this name and first day, name and event, or key, it is answered with.
    """
    return await service.make_context(who, body)


@memory_router.get("/memory/columns", tags=["memory"], responses=answers_with(200, PAGED))
async def list_learnt_columns(
    service: TheService,
    who: Who,
    request: Request,
    response: Response,
    organisation_id: Organisation = None,
    import_type: OfType = None,
    query: Text = "",
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[LearntColumn]:
    """What headers mean since people decided it, the newest first."""
    found = await service.memory.columns(
        who,
        organisation=organisation_id,
        import_type=import_type,
        query=query,
        page=page,
        size=size,
    )
    describe_page(request, response, found.total, page, size)
    return found.items


@memory_router.put("/memory/columns", tags=["memory"], responses=import_problems(400, 413))
async def learn_column(
    service: TheService,
    who: Who,
    body: Annotated[LearntColumnBody, Body(openapi_examples=bodies.learnt_column)],
) -> LearntColumn:
    """Decide what a header means in the next files, or that such columns are left out."""
    return await service.memory.learn_column(
        who, body.organisation_id, body.import_type, body.header, body.target_field
    )


@memory_router.delete("/memory/columns", status_code=204, tags=["memory"])
async def forget_column(
    service: TheService,
    who: Who,
    import_type: TypeOf,
    header: Annotated[str, Query(max_length=200, description="As in files.")],
    organisation_id: Owner = None,
) -> None:
    """Forget what a header means; the next file asks."""
    await service.memory.forget_column(who, organisation_id, import_type, header)


@memory_router.get("/memory/values", tags=["memory"], responses=answers_with(200, PAGED))
async def list_learnt_values(
    service: TheService,
    who: Who,
    request: Request,
    response: Response,
    organisation_id: Organisation = None,
    import_type: OfType = None,
    query: Text = "",
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[LearntValue]:
    """What values mean since people decided it, the newest first."""
    found = await service.memory.values(
        who,
        organisation=organisation_id,
        import_type=import_type,
        query=query,
        page=page,
        size=size,
    )
    describe_page(request, response, found.total, page, size)
    return found.items


@memory_router.put("/memory/values", tags=["memory"], responses=import_problems(400, 413))
async def learn_value(
    service: TheService,
    who: Who,
    body: Annotated[LearntValueBody, Body(openapi_examples=bodies.learnt_value)],
) -> LearntValue:
    """Decide what a value means in the next files, or that it is left empty.

    A row is named, not numbered: each event has a category of that name.
    """
    return await service.memory.learn_value(
        who,
        body.organisation_id,
        body.import_type,
        body.target_field,
        body.source_value,
        body.target_name,
    )


@memory_router.delete("/memory/values", status_code=204, tags=["memory"])
async def forget_value(
    service: TheService,
    who: Who,
    import_type: TypeOf,
    field: Annotated[FieldName, Query(alias="targetField", description="The field.")],
    value: Annotated[str, Query(alias="sourceValue", max_length=200, description="As in files.")],
    organisation_id: Owner = None,
) -> None:
    """Forget what a value means; the next file asks."""
    await service.memory.forget_value(who, organisation_id, import_type, field, value)


@memory_router.get("/memory/operations", tags=["memory"], responses=answers_with(200, PAGED))
async def list_learnt_operations(
    service: TheService,
    who: Who,
    request: Request,
    response: Response,
    organisation_id: Organisation = None,
    import_type: OfType = None,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[LearntEdit]:
    """Changes of whole columns that reviews suggest for files with these headers."""
    found = await service.memory.edits(
        who, organisation=organisation_id, import_type=import_type, page=page, size=size
    )
    describe_page(request, response, found.total, page, size)
    return found.items


@memory_router.delete("/memory/operations", status_code=204, tags=["memory"])
async def forget_operation(
    service: TheService,
    who: Who,
    import_type: TypeOf,
    key: Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="Of the listed change.")],
    organisation_id: Owner = None,
) -> None:
    """No longer suggest a change; confirming it in a review again remembers it again."""
    await service.memory.forget_edit(who, organisation_id, import_type, key)


UPLOADS: Final = "/api/imports/{uuid}/cell-mappings/upload"
"""Takes a file."""

value_files_router = APIRouter(
    prefix="/api/imports/{uuid}/cell-mappings",
    tags=["mappings"],
    responses=import_problems(401, 403, 404, 410, 422, 503),
)

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
                        "description": "An export of the values, filled in",
                    }
                },
            }
        }
    },
}


@value_files_router.get(
    "/export",
    response_class=FileResponse,
    responses={
        200: {
            "description": "XLSX",
            "content": {XLSX: {"schema": {"type": "string", "format": "binary"}}},
        },
        **import_problems(409),
    },
)
async def export_values(
    service: TheService,
    who: Who,
    uuid: ImportId,
    only_open: Annotated[
        bool, Query(alias="onlyOpen", description="Values without a meaning only.")
    ] = False,
) -> ReportDownload:
    """The values with their meanings, to be filled in and uploaded again."""
    return ReportDownload(await service.value_files.export(who, uuid, only_open=only_open))


@value_files_router.post(
    "/upload",
    status_code=202,
    response_model_exclude_unset=True,
    responses={**answers_with(202, VERSIONED), **import_problems(400, 409, 412, 413, 415)},
    openapi_extra={"requestBody": _FORM},
)
async def upload_values(
    service: TheService,
    who: Who,
    uuid: ImportId,
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
