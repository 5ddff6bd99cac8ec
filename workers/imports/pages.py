"""What the gateway serves of document imports: parts of a run's page, and a form for new ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from activities.imports.views import SqlImportTasks
from adapters.types.store import SqlDeclaredTypes
from workers.imports import api
from workers.imports.api import take_file
from workers.imports.bridge import intake_of
from workers.imports.new_document import ADDRESS, NewDocument
from workers.imports.run_actions import ServedImports
from workers.imports.run_parts import DocumentParts, changes_in
from workers.imports.runs import ImportRuns
from workers.imports.service import LARGEST_FILE, ImportService
from workers.imports.settings import RunSettings
from workers.imports.submission import WAY_IN, DocumentSubmission
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.http.upload import Upload, any_file
from workers.shared.gateway.pages.renderer import N_, MenuEntry
from workers.shared.gateway.pages.site import PageRoute, PipelinePages, Site
from workers.shared.register import Context
from workers.shared.services.errands import ErrandService


class CorrectedFiles:
    """Takes corrected files of parked imports.

    Args:
        site: The context of the pages.
        service: Of imports.
    """

    def __init__(self, site: Site, service: ImportService) -> None:
        self._site = site
        self._service = service

    async def take(self, request: Request, act: TheAct) -> Response:
        """Try an import again with another file."""
        visitor = await self._site.visitor(request)
        upload = Upload(request, LARGEST_FILE, any_file)
        await upload.open()
        self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
        id = act.object = upload.fields.get("id", "")[:1_000]
        act.after = {"answer": "retry", "file": upload.filename}
        await take_file(self._service, visitor.who, upload)
        return RedirectResponse(f"/runs/{quote(id, safe='/')}", 303)


_FILES: Final = "/runs/files"
_SECONDS_TO_LOOK: Final = 10.0
"""A page does not wait longer for a worker that reads its document."""
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
    errands = ErrandService(context.client, _SECONDS_TO_LOOK)
    return part_of(service, DocumentSubmission(intake, resources.blobs, types), types, errands)


def part_of(
    service: ImportService,
    submission: DocumentSubmission,
    types: SqlDeclaredTypes,
    errands: ErrandService,
) -> GatewayPart:
    """The part over services.

    Args:
        service: Of imports.
        submission: Starts them.
        types: Those of teams.
        errands: Ask workers.
    """

    def routes(site: Site) -> Sequence[PageRoute]:
        new, files = NewDocument(site, submission, types), CorrectedFiles(site, service)
        return (
            ("GET", ADDRESS, new.show),
            ("POST", ADDRESS, new.submit),
            ("POST", _FILES, files.take),
        )

    return GatewayPart(
        service=service,
        runs=ServedImports(service),
        description=_DESCRIPTION,
        routers=(api.router,),
        uploads=("/api/v1/documents", "/api/v1/documents/corrections", ADDRESS, _FILES),
        further={DocumentSubmission: submission},
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            parts=DocumentParts(service, errands).parts,
            changes_of=changes_in,
            new=(MenuEntry(ADDRESS, N_("New document"), operators=True),),
        ),
    )
