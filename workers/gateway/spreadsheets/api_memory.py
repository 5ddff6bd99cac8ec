"""What was learnt, and what imports can belong to, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response

from adapters.database.spreadsheets.records import LearntColumn, LearntEdit, LearntValue
from contracts.spreadsheets import FieldName, TypeName
from domain.spreadsheets.operations import described
from workers.gateway.http.identity import Who
from workers.gateway.spreadsheets import examples
from workers.gateway.spreadsheets.bodies import LearntColumnBody, LearntValueBody
from workers.gateway.spreadsheets.dependencies import (
    PAGED,
    PageNumber,
    PageSize,
    TheService,
    answers_with,
    describe_page,
)
from workers.gateway.spreadsheets.problems import import_problems
from workers.gateway.spreadsheets.review_schemas import LearntOperationView
from workers.gateway.spreadsheets.schemas import (
    AvailableContextView,
    LearntColumnView,
    LearntValueView,
)

router = APIRouter(prefix="/api", responses=import_problems(401, 403, 422, 503))

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


@router.get("/contexts", tags=["types"])
async def list_contexts(
    service: TheService, who: Who, import_type: OfType = None
) -> list[AvailableContextView]:
    """Events, membership periods and races that imports can belong to: values of `contextId`.

    The newest 200 of each.
    """
    found = await service.contexts(who)
    tables = {
        kind.context.table
        for kind in service.types()
        if kind.context is not None and import_type in (None, kind.name)
    }
    return [
        AvailableContextView(
            id=each.id, table=each.table, name=each.name, organisation_id=each.organisation_id
        )
        for each in found
        if each.table in tables
    ]


@router.get("/memory/columns", tags=["memory"], responses=answers_with(200, PAGED))
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
) -> list[LearntColumnView]:
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
    return [_column_view(each) for each in found.items]


@router.put("/memory/columns", tags=["memory"], responses=import_problems(400, 413))
async def learn_column(
    service: TheService,
    who: Who,
    body: Annotated[LearntColumnBody, Body(openapi_examples=examples.learnt_column)],
) -> LearntColumnView:
    """Decide what a header means in the next files, or that such columns are left out."""
    return _column_view(
        await service.memory.learn_column(
            who, body.organisation_id, body.import_type, body.header, body.target_field
        )
    )


@router.delete("/memory/columns", status_code=204, tags=["memory"])
async def forget_column(
    service: TheService,
    who: Who,
    import_type: TypeOf,
    header: Annotated[str, Query(max_length=200, description="As in files.")],
    organisation_id: Owner = None,
) -> None:
    """Forget what a header means; the next file asks."""
    await service.memory.forget_column(who, organisation_id, import_type, header)


@router.get("/memory/values", tags=["memory"], responses=answers_with(200, PAGED))
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
) -> list[LearntValueView]:
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
    return [_value_view(each) for each in found.items]


@router.put("/memory/values", tags=["memory"], responses=import_problems(400, 413))
async def learn_value(
    service: TheService,
    who: Who,
    body: Annotated[LearntValueBody, Body(openapi_examples=examples.learnt_value)],
) -> LearntValueView:
    """Decide what a value means in the next files, or that it is left empty.

    A row is named, not numbered: each event has a category of that name.
    """
    return _value_view(
        await service.memory.learn_value(
            who,
            body.organisation_id,
            body.import_type,
            body.target_field,
            body.source_value,
            body.target_name,
        )
    )


@router.delete("/memory/values", status_code=204, tags=["memory"])
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


@router.get("/memory/operations", tags=["memory"], responses=answers_with(200, PAGED))
async def list_learnt_operations(
    service: TheService,
    who: Who,
    request: Request,
    response: Response,
    organisation_id: Organisation = None,
    import_type: OfType = None,
    page: PageNumber = 0,
    size: PageSize = 50,
) -> list[LearntOperationView]:
    """Changes of whole columns that reviews suggest for files with these headers."""
    found = await service.memory.edits(
        who, organisation=organisation_id, import_type=import_type, page=page, size=size
    )
    describe_page(request, response, found.total, page, size)
    return [_operation_view(each) for each in found.items]


@router.delete("/memory/operations", status_code=204, tags=["memory"])
async def forget_operation(
    service: TheService,
    who: Who,
    import_type: TypeOf,
    key: Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="Of the listed change.")],
    organisation_id: Owner = None,
) -> None:
    """No longer suggest a change; confirming it in a review again remembers it again."""
    await service.memory.forget_edit(who, organisation_id, import_type, key)


def _operation_view(learnt: LearntEdit) -> LearntOperationView:
    subject, decision = described(learnt.operation, learnt.headers)
    return LearntOperationView(
        organisation_id=learnt.organisation_id,
        import_type=learnt.import_type,
        key=learnt.about,
        headers=list(learnt.headers.values()),
        file_headers=list(learnt.file_headers),
        subject=subject,
        decision=decision,
        operation=learnt.operation,
        decided_by=learnt.decided_by,
        decided_at=learnt.decided_at,
    )


def _column_view(learnt: LearntColumn) -> LearntColumnView:
    return LearntColumnView(
        organisation_id=learnt.organisation_id,
        import_type=learnt.import_type,
        header=learnt.header,
        target_field=learnt.target,
        decided_by=learnt.decided_by or None,
        decided_at=learnt.decided_at,
    )


def _value_view(learnt: LearntValue) -> LearntValueView:
    return LearntValueView(
        organisation_id=learnt.organisation_id,
        import_type=learnt.import_type,
        target_field=learnt.field,
        source_value=learnt.value,
        target_entity_id=learnt.target_id,
        target_name=learnt.target_name,
        decided_by=learnt.decided_by or None,
        decided_at=learnt.decided_at,
    )
