"""The API of imports that docflow took over: fourteen operations under `/api/imports`.

They stay as they are for the programs that call them. `workers/spreadsheets/v1.py` has the same and
everything else; both ask the same service.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.openapi.models import Example
from fastapi_problem.error import Problem
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from activities.spreadsheets.records import (
    AnswerView,
    CellView,
    ColumnView,
    Difference,
    ImportFilter,
    ImportSorting,
    ResultCell,
    ResultRow,
    SpreadsheetRow,
    SummaryView,
    mapping_status,
)
from activities.spreadsheets.value_store import ValueFilter
from workers.shared.gateway.http.etags import etag
from workers.shared.gateway.http.problems import QUOTA_PROBLEMS, problem_of
from workers.shared.gateway.http.requests import Who
from workers.shared.gateway.http.upload import Upload
from workers.spreadsheets import bodies
from workers.spreadsheets.bodies import CellDecisionBody, ColumnDecisionBody
from workers.spreadsheets.http import (
    VERSIONED,
    IfMatch,
    ImportId,
    MappingStatusName,
    TheService,
    answers_with,
    expected_version,
    import_problems,
)
from workers.spreadsheets.runs import StillOpen
from workers.spreadsheets.statuses import LARGEST_PAGE
from workers.spreadsheets.upload_form import Naming, check_beginning
from workflows.shared.contracts import served, served_as
from workflows.spreadsheets.decisions import titled
from workflows.spreadsheets.mappings import (
    COLUMNS,
    DECISIONS,
    Alternative,
    Candidate,
    FieldName,
    MappingsAnswer,
    OpenValue,
    Outcome,
    SpreadsheetState,
    TypeName,
)
from workflows.spreadsheets.people import QuestionKind


class ImportAlternative(Alternative):
    """Something a column or a value might mean as well."""

    model_config = served_as(why="reason")


_Alternatives = Annotated[
    tuple[ImportAlternative, ...],
    served("What it may mean as well, the likeliest first; at most 3", []),
]


class ImportColumn(ColumnView):
    """One column, and what it means."""

    model_config = served_as(
        index="columnIndex",
        header="sourceHeader",
        target="targetField",
        confidence="confidenceScore",
        why="reason",
    )

    alternatives: _Alternatives  # pyright: ignore[reportIncompatibleVariableOverride]


class ImportCell(CellView):
    """One distinct value of one field, and what it means."""

    model_config = served_as(
        field="targetField",
        value="sourceValue",
        target_id="targetEntityId",
        confidence="confidenceScore",
        rows="rowCount",
    )

    alternatives: _Alternatives = ()  # pyright: ignore[reportIncompatibleVariableOverride]


class ImportOpenValue(OpenValue):
    """A value without a decision so far."""

    model_config = served_as(field="targetField", value="sourceValue", rows="rowCount")


class ImportCandidate(Candidate):
    """Something that a value may mean."""

    model_config = served_as(name="displayName")


class ImportAnswer(AnswerView):
    """What has become of an answer."""

    model_config = served_as(uuid="identifier", state="status")

    first_open_values: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        Sequence[ImportOpenValue], served("The first values without a meaning; at most 50", [])
    ]


class ImportStatus(SpreadsheetRow):
    """The status of an import."""

    model_config = served_as(
        uuid="identifier",
        filename="originalFilename",
        by="createdBy",
        state="status",
        total="totalRows",
        parked="parkedRows",
        undo_state="undoStatus",
    )

    workflow_id: Annotated[
        str,
        served("Id of its run", "spreadsheet/0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11", "workflowId"),
    ]
    column_mappings: Annotated[
        Sequence[ImportColumn] | None,
        served("Its columns, if they were asked for; else null", None),
    ] = None
    cell_mappings: Annotated[
        Sequence[ImportCell] | None,
        served("Its first 200 values, if they were asked for; else null", None),
    ] = None


class ImportResultCell(ResultCell):
    """A cell that is not blank, of a column that fills a field."""

    model_config = served_as(field="targetField")


class ImportResult(ResultRow):
    """Outcome of a row."""

    model_config = served_as(line="rowNumber")

    cells: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        Sequence[ImportResultCell],
        served("Its cells that are not blank, in columns that fill a field", []),
    ] = ()


class ImportDifference(Difference):
    """What the import has changed in a row that was there; a dry run: would change."""

    model_config = served_as(line="rowNumber")


class ImportSummary(SummaryView):
    """Rows per outcome."""

    model_config = served_as()

    differences: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        Sequence[ImportDifference],
        served("What a dry run would change in rows that are there; the first 100", []),
    ] = ()


def _sent_as(**names: str) -> ConfigDict:
    """Configure a body whose fields have the names of this API."""
    return ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=lambda name: names.get(name) or to_camel(name),
    )


class ImportColumnDecision(ColumnDecisionBody):
    """A decision about one column: exactly one of targetField, confirm, ignore and reset."""

    model_config = _sent_as(target="targetField")


class ImportCellDecision(CellDecisionBody):
    """A decision about one value: exactly one of the five, and whether it is for all."""

    model_config = _sent_as(target_id="targetEntityId")


ColumnDecisions = Annotated[list[ImportColumnDecision], Field(min_length=1, max_length=COLUMNS)]
CellDecisions = Annotated[list[ImportCellDecision], Field(min_length=1, max_length=DECISIONS)]


def still_open(error: StillOpen) -> Problem:
    """What is open, and the version of the mappings."""
    return problem_of(
        error,
        {"etag": f'"{error.answer.version}"'},
        saved=error.saved,
        **_answer("", error.answer).model_dump(
            mode="json", by_alias=True, exclude={"uuid", "state", "version"}
        ),
    )


def _answer(uuid: str, answer: MappingsAnswer) -> ImportAnswer:
    return ImportAnswer.model_validate(AnswerView.of(uuid, answer))


def _status(row: SpreadsheetRow, **further: object) -> ImportStatus:
    """An import; fields that were not read are left out."""
    known = {name: getattr(row, name) for name in row.model_fields_set}
    return ImportStatus.model_validate({**known, **further})


_COLUMN_DECISIONS: Final[dict[str, Example]] = {
    "mapping": {
        "summary": "Confirm one, choose a field for one, leave one out",
        "value": [
            {"id": 1, "confirm": True},
            {"id": 2, "targetField": "EVENT_CATEGORY_NAME"},
            {"id": 3, "ignore": True},
            {"id": 4, "reset": True},
        ],
    }
}
_CELL_DECISIONS: Final[dict[str, Example]] = {
    "mapping": {
        "summary": "Confirm one, choose a candidate for one, count one as empty, create one",
        "value": [
            {"id": 1, "confirm": True},
            {"id": 2, "targetEntityId": 43},
            {"id": 3, "ignore": True},
            {"id": 4, "create": True},
        ],
    },
    "people": {
        "summary": "The same person as suggested, for every question of the kind",
        "value": [{"id": 5, "confirm": True, "forAll": True}],
    },
    "back": {
        "summary": "Take a decision back",
        "value": [{"id": 2, "reset": True}],
    },
}
_LAST_PAGE: Final = 1_000_000
PageNumber = Annotated[int, Query(alias="page", ge=0, le=_LAST_PAGE, description="From 0.")]
PageSize = Annotated[int, Query(alias="size", ge=1, le=LARGEST_PAGE, description="Items a page.")]
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


router = APIRouter(
    prefix="/api/imports", tags=["imports"], responses=import_problems(401, 403, 422, 503)
)

_ONE: Final = import_problems(404)


@router.post(
    "",
    status_code=201,
    response_model_exclude_unset=True,
    responses={**bodies.created, **import_problems(409, 410, 413, 415), **QUOTA_PROBLEMS},
    openapi_extra={"requestBody": bodies.upload_form(Naming.CAMEL)},
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
) -> ImportStatus:
    """Upload a spreadsheet and start its import.

    The file is streamed: the answer comes within a second of its last byte, with the columns
    where they are known by then.
    """
    upload = Upload(request, service.settings.upload_limit, check_beginning)
    row = (await service.create(who, upload, key=idempotency_key)).row
    response.headers["location"] = f"/api/imports/{row.uuid}"
    response.headers["etag"] = etag(row.version)
    if row.state is SpreadsheetState.UPLOADED:
        return _status(row)
    columns = await service.columns(who, row.uuid)
    return _status(row, column_mappings=columns.columns)


@router.get(
    "",
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
) -> list[ImportStatus]:
    """Imports of your organisations, the newest first unless another order is asked for."""
    wanted = ImportFilter(status, import_type, context_id, created_by, search, sort)
    found = await service.list(who, wanted, organisation=organisation_id, page=page, size=size)
    if found.has_more:
        describe_uncounted_page(request, response, len(found.items), page, size)
    else:
        describe_page(request, response, found.total, page, size)
    return [_status(row) for row in await service.with_contexts(who, found.items)]


@router.get(
    "/{uuid}",
    response_model_exclude_unset=True,
    responses={**_ONE, **answers_with(200, VERSIONED)},
)
async def get_import(
    service: TheService,
    who: Who,
    uuid: ImportId,
    response: Response,
    include_mappings: Annotated[bool, Query(alias="includeMappings")] = False,
) -> ImportStatus:
    """The status of an import; with its columns and the first 200 values on request."""
    row = await service.get(who, uuid)
    response.headers["etag"] = etag(row.version)
    if not include_mappings or row.purged_at is not None:
        return _status(row)
    columns = await service.columns(who, uuid)
    cells = await service.cells(who, uuid, size=LARGEST_PAGE)
    return _status(row, column_mappings=columns.columns, cell_mappings=cells.items)


@router.delete(
    "/{uuid}",
    response_model_exclude_unset=True,
    responses={**_ONE, **import_problems(409, 410)},
)
async def cancel_import(
    service: TheService,
    who: Who,
    uuid: ImportId,
    reason: Annotated[str | None, Query(max_length=500)] = None,
) -> ImportStatus:
    """Cancel an import. Rows that are in stay in, and can be undone."""
    await service.cancel(who, uuid, reason)
    return _status(await service.get(who, uuid))


@router.post(
    "/{uuid}/start",
    status_code=202,
    response_model_exclude_unset=True,
    responses={**_ONE, **answers_with(202, VERSIONED), **import_problems(406, 409, 410, 412)},
)
async def start_import(
    service: TheService, who: Who, uuid: ImportId, response: Response, if_match: IfMatch = None
) -> ImportStatus:
    """Confirm all that matched by itself and process the rows.

    From COLUMN_MAPPING the values are not collected first: those that turn out to be open are
    asked for while the other rows are processed.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.start(who, uuid, version)
    response.headers["etag"] = etag(answer.version)
    return _status(await service.get(who, uuid))


one = APIRouter(
    prefix="/api/imports/{uuid}",
    tags=["mappings"],
    responses=import_problems(401, 403, 404, 410, 422, 503),
)

_ANSWERED: Final = {**answers_with(202, VERSIONED), **import_problems(406, 409, 412)}
_WRITTEN: Final = {**_ANSWERED, **import_problems(400, 413)}
"""Of requests with a body."""


@one.get("/column-mappings", responses=answers_with(200, VERSIONED))
async def get_columns(
    service: TheService, who: Who, uuid: ImportId, response: Response
) -> Sequence[ImportColumn]:
    """Every column, what it means, and some of its values."""
    found = await service.columns(who, uuid)
    response.headers["etag"] = etag(found.version)
    return [ImportColumn.model_validate(each) for each in found.columns]


@one.put("/column-mappings", status_code=202, responses=_WRITTEN)
async def put_columns(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[ColumnDecisions, Body(openapi_examples=_COLUMN_DECISIONS)],
    response: Response,
    if_match: IfMatch = None,
) -> ImportAnswer:
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
    return _answer(uuid, answer)


@one.post(
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
) -> ImportStatus:
    """Confirm all columns and continue with the values; answers with the first 200 of them."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.confirm_columns(who, uuid, version, incomplete=incomplete)
    response.headers["etag"] = etag(answer.version)
    cells = await service.cells(who, uuid, size=LARGEST_PAGE)
    row = await service.get(who, uuid)
    return _status(row, cell_mappings=cells.items)


@one.get("/cell-mappings", responses=answers_with(200, PAGED, VERSIONED))
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
) -> Sequence[ImportCell]:
    """The distinct values of fields that refer to other tables, and what they mean."""
    kind = None if question is None else question.value
    wanted = ValueFilter(field, mapping_status(status), kind, text)
    found = await service.cells(who, uuid, wanted, page=page, size=size)
    describe_page(request, response, found.total, page, size)
    response.headers["etag"] = etag(found.version)
    return [ImportCell.model_validate(each) for each in found.items]


@one.get("/cell-mappings/candidates")
async def get_candidates(
    service: TheService,
    who: Who,
    uuid: ImportId,
    field: Annotated[FieldName, Query(alias="targetField", examples=["EVENT_CATEGORY_NAME"])],
    query: Annotated[str, Query(max_length=200)] = "",
) -> list[ImportCandidate]:
    """What a value of a field may mean, the likeliest first; at most 50."""
    found = await service.candidates(who, uuid, field, query)
    return [ImportCandidate(id=each.id, name=each.name) for each in found]


@one.put("/cell-mappings", status_code=202, responses=_WRITTEN)
async def put_cells(
    service: TheService,
    who: Who,
    uuid: ImportId,
    body: Annotated[CellDecisions, Body(openapi_examples=_CELL_DECISIONS)],
    response: Response,
    if_match: IfMatch = None,
) -> ImportAnswer:
    """Decide what values mean.

    All decisions are saved, or none. 202: every value has a meaning. 406: the decisions are
    saved (`saved`), and the problem names the first values that are still open.
    """
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.update_cells(who, uuid, body, version)
    return _saved(uuid, answer, response)


def _saved(uuid: str, answer: MappingsAnswer, response: Response) -> ImportAnswer:
    if answer.cells.open:
        raise StillOpen(
            f"the decisions are saved; values that still have no meaning: {answer.cells.open}",
            answer,
            saved=True,
        )
    response.headers["etag"] = etag(answer.version)
    return _answer(uuid, answer)


@one.post(
    "/cell-mappings/confirm",
    status_code=202,
    response_model_exclude_unset=True,
    responses=_ANSWERED,
)
async def confirm_cells(
    service: TheService, who: Who, uuid: ImportId, response: Response, if_match: IfMatch = None
) -> ImportStatus:
    """Confirm all values and process the rows."""
    version = await expected_version(service, who, uuid, if_match)
    answer = await service.confirm_cells(who, uuid, version)
    response.headers["etag"] = etag(answer.version)
    return _status(await service.get(who, uuid))


results = APIRouter(
    prefix="/api/imports/{uuid}",
    tags=["results"],
    responses=import_problems(401, 403, 404, 410, 422, 503),
)


@results.get("/results", responses=answers_with(200, PAGED))
async def get_results(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    outcome: Outcome | None = None,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> Sequence[ImportResult]:
    """Outcome of each row by its number in the file, with its cells and what is wrong with them."""
    found = await service.result_page(who, uuid, outcome, page, size)
    describe_page(request, response, found.total, page, size)
    return [ImportResult.model_validate(each) for each in found.items]


@results.get("/results/summary")
async def get_summary(service: TheService, who: Who, uuid: ImportId) -> ImportSummary:
    """Rows per outcome; after a dry run the first 100 differences as well."""
    return ImportSummary.model_validate(await service.summary(who, uuid))


ROUTERS: Final = (router, one, results)
