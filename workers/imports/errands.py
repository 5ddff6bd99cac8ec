"""What people ask of the workers of imports."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import BaseModel

from activities.imports.looks import DocumentLook, look_at
from activities.shared.scratch import fetched
from adapters.ports.errors import BlobNotFound, UnreadableDocument
from workers.imports.bridge import intake_of
from workers.imports.resources import ImportResources
from workers.imports.runs import ImportRuns
from workers.imports.settings import RunSettings
from workers.imports.submission import started
from workers.shared.register import Context
from workers.shared.services.errands import WAY_IN, arguments_of
from workers.shared.services.errors import NotFound, Refused
from workflows.imports.findings import foreign_blob
from workflows.imports.messages import AnyTableMessage
from workflows.shared.errors import RuleViolation

LARGEST_LOOK: Final = 64_000_000
"""Bytes of a document whose columns are shown."""


async def start(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Start the run that a message asks for, as its queue does.

    Raises:
        InvalidRequest: The message is wrong; nothing was started.
        WrongState: The task was started by another message.
        ServiceUnavailable: Temporal or the database does not answer.
    """
    intake = intake_of(context, WAY_IN, RunSettings.read(context.environment))
    done = await started(intake, given)
    return {"id": done.workflow_id, "is_new": done.is_new}


class Looked(BaseModel):
    """Which import a person looks at."""

    id: str


async def look(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Show the first rows of the document of an import, and what its columns mean.

    Raises:
        NotFound: There is no such import, or its document is gone.
        Refused: The document is no table, is too large, or cannot be read.
    """
    id, resources = arguments_of(Looked, given).id, cast("ImportResources", own)
    message = await ImportRuns(context.client, context.environment).message(id)
    if message is None:
        raise NotFound(f"there is no import {id}")
    if not isinstance(message, AnyTableMessage):
        raise Refused("the document is not a table")
    if (foreign := foreign_blob(message, resources.runs.blob_prefixes)) is not None:
        raise Refused(foreign)
    common, types = context.resources, resources.store.types
    try:
        spec = await types.spec(message, await types.facts(message))
        blob = await common.blobs.stat(message.blob_name)
        if blob.size > LARGEST_LOOK:
            raise Refused(f"it has more than {LARGEST_LOOK // 1_000_000} MB")
        async with fetched(common.blobs, blob.name, common.scratch) as path:
            found = await asyncio.to_thread(look_at, common.documents, path, message, spec)
    except BlobNotFound as error:
        raise NotFound("the document is not in the blob store") from error
    except (UnreadableDocument, RuleViolation) as error:
        raise Refused(str(error)) from error
    return _fitting(found).model_dump(mode="json")


def _fitting(found: DocumentLook) -> DocumentLook:
    """The same, short enough for an answer: a wide table has fewer rows in its preview."""
    cells = sum(len(cells) for _, cells in found.rows)
    most = len(found.rows) if cells <= _CELLS else max(2, _CELLS // max(1, len(found.columns)))
    return found.model_copy(update={"rows": found.rows[:most]})


_CELLS: Final = 1_000
