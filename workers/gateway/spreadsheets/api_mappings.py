"""Columns and values over HTTP."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Body, Query, Request, Response

from adapters.database.spreadsheets.views import ValueFilter
from contracts.spreadsheets import FieldName, MappingsAnswer
from domain.spreadsheets.people import QuestionKind
from domain.spreadsheets.plain_words import titled
from workers.gateway.http.identity import Who
from workers.gateway.spreadsheets import examples, serializers
from workers.gateway.spreadsheets.bodies import (
    CellDecisionsBody,
    CellRulesBody,
    ColumnDecisionsBody,
    RowDecisionsBody,
)
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
    etag,
    expected_version,
)
from workers.gateway.spreadsheets.problems import import_problems
from workers.gateway.spreadsheets.schemas import (
    AnswerView,
    CandidateView,
    CellMappingView,
    ColumnMappingView,
    ImportView,
    PreviewView,
    QuestionView,
    SkippedRowView,
    mapping_status,
)
from workers.services.errors import WrongState
from workers.services.spreadsheets.errors import StillOpen
from workers.services.spreadsheets.statuses import LARGEST_PAGE
from workers.services.spreadsheets.upload_form import LayoutBody

router = APIRouter(
    prefix="/api/imports/{uuid}",
    tags=["mappings"],
    responses=import_problems(401, 403, 404, 410, 422, 503),
)

_ANSWERED: Final = {**answers_with(202, VERSIONED), **import_problems(406, 409, 412)}
_WRITTEN: Final = {**_ANSWERED, **import_problems(400, 413)}
"""Of requests with a body."""
MappingStatusName = Literal["AUTO_MATCHED", "MANUAL_MATCHED", "UNRESOLVED", "IGNORED"]


@router.get("/preview", responses=import_problems(409))
async def preview(service: TheService, who: Who, uuid: ImportId) -> PreviewView:
    """The first rows of the file, and how it is read."""
    row = await service.get(who, uuid)
    found = await service.preview(who, uuid)
    if found is None:
        raise WrongState("the file is still being analysed; try again in a moment")
    return serializers.preview_view(row, found)


@router.put("/layout", status_code=202, responses=_WRITTEN)
async def change_layout(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[LayoutBody, Body(openapi_examples=examples.layout)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Read the file in another way; its columns are matched again."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.change_layout(who, uuid, body.layout(), version)
    response.headers["etag"] = etag(answer.version)
    return serializers.answer_view(uuid, answer)


@router.get("/skipped-rows")
async def get_skipped_rows(service: TheService, who: Who, uuid: ImportId) -> list[SkippedRowView]:
    """Rows that are no people, or may be none, with the reason; at most 200."""
    return [
        SkippedRowView(
            row_number=row.line, cells=list(row.cells), reason=row.reason, left_out=row.is_skipped
        )
        for row in await service.skipped_rows(who, uuid)
    ]


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
    return serializers.answer_view(uuid, answer)


@router.get("/column-mappings", responses=answers_with(200, VERSIONED))
async def get_columns(
    service: TheService, who: Who, uuid: ImportId, response: Response
) -> list[ColumnMappingView]:
    """Every column, what it means, and some of its values."""
    found = await service.columns(who, uuid)
    response.headers["etag"] = etag(found.version)
    return serializers.column_views(found)


@router.put("/column-mappings", status_code=202, responses=_WRITTEN)
async def put_columns(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[ColumnDecisionsBody, Body(openapi_examples=examples.column_decisions)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what columns mean.

    All decisions are saved, or none. 202: every required field has a column. 406: the decisions
    are saved (`saved`), and the problem names the fields that are still open.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_columns(who, uuid, [each.decision() for each in body], version)
    if answer.missing_fields:
        titles = {each.name: each.title for each in await service.fields(who, uuid)}
        raise StillOpen(
            "the decisions are saved; required fields without a column: "
            + ", ".join(titled(answer.missing_fields, titles)),
            answer,
            saved=True,
        )
    response.headers["etag"] = etag(answer.version)
    return serializers.answer_view(uuid, answer)


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
) -> ImportView:
    """Confirm all columns and continue with the values; answers with the first 200 of them."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.confirm_columns(who, uuid, version, incomplete=incomplete)
    response.headers["etag"] = etag(answer.version)
    cells = await service.cells(who, uuid, size=LARGEST_PAGE)
    return serializers.import_view(await service.get(who, uuid), cells=cells)


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
) -> list[CellMappingView]:
    """The distinct values of fields that refer to other tables, and what they mean."""
    kind = None if question is None else question.value
    wanted = ValueFilter(field, mapping_status(status), kind, text)
    found = await service.cells(who, uuid, wanted, page=page, size=size)
    describe_page(request, response, found.total, page, size)
    response.headers["etag"] = etag(found.version)
    return serializers.cell_views(found)


@router.get("/cell-mappings/questions")
async def get_questions(service: TheService, who: Who, uuid: ImportId) -> list[QuestionView]:
    """Open questions about people, by kind; a decision with `forAll` answers all of a kind."""
    return [
        QuestionView(
            question=each.question, reason=each.reason, count=each.count, first_id=each.first_id
        )
        for each in await service.questions(who, uuid)
    ]


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
    return [CandidateView(id=each.id, display_name=each.name) for each in found]


@router.put("/cell-mappings", status_code=202, responses=_WRITTEN)
async def put_cells(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[CellDecisionsBody, Body(openapi_examples=examples.cell_decisions)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what values mean.

    All decisions are saved, or none. 202: every value has a meaning. 406: the decisions are
    saved (`saved`), and the problem names the first values that are still open.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_cells(who, uuid, [each.decision() for each in body], version)
    return _saved(uuid, answer, response)


@router.post("/cell-mappings/rules", status_code=202, responses=_WRITTEN)
async def apply_rules(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[CellRulesBody, Body(openapi_examples=examples.cell_rules)],
    response: Response,
    if_match: IfMatch = None,
) -> AnswerView:
    """Decide what whole sets of values mean, in the order of the rules.

    All rules are applied, or none. 202: every value has a meaning. 406: the decisions are saved
    (`saved`), and the problem names the first values that are still open.
    """
    version = await expected_version(service, who, uuid, if_match)
    rules = [each.rule() for each in body]
    answer = await service.update_cells(who, uuid, (), version, rules=rules)
    return _saved(uuid, answer, response)


def _saved(uuid: str, answer: MappingsAnswer, response: Response) -> AnswerView:
    if answer.cells.open:
        raise StillOpen(
            f"the decisions are saved; values that still have no meaning: {answer.cells.open}",
            answer,
            saved=True,
        )
    response.headers["etag"] = etag(answer.version)
    return serializers.answer_view(uuid, answer)


@router.post(
    "/cell-mappings/confirm",
    status_code=202,
    response_model_exclude_unset=True,
    responses=_ANSWERED,
)
async def confirm_cells(
    service: TheService, who: Who, uuid: ImportId, response: Response, if_match: IfMatch = None
) -> ImportView:
    """Confirm all values and process the rows."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.confirm_cells(who, uuid, version)
    response.headers["etag"] = etag(answer.version)
    return serializers.import_view(await service.get(who, uuid))
