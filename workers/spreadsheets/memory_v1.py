"""What uploads can be of, and what docflow has learnt for the next ones, over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Query
from fastapi.responses import FileResponse

from activities.spreadsheets.records import (
    AvailableContext,
    ImportTypeView,
    LearntColumn,
    LearntEdit,
    LearntValue,
)
from workers.shared.gateway.http.requests import Who
from workers.spreadsheets import bodies
from workers.spreadsheets.bodies import LearntColumnBody, LearntValueBody
from workers.spreadsheets.http import (
    FILE,
    ReportDownload,
    ThePlace,
    TheService,
    import_problems,
    template_file,
)
from workers.spreadsheets.upload_form import NewContext
from workers.spreadsheets.v1 import PREFIX
from workflows.shared.contracts import PlainRecord, served
from workflows.spreadsheets.mappings import FieldName, TypeName

_NEXT: Final = "`cursor` of the next page; null on the last page"


class TypeList(PlainRecord):
    """What can be uploaded."""

    items: Annotated[Sequence[ImportTypeView], served("The types, by name", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


class ContextList(PlainRecord):
    """What uploads can belong to."""

    items: Annotated[Sequence[AvailableContext], served("The newest 200 of each table", [])]
    next: Annotated[None, served("Always null: older ones are not listed", None)] = None


class LearntColumnPage(PlainRecord):
    """Some headers that people decided about, the newest first."""

    items: Annotated[Sequence[LearntColumn], served("The headers", [])]
    next: Annotated[str | None, served(_NEXT, None)]


class LearntValuePage(PlainRecord):
    """Some values that people decided about, the newest first."""

    items: Annotated[Sequence[LearntValue], served("The values", [])]
    next: Annotated[str | None, served(_NEXT, None)]


class LearntChangePage(PlainRecord):
    """Some changes of whole columns that reviews suggest, the newest first."""

    items: Annotated[Sequence[LearntEdit], served("The changes", [])]
    next: Annotated[str | None, served(_NEXT, None)]


types = APIRouter(prefix=PREFIX, tags=["uploads"], responses=import_problems(401, 403, 422, 503))
memory = APIRouter(
    prefix=f"{PREFIX}/memory", tags=["memory"], responses=import_problems(401, 403, 422, 503)
)
_Organisation = Annotated[
    int | None, Query(ge=1, le=2**53, description="One of yours; all of them when absent")
]
_Owner = Annotated[int | None, Query(ge=1, le=2**53, description="The first of yours when absent")]
_OfType = Annotated[TypeName | None, Query(description="Only of this import type")]
_Text = Annotated[str, Query(max_length=200, description="Part of the header or value")]
_ONE_TYPE: Final[dict[int | str, dict[str, Any]]] = {**FILE, **import_problems(404)}


@types.get("/types")
async def list_upload_types(service: TheService, who: Who) -> TypeList:
    """List what can be uploaded, field by field; custom lists of an organisation come on top."""
    found = await service.types()
    return TypeList(items=[ImportTypeView.model_validate(kind) for kind in found])


@types.get("/types/{name}/template", response_class=FileResponse, responses=_ONE_TYPE)
async def download_template(service: TheService, who: Who, name: TypeName) -> ReportDownload:
    """Fetch a spreadsheet with the columns of a type, and help with examples on a second sheet.

    Each of its columns is recognised when it is uploaded.
    """
    return ReportDownload(await template_file(service, name))


@types.get("/contexts")
async def list_contexts(service: TheService, who: Who, import_type: _OfType = None) -> ContextList:
    """List events, membership periods, races and custom lists: values of `context_id`."""
    found = await service.contexts(who)
    tables = {
        kind.context.table
        for kind in await service.types()
        if kind.context is not None and import_type in (None, kind.name)
    }
    return ContextList(items=[each for each in found if each.table in tables])


@types.post("/contexts", status_code=201)
async def make_context(service: TheService, who: Who, body: NewContext) -> AvailableContext:
    """Make an event, a membership period, a race or a custom list that uploads can belong to.

    If there is one of this name and first day, name and event, or key, it is answered with.
    """
    return await service.make_context(who, body)


@memory.get("/columns")
async def list_learnt_columns(
    service: TheService,
    who: Who,
    place: ThePlace,
    organisation_id: _Organisation = None,
    import_type: _OfType = None,
    text: _Text = "",
) -> LearntColumnPage:
    """List what headers mean since people decided it, the newest first."""
    found = await service.memory.columns(
        who,
        organisation=organisation_id,
        import_type=import_type,
        query=text,
        page=place.page,
        size=place.size,
    )
    items, next = place.rest(found)
    return LearntColumnPage(items=items, next=next)


@memory.put("/columns")
async def learn_column(
    service: TheService,
    who: Who,
    body: Annotated[LearntColumnBody, Body(openapi_examples=bodies.learnt_column)],
) -> LearntColumn:
    """Decide what a header means in the next files, or that such columns are left out."""
    return await service.memory.learn_column(
        who, body.organisation_id, body.import_type, body.header, body.target
    )


@memory.delete("/columns", status_code=204)
async def forget_column(
    service: TheService,
    who: Who,
    import_type: TypeName,
    header: Annotated[str, Query(max_length=200, description="As in files")],
    organisation_id: _Owner = None,
) -> None:
    """Forget what a header means; the next file asks."""
    await service.memory.forget_column(who, organisation_id, import_type, header)


@memory.get("/values")
async def list_learnt_values(
    service: TheService,
    who: Who,
    place: ThePlace,
    organisation_id: _Organisation = None,
    import_type: _OfType = None,
    text: _Text = "",
) -> LearntValuePage:
    """List what values mean since people decided it, the newest first."""
    found = await service.memory.values(
        who,
        organisation=organisation_id,
        import_type=import_type,
        query=text,
        page=place.page,
        size=place.size,
    )
    items, next = place.rest(found)
    return LearntValuePage(items=items, next=next)


@memory.put("/values")
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
        body.field,
        body.value,
        body.target_name,
    )


@memory.delete("/values", status_code=204)
async def forget_value(
    service: TheService,
    who: Who,
    import_type: TypeName,
    field: Annotated[FieldName, Query(description="The field")],
    value: Annotated[str, Query(max_length=200, description="As in files")],
    organisation_id: _Owner = None,
) -> None:
    """Forget what a value means; the next file asks."""
    await service.memory.forget_value(who, organisation_id, import_type, field, value)


@memory.get("/changes")
async def list_learnt_changes(
    service: TheService,
    who: Who,
    place: ThePlace,
    organisation_id: _Organisation = None,
    import_type: _OfType = None,
) -> LearntChangePage:
    """List changes of whole columns that reviews suggest for files with these headers."""
    found = await service.memory.edits(
        who,
        organisation=organisation_id,
        import_type=import_type,
        page=place.page,
        size=place.size,
    )
    items, next = place.rest(found)
    return LearntChangePage(items=items, next=next)


@memory.delete("/changes", status_code=204)
async def forget_change(
    service: TheService,
    who: Who,
    import_type: TypeName,
    key: Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="Of the listed change")],
    organisation_id: _Owner = None,
) -> None:
    """No longer suggest a change; confirming it in a review again remembers it again."""
    await service.memory.forget_edit(who, organisation_id, import_type, key)


ROUTERS: Final = (types, memory)
