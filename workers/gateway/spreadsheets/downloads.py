"""Files on their way to a person."""

from typing import Final

from fastapi.responses import FileResponse
from starlette.types import Receive, Scope, Send

from workers.services.spreadsheets.queries import ReportFile

XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class ReportDownload(FileResponse):
    """Sends an error report and deletes it, also when the client has disconnected."""

    def __init__(self, report: ReportFile) -> None:
        super().__init__(report.path, media_type=XLSX, filename=report.filename)
        self._report = report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._report.path.unlink(missing_ok=True)
