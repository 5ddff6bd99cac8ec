"""Templates of import types over HTTP."""

from fastapi import APIRouter
from fastapi.responses import FileResponse

from contracts.spreadsheets import TypeName
from workers.gateway.http.identity import Who
from workers.gateway.spreadsheets.dependencies import TheService
from workers.gateway.spreadsheets.downloads import XLSX, ReportDownload
from workers.gateway.spreadsheets.problems import import_problems
from workers.gateway.spreadsheets.templates import template_file

router = APIRouter(prefix="/api", responses=import_problems(401, 403, 404, 422, 503))


@router.get(
    "/import-types/{name}/template",
    tags=["types"],
    response_class=FileResponse,
    responses={
        200: {
            "description": "XLSX",
            "content": {XLSX: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def download_template(service: TheService, who: Who, name: TypeName) -> ReportDownload:
    """A spreadsheet with the columns of a type, and help with examples on a second sheet.

    Each of its columns is recognised when it is uploaded.
    """
    return ReportDownload(await template_file(service, name))
