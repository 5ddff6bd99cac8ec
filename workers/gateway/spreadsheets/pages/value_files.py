"""Values out as a spreadsheet and back in, on the page."""

from typing import Annotated

from fastapi import Query, Request, Response

from workers.gateway.http.upload import Upload
from workers.gateway.pages.language import counted, gettext
from workers.gateway.pages.site import Alert, Site, sentence
from workers.gateway.spreadsheets.downloads import ReportDownload
from workers.gateway.spreadsheets.pages.import_page import ImportPage, ViewRequest
from workers.services.errors import ServiceError
from workers.services.spreadsheets.service import SpreadsheetService
from workers.services.spreadsheets.upload_form import check_beginning


class ValueFilePages:
    """Download and upload of values."""

    def __init__(self, site: Site, service: SpreadsheetService, page: ImportPage) -> None:
        self._site = site
        self._service = service
        self._page = page

    async def export(
        self, request: Request, uuid: str, open: Annotated[bool, Query()] = False
    ) -> Response:
        """The values, to be filled in."""
        visitor = await self._site.visitor(request)
        files = self._service.value_files
        return ReportDownload(await files.export(visitor.who, uuid, only_open=open))

    async def upload(self, request: Request, uuid: str) -> Response:
        """Take the meanings of a filled-in file."""
        visitor = await self._site.visitor(request)
        try:
            upload = Upload(request, self._service.settings.upload_limit, check_beginning)
            await upload.open()
            self._site.check_csrf(visitor, upload.fields.pop("csrf", None))
            found = await self._service.value_files.upload(visitor.who, uuid, upload)
        except ServiceError as error:
            alert = Alert(error.title, sentence(error))
            return await self._page.answer(
                request, visitor, uuid, ViewRequest(alert=alert), status=error.status
            )
        answered = counted("%(count)s value answered.", "%(count)s values answered.", found.values)
        alert = Alert(gettext("Taken from the file"), answered, "good")
        return await self._page.answer(request, visitor, uuid, ViewRequest(alert=alert))
