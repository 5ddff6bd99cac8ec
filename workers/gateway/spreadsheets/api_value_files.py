"""Values out as a spreadsheet and back in, over HTTP."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse

from workers.gateway.http.identity import Who
from workers.gateway.http.upload import Upload
from workers.gateway.spreadsheets import serializers
from workers.gateway.spreadsheets.dependencies import (
    VERSIONED,
    IfMatch,
    ImportId,
    TheService,
    answers_with,
    etag,
    expected_version,
)
from workers.gateway.spreadsheets.downloads import XLSX, ReportDownload
from workers.gateway.spreadsheets.problems import import_problems
from workers.gateway.spreadsheets.schemas import ImportView
from workers.services.spreadsheets.upload_form import check_beginning

UPLOADS: Final = "/api/imports/{uuid}/cell-mappings/upload"
"""Takes a file."""

router = APIRouter(
    prefix="/api/imports/{uuid}/cell-mappings",
    tags=["mappings"],
    responses=import_problems(401, 403, 404, 410, 422, 503),
)

_FORM: Final[dict[str, Any]] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {
                        "type": "string",
                        "format": "binary",
                        "description": "An export of the values, filled in",
                    }
                },
            }
        }
    },
}


@router.get(
    "/export",
    response_class=FileResponse,
    responses={
        200: {
            "description": "XLSX",
            "content": {XLSX: {"schema": {"type": "string", "format": "binary"}}},
        },
        **import_problems(409),
    },
)
async def export_values(
    service: TheService,
    who: Who,
    uuid: ImportId,
    only_open: Annotated[
        bool, Query(alias="onlyOpen", description="Values without a meaning only.")
    ] = False,
) -> ReportDownload:
    """The values with their meanings, to be filled in and uploaded again."""
    return ReportDownload(await service.value_files.export(who, uuid, only_open=only_open))


@router.post(
    "/upload",
    status_code=202,
    response_model_exclude_unset=True,
    responses={**answers_with(202, VERSIONED), **import_problems(400, 409, 412, 413, 415)},
    openapi_extra={"requestBody": _FORM},
)
async def upload_values(
    service: TheService,
    who: Who,
    uuid: ImportId,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
) -> ImportView:
    """Take the meanings of a filled-in export; what is blank there stays as it is."""
    await service.writable(who, uuid)
    version = await expected_version(service, who, uuid, if_match)
    upload = Upload(request, service.settings.upload_limit, check_beginning)
    await service.value_files.upload(who, uuid, upload, version)
    row = await service.get(who, uuid)
    response.headers["etag"] = etag(row.version)
    return serializers.import_view(row)
