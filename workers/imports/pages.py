"""What the gateway serves of document imports: where one stands, and the answers to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from activities.imports.views import SqlImportTasks
from adapters.types.store import SqlDeclaredTypes
from workers.imports import api
from workers.imports.api import changes_of, take_file
from workers.imports.bridge import intake_of
from workers.imports.run_actions import ServedImports, name_of
from workers.imports.runs import ImportRuns
from workers.imports.service import LARGEST_FILE, ImportService, RunAnswer
from workers.imports.settings import RunSettings
from workers.imports.submission import WAY_IN, DocumentSubmission
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.http.upload import Upload, any_file
from workers.shared.gateway.pages.site import PageRoute, PipelinePages, Site
from workers.shared.register import Context
from workers.shared.services.errors import Refused


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
            it=found,
            name=name_of(found),
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


TEMPLATES: Final = Path(__file__).parent / "templates"
_DESCRIPTION: Final = (
    "Answer document imports that wait for a person: with another sheet, the meaning of a column, "
    "the schedule that a file updates, or a corrected file."
)


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    resources, runs = context.resources, RunSettings.read(context.environment)
    types = SqlDeclaredTypes(resources.database)
    intake = intake_of(context, WAY_IN, runs)
    service = ImportService(
        ImportRuns(context.client, context.environment),
        SqlImportTasks(resources.database),
        resources.blobs,
        types,
    )
    return part_of(service, DocumentSubmission(intake, resources.blobs, types))


def part_of(service: ImportService, submission: DocumentSubmission) -> GatewayPart:
    """The part over services.

    Args:
        service: Of imports.
        submission: Starts them.
    """

    def routes(site: Site) -> Sequence[PageRoute]:
        page = ImportPage(site, service)
        return (
            ("GET", "/documents", page.show),
            ("POST", "/documents/answers", page.answer),
            ("POST", "/documents/files", page.retry_with_file),
        )

    return GatewayPart(
        service=service,
        runs=ServedImports(service),
        description=_DESCRIPTION,
        routers=(api.router,),
        uploads=("/api/v1/documents", "/api/v1/documents/corrections", "/documents/files"),
        further={DocumentSubmission: submission},
        pages=PipelinePages(routes=routes, templates=TEMPLATES),
    )
