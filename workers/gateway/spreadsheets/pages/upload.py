"""A new import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from contracts.spreadsheets import TypeName
from workers.gateway.http.upload import Upload
from workers.gateway.pages.language import gettext, localised, number
from workers.gateway.pages.renderer import is_fragment
from workers.gateway.pages.site import Alert, Site, Visitor, sentence
from workers.gateway.spreadsheets.downloads import ReportDownload
from workers.gateway.spreadsheets.templates import template_file
from workers.services.errors import Forbidden, Refused, ServiceError
from workers.services.spreadsheets.service import SpreadsheetService
from workers.services.spreadsheets.upload_form import check_beginning


@dataclass(frozen=True, slots=True)
class TypeChoice:
    """An import type that can be chosen."""

    name: str
    title: str
    context: str
    """Table of what its rows belong to; "" for nothing."""


@dataclass(frozen=True, slots=True)
class ContextGroup:
    """What rows of one or more types can belong to."""

    table: str
    title: str
    options: Sequence[tuple[str, str]]
    """What the form sends, and what people read."""


class UploadPages:
    """The upload form."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(self, request: Request) -> Response:
        """An empty form."""
        visitor = await self._site.visitor(request)
        if not visitor.who.may_write:
            raise Forbidden(gettext("your token lets you look at imports, but not make one"))
        return await self._page(request, visitor)

    async def template(self, request: Request, name: TypeName) -> Response:
        """A spreadsheet to begin with, in the language of the page."""
        await self._site.visitor(request)
        return ReportDownload(await template_file(self._service, name))

    async def submit(self, request: Request) -> Response:
        """Take the file in, and go to the page of its import."""
        visitor = await self._site.visitor(request)
        given: Mapping[str, str] = {}
        try:
            upload = Upload(request, self._service.settings.upload_limit, check_beginning)
            await upload.open()
            given = dict(upload.fields)
            self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
            self._name_context(upload.fields)
            row = await self._service.create(visitor.who, upload)
        except ServiceError as error:
            alert = Alert(error.title, sentence(error))
            if is_fragment(request):
                return self._site.templates.answer("problem.html", error.status, problem=alert)
            return await self._page(request, visitor, error.status, alert, given)
        address = f"/imports/{row.uuid}"
        if is_fragment(request):
            return Response(status_code=201, headers={"HX-Redirect": address})
        return RedirectResponse(address, 303)

    def _name_context(self, fields: dict[str, str]) -> None:
        """Split the form's choice of a context into its id and its organisation.

        Raises:
            Refused: It is none of this type's: an event has no members.
        """
        table, _, rest = fields.pop("contextId", "").partition(":")
        wanted = fields.get("importType")
        spec = next((it.context for it in self._service.types() if it.name == wanted), None)
        if spec is None or not table:
            return
        if table != spec.table:
            raise Refused(
                gettext("choose what the rows belong to: %(what)s", what=localised(spec.title))
            )
        fields["contextId"], _, fields["organisationId"] = rest.partition(":")

    async def _groups(self, visitor: Visitor) -> Sequence[ContextGroup]:
        found = await self._service.contexts(visitor.who)
        of_several = len(visitor.who.organisations) > 1
        titles = {it.context.table: it.context.title for it in self._service.types() if it.context}
        return [
            ContextGroup(
                table,
                title,
                [
                    (
                        f"{table}:{it.id}:{it.organisation_id}",
                        gettext(
                            "%(name)s (organisation %(id)s)", name=it.name, id=it.organisation_id
                        )
                        if of_several
                        else it.name,
                    )
                    for it in found
                    if it.table == table
                ],
            )
            for table, title in titles.items()
        ]

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        status: int = 200,
        alert: Alert | None = None,
        given: Mapping[str, str] | None = None,
    ) -> Response:
        limit = self._service.settings.upload_limit
        choices = [
            TypeChoice(each.name, each.title, each.context.table if each.context else "")
            for each in self._service.types()
        ]
        return self._site.page(
            request,
            visitor,
            "new.html",
            status,
            types=choices,
            groups=await self._groups(visitor),
            given=given or {},
            problem=alert,
            limit=limit,
            too_large=Alert(
                gettext("The file is too large"),
                gettext(
                    "A file may have at most %(limit)s MB. Split it and send the parts.",
                    limit=number(limit // 1_000_000),
                ),
            ),
        )
