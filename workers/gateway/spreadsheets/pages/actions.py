"""Other actions on an import: reassign, retry, cancel, undo, and its decisions."""

from collections.abc import Awaitable
from typing import Annotated, Final

from fastapi import Query, Request, Response

from domain.spreadsheets.bibs import QUESTIONS
from workers.gateway.pages.forms import Form
from workers.gateway.pages.language import gettext
from workers.gateway.pages.site import Alert, Site, Visitor, sentence
from workers.gateway.spreadsheets.downloads import ReportDownload
from workers.gateway.spreadsheets.pages.import_page import ImportPage, ViewRequest
from workers.services.errors import Refused, WrongState
from workers.services.spreadsheets.service import SpreadsheetService

_TRAIL_PAGE: Final = 50


class HandlingPages:
    """The buttons around an import."""

    def __init__(self, site: Site, service: SpreadsheetService, page: ImportPage) -> None:
        self._site = site
        self._service = service
        self._page = page

    async def cancel(self, request: Request, uuid: str) -> Response:
        """End an import."""
        visitor, form = await self._form(request)
        reason = form.text("reason", 500) or None
        return await self._do(
            request, visitor, uuid, self._service.cancel(visitor.who, uuid, reason)
        )

    async def retry(self, request: Request, uuid: str) -> Response:
        """Try a step again."""
        visitor, _ = await self._form(request)
        return await self._do(request, visitor, uuid, self._service.retry(visitor.who, uuid))

    async def reassign(self, request: Request, uuid: str) -> Response:
        """Reassign the import to another person."""
        visitor, form = await self._form(request)
        to = form.text("to", 200)
        if not to:
            raise Refused(gettext("enter the person to reassign the import to"))
        notify = form.text("notify", 320) or None
        order = self._service.reassign(visitor.who, uuid, to, notify)
        return await self._do(
            request,
            visitor,
            uuid,
            order,
            ViewRequest(announcement=gettext("Reassigned to %(who)s.", who=to)),
        )

    async def undo(self, request: Request, uuid: str) -> Response:
        """Undo an import."""
        visitor, _ = await self._form(request)
        order = self._service.undo(visitor.who, uuid)
        return await self._do(
            request, visitor, uuid, order, ViewRequest(focus="panel", undoing=True)
        )

    async def undo_preview(self, request: Request, uuid: str) -> Response:
        """What an undo would do now."""
        visitor = await self._site.visitor(request)
        row = await self._service.get(visitor.who, uuid)
        found, conflicts = await self._service.preview_undo(visitor.who, uuid)
        return self._site.page(
            request,
            visitor,
            "undo_preview.html",
            row=row,
            counts=found.counts,
            conflicts=conflicts,
        )

    async def report(self, request: Request, uuid: str) -> Response:
        """The error report, as a file."""
        visitor = await self._site.visitor(request)
        return ReportDownload(await self._service.report(visitor.who, uuid))

    async def decisions(
        self,
        request: Request,
        uuid: str,
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """Who decided what."""
        visitor = await self._site.visitor(request)
        service = self._service
        row = await service.get(visitor.who, uuid)
        titles: dict[str, str] = {}
        if row.purged_at is None:
            titles = {field.name: field.title for field in await service.fields(visitor.who, uuid)}
            titles |= {name: each.title for name, each in QUESTIONS.items()}
        found = await service.decisions(visitor.who, uuid, page=page, size=_TRAIL_PAGE)
        return self._site.page(
            request,
            visitor,
            "decisions.html",
            row=row,
            found=found,
            titles=titles,
            page=page,
            size=_TRAIL_PAGE,
        )

    async def _form(self, request: Request) -> tuple[Visitor, Form]:
        visitor = await self._site.visitor(request)
        return visitor, await self._site.form(request, visitor)

    async def _do(
        self,
        request: Request,
        visitor: Visitor,
        uuid: str,
        order: Awaitable[object],
        view_request: ViewRequest | None = None,
    ) -> Response:
        try:
            await order
        except (Refused, WrongState) as error:
            alert = Alert(error.title, sentence(error))
            return await self._page.answer(
                request, visitor, uuid, ViewRequest(alert=alert), status=error.status
            )
        return await self._page.done(request, visitor, uuid, view_request)
