"""The upload form."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from adapters.files.tables.custom import installed_readers
from adapters.ports.access import UploadGrant
from workers.shared.gateway.http.upload import Upload
from workers.shared.gateway.pages.renderer import (
    gettext,
    is_fragment,
    localised,
    number,
)
from workers.shared.gateway.pages.site import Alert, Site, Visitor, sentence
from workers.shared.services.errors import Forbidden, NotFound, Refused, ServiceError, TooLarge
from workers.spreadsheets.http import ReportDownload, template_file
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.upload_form import SCOPE, NewContext, check_beginning, refused_if_invalid
from workflows.shared.declared_types import ORGANISATION
from workflows.spreadsheets.mappings import (
    TypeName,
)


@dataclass(frozen=True, slots=True)
class TypeChoice:
    """An import type that can be chosen."""

    name: str
    title: str
    context: str
    """Table of what its rows belong to; "" for nothing."""
    scope: Sequence[str] = ()
    """What the form asks for that all rows share."""


@dataclass(frozen=True, slots=True)
class ContextGroup:
    """What rows of one or more types can belong to."""

    table: str
    title: str
    options: Sequence[tuple[str, str]]
    """What the form sends, and what people read."""


class _FormUpload(Upload):
    """An upload by the form, whose fields may come after the file."""

    def __init__(
        self,
        request: Request,
        limit: int,
        name_fields: Callable[[dict[str, str]], Awaitable[None]],
    ) -> None:
        super().__init__(request, limit, check_beginning)
        self._name_fields = name_fields

    async def finish(self) -> Mapping[str, str]:
        """Read what follows the file; all fields, in the service's words."""
        fields = dict(await super().finish())
        await self._name_fields(fields)
        return fields


class UploadPages:
    """The upload form."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(self, request: Request) -> Response:
        """An empty form."""
        visitor = await self._site.visitor(request)
        if not visitor.who.may_write:
            raise Forbidden(gettext("your token lets you look at uploads, but not make one"))
        asked = request.query_params
        given = {"importType": asked.get("type", ""), "contextId": asked.get("context", "")}
        return await self._page(request, visitor, given={**given, "review": "true"})

    async def make_context(self, request: Request) -> Response:
        """Make what rows belong to, and go on with the form."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        given = {name: form.text(name) for name in ("table", "name", "key", "open")}
        given["starts_on"] = form.text("startsOn")
        # As the options of the form have it: table, id and organisation.
        _, _, event = form.text("event").partition(":")
        given["event_id"], _, given["organisation_id"] = event.partition(":")
        try:
            with refused_if_invalid():
                wanted = NewContext.model_validate(given)
            made = await self._service.make_context(visitor.who, wanted)
        except Refused as error:
            alert = Alert(error.title, sentence(error))
            return await self._page(request, visitor, error.status, alert, made=form.fields)
        chosen = f"{made.table}:{made.id}:{made.organisation_id}"
        types = await self._service.types()
        kind = next(it for it in types if it.context and it.context.table == made.table)
        query = urlencode({"type": kind.name, "context": chosen})
        return RedirectResponse(f"/uploads/new?{query}", 303)

    async def template(self, request: Request, name: TypeName) -> Response:
        """A spreadsheet to begin with, in the language of the page."""
        grant = (await self._site.visitor(request)).who.upload
        if grant is not None and name != grant.import_type:
            raise NotFound(gettext("there is no such page"))
        return ReportDownload(await template_file(self._service, name))

    async def submit(self, request: Request) -> Response:
        """Take the file in, and go to the page of its import."""
        visitor = await self._site.visitor(request)
        given: Mapping[str, str] = {}
        upload: _FormUpload | None = None
        try:
            upload = _FormUpload(
                request,
                self._service.settings.upload_limit,
                lambda fields: self._name_fields(visitor.who.upload, fields),
            )
            given = upload.fields
            await upload.open()
            self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
            row = (await self._service.create(visitor.who, upload)).row
        except ServiceError as error:
            alert = Alert(error.title, sentence(error))
            if is_fragment(request):
                return self._site.templates.answer("problem.html", error.status, problem=alert)
            # The page comes back as it was sent: fields may stand behind the file.
            if upload is not None and not isinstance(error, TooLarge):
                with suppress(ServiceError):
                    await upload.skip()
            return await self._page(request, visitor, error.status, alert, given)
        address = f"/uploads/{row.uuid}"
        if is_fragment(request):
            return Response(status_code=201, headers={"HX-Redirect": address})
        return RedirectResponse(address, 303)

    async def _choices(self, grant: UploadGrant | None) -> Sequence[TypeChoice]:
        """The types to choose from; with an upload token there is one, and the rest is given."""
        return [
            TypeChoice(
                each.name,
                each.title,
                each.context.table if each.context and grant is None else "",
                [] if grant else [name for name in each.scope if name != ORGANISATION],
            )
            for each in await self._service.types()
            if grant is None or each.name == grant.import_type
        ]

    async def _name_fields(self, grant: UploadGrant | None, fields: dict[str, str]) -> None:
        """Say in the service's words what the form says.

        A context of the form is split into its id and its organisation; an upload token says the
        rest itself.

        Raises:
            Refused: The context is none of this type's: an event has no members.
        """
        if grant is not None:
            fields.update(_fields_of(grant))
            return
        table, _, rest = fields.pop("contextId", "").partition(":")
        wanted = fields.get("importType")
        spec = next((it.context for it in await self._service.types() if it.name == wanted), None)
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
        titles = {
            it.context.table: it.context.title for it in await self._service.types() if it.context
        }
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
        made: Mapping[str, str] | None = None,
    ) -> Response:
        limit = self._service.settings.upload_limit
        choices = await self._choices(visitor.who.upload)
        return self._site.page(
            request,
            visitor,
            "new.html",
            status,
            types=choices,
            scopes=list(dict.fromkeys(name for each in choices for name in each.scope)),
            groups=[] if visitor.who.upload else await self._groups(visitor),
            given=given or {"review": "true"},
            made=made or {},
            problem=alert,
            limit=limit,
            suffixes=sorted(installed_readers().found),
            too_large=Alert(
                gettext("The file is too large"),
                gettext(
                    "A file may have at most %(limit)s MB. Split it and send the parts.",
                    limit=number(limit // 1_000_000),
                ),
            ),
        )


def _fields_of(grant: UploadGrant) -> Mapping[str, str]:
    """What the form would say of the upload that an upload token is for."""
    context = {} if grant.context_id is None else {"contextId": str(grant.context_id)}
    scope = {f"{SCOPE}{name}": value for name, value in grant.scope.items()}
    return {"importType": grant.import_type, **context, **scope}
