"""What docflow has learnt, as a page: to see, correct and forget."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from contracts.spreadsheets.reviews import Constant, Operation, Replace
from workers.gateway.pages.forms import Form
from workers.gateway.pages.language import gettext
from workers.gateway.pages.site import Site, Visitor
from workers.gateway.spreadsheets.pages.forms import LEFT_OUT
from workers.gateway.spreadsheets.pages.operation_words import operation_words
from workers.services.errors import Refused
from workers.services.spreadsheets.service import SpreadsheetService

_PAGE_SIZE: Final = 50
_ADDRESS: Final = "/imports/memory"


def details_of(operation: Operation) -> str:
    """What a change puts where, so that two of one column can be distinguished."""
    match operation:
        case Replace(find=find, put=put):
            return " " + gettext("(“%(find)s” by “%(put)s”)", find=find, put=put)
        case Constant(value=value):
            return f" (“{value}”)"
        case _:
            return ""


def _of_files(headers: Sequence[str]) -> str:
    """Which files a change is suggested for that is about no column."""
    if not headers:
        return ""
    return " " + gettext("in files with the headers %(headers)s", headers=", ".join(headers))


class MemoryPages:
    """Headers and values that people decided about."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        show: Annotated[str, Query(pattern="^(columns|values|changes)$")] = "columns",
        q: Annotated[str, Query(max_length=200)] = "",
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """What was learnt of headers, or of values."""
        visitor = await self._site.visitor(request)
        memory = self._service.memory
        if show == "changes":
            return await self._show_changes(request, visitor, page)
        ask = memory.columns if show == "columns" else memory.values
        found = await ask(visitor.who, query=q, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "memory.html",
            found=found,
            show=show,
            query=q,
            page=page,
            size=_PAGE_SIZE,
            left_out=LEFT_OUT,
            types={each.name: each for each in self._service.types()},
        )

    async def change(self, request: Request) -> Response:
        """Correct or forget one of them."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        if form.text("show") == "values":
            await self._change_value(visitor, form)
            return RedirectResponse(f"{_ADDRESS}?show=values", 303)
        if form.text("show") == "changes":
            await self._service.memory.forget_edit(
                visitor.who, form.whole("organisation"), form.text("type"), form.text("key")
            )
            return RedirectResponse(f"{_ADDRESS}?show=changes", 303)
        await self._change_column(visitor, form)
        return RedirectResponse(_ADDRESS, 303)

    async def _show_changes(self, request: Request, visitor: Visitor, page: int) -> Response:
        titles = {
            field.name: field.title for kind in self._service.types() for field in kind.fields
        }
        found = await self._service.memory.edits(visitor.who, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "memory.html",
            found=found,
            show="changes",
            query="",
            page=page,
            size=_PAGE_SIZE,
            sentences=[
                operation_words(each.operation, each.headers, titles)
                + details_of(each.operation)
                + _of_files(each.file_headers)
                for each in found.items
            ],
            types={each.name: each for each in self._service.types()},
        )

    async def _change_column(self, visitor: Visitor, form: Form) -> None:
        memory, who = self._service.memory, visitor.who
        organisation, kind, header = form.whole("organisation"), form.text("type"), form.text("key")
        if form.text("do") == "forget":
            await memory.forget_column(who, organisation, kind, header)
            return
        target = form.text("target")
        chosen = None if target == LEFT_OUT else target
        await memory.learn_column(who, organisation, kind, header, chosen)

    async def _change_value(self, visitor: Visitor, form: Form) -> None:
        memory, who = self._service.memory, visitor.who
        organisation, kind, value = form.whole("organisation"), form.text("type"), form.text("key")
        field = form.text("field")
        if form.text("do") == "forget":
            await memory.forget_value(who, organisation, kind, field, value)
            return
        empty = form.text("do") == "empty"
        name = form.text("target")
        if not name and not empty:
            raise Refused(gettext("enter the name of what the value means, or leave it empty"))
        await memory.learn_value(who, organisation, kind, field, value, None if empty else name)
