"""A new import."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from workers.gateway.errors import DeskError, Forbidden
from workers.gateway.pages.rendering import is_fragment
from workers.gateway.pages.site import Site, Trouble, Visitor, sentence
from workers.gateway.upload import Upload


@dataclass(frozen=True, slots=True)
class TypeChoice:
    """An import type that can be chosen."""

    name: str
    title: str
    context_label: str
    """What the number of its surroundings is called."""


class UploadPages:
    """The upload form."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request) -> Response:
        """An empty form."""
        visitor = await self._site.visitor(request)
        if not visitor.who.may_write:
            raise Forbidden("your token lets you look at imports, but not make one")
        return self._page(request, visitor)

    async def submit(self, request: Request) -> Response:
        """Take the file in, and go to the page of its import."""
        visitor = await self._site.visitor(request)
        upload = None
        try:
            upload = Upload(request, self._site.desk.settings.upload_limit)
            await upload.open()
            self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
            row = await self._site.desk.create(visitor.who, upload)
        except DeskError as error:
            trouble = Trouble(error.title, sentence(error))
            if is_fragment(request):
                return self._site.templates.answer("problem.html", error.status, problem=trouble)
            given = upload.fields if upload is not None else {}
            return self._page(request, visitor, error.status, trouble, given)
        address = f"/imports/{row.uuid}"
        if is_fragment(request):
            return Response(status_code=201, headers={"HX-Redirect": address})
        return RedirectResponse(address, 303)

    def _page(
        self,
        request: Request,
        visitor: Visitor,
        status: int = 200,
        trouble: Trouble | None = None,
        given: Mapping[str, str] | None = None,
    ) -> Response:
        choices = [
            TypeChoice(
                each.name,
                each.title,
                f"{each.context.title} no." if each.context else "Belongs to no.",
            )
            for each in self._site.desk.types()
        ]
        return self._site.page(
            request,
            visitor,
            "new.html",
            status,
            types=choices,
            given=given or {},
            problem=trouble,
            limit=self._site.desk.settings.upload_limit,
        )
