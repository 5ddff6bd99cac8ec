"""What people ask of the workers of spreadsheets."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from activities.spreadsheets.views import SqlSpreadsheetViews
from workers.shared.register import Context
from workers.shared.services.errands import arguments_of
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.identity import OPERATOR, Identity
from workers.shared.services.quotas import Quotas
from workers.spreadsheets.resources import SpreadsheetResources
from workers.spreadsheets.runs import SpreadsheetRuns
from workers.spreadsheets.settings import SpreadsheetSettings
from workers.spreadsheets.upload_form import UploadFields
from workers.spreadsheets.uploads import SpreadsheetUploads
from workflows.shared.contracts import BlobName
from workflows.spreadsheets.runs import workflow_id


class StoredUpload(UploadFields):
    """A stored file, and the fields that come with an upload."""

    blob_name: BlobName
    filename: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    """None: as the blob is called."""


async def start(
    context: Context, own: SpreadsheetResources, given: Mapping[str, Any], by: str
) -> Any:
    """Start the import of a stored spreadsheet, of which docflow makes a copy.

    Raises:
        InvalidRequest: A field is missing or wrong.
        Refused: The type, or its context, is not known, or there is no such file.
        TooManyRequests: The person uploads too often.
        TemporalUnavailable: Temporal does not take the start.
    """
    asked = arguments_of(StoredUpload, given)
    if asked.organisation_id is None:
        raise InvalidRequest("organisation_id: say whose rows these are")
    fields = UploadFields.model_validate(asked.model_dump(exclude={"blob_name", "filename"}))
    uploads = SpreadsheetUploads(
        SpreadsheetRuns(context.client),
        SqlSpreadsheetViews(context.resources.database),
        own.store,
        context.resources.blobs,
        own.types,
        SpreadsheetSettings.read(context.environment),
        Quotas.read(context.environment, context.resources.database),
    )
    who = Identity(by, (asked.organisation_id,), frozenset({OPERATOR}))
    filename = asked.filename or asked.blob_name.rpartition("/")[2]
    row = await uploads.create_from_blob(who, asked.blob_name, filename, fields)
    return {"id": workflow_id(row.uuid), "uuid": row.uuid, "state": row.state}
