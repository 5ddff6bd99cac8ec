"""The page of one document import: what it waits for, and the answers."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from workers.gateway.http.upload import Upload
from workers.gateway.imports.api import any_file, changes_of, take_file, view_of
from workers.gateway.pages.site import Site
from workers.services.errors import Refused
from workers.services.imports.answers import RunAnswer
from workers.services.imports.service import LARGEST_FILE, ImportService
from workers.services.imports.verbs import name_of


class ImportPage:
    """Shows an import and takes answers to it.

    Args:
        site: The context of the pages.
        service: Of imports.
    """

    def __init__(self, site: Site, service: ImportService) -> None:
        self._site = site
        self._service = service

    async def show(
        self, request: Request, id: Annotated[str, Query(min_length=1, max_length=1_000)]
    ) -> Response:
        """The page."""
        visitor = await self._site.visitor(request)
        found = await self._service.get(visitor.who, id)
        return self._site.page(
            request,
            visitor,
            "document.html",
            it=view_of(found),
            row=found.row,
            name=name_of(found.row),
            limit=LARGEST_FILE,
        )

    async def answer(self, request: Request) -> Response:
        """Take an answer without a file."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        fields = {**form.fields, "map": ""}
        changes = {**changes_of(fields), **_map_of(form.text("map", 4_000))}
        if field := form.text("field", 64):
            changes[field] = form.text("value", 1_000)
        verb, id = form.text("verb", 20), form.text("id", 1_000)
        answer = RunAnswer(
            verb,
            by=visitor.who.subject,
            reason=form.text("reason", 500) or None,
            changes=changes if verb == "retry" else {},
        )
        await self._service.answer(visitor.who, id, answer)
        return _back(id)

    async def retry_with_file(self, request: Request) -> Response:
        """Take a corrected file."""
        visitor = await self._site.visitor(request)
        upload = Upload(request, LARGEST_FILE, any_file)
        await upload.open()
        self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
        await take_file(self._service, visitor.who, upload)
        return _back(upload.fields["id"])


def _back(id: str) -> Response:
    return RedirectResponse(f"/documents?id={quote(id, safe='/')}", 303)


def _map_of(text: str) -> dict[str, dict[str, str]]:
    """Lines `header = field`, as a change of the message.

    Raises:
        Refused: A line is none.
    """
    pairs: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        header, sign, field = (part.strip() for part in line.rpartition("="))
        if not (header and sign and field):
            raise Refused(f"“{line[:80]}”: write a header, an equals sign and a field")
        pairs[header] = field
    return {"map": pairs} if pairs else {}
