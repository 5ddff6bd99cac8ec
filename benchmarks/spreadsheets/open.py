"""Many imports that wait for a person to look at their columns."""

import asyncio
import uuid as uuids
from collections.abc import Sequence
from typing import Any, Final, cast

import asyncpg

from adapters.files.blobs import FolderBlobs
from benchmarks.spreadsheets import workload
from benchmarks.spreadsheets.stack import SheetStack
from benchmarks.spreadsheets.workload import ORGANISATION
from workflows.shared import attributes
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.runs import TASK_QUEUE, SpreadsheetInput, workflow_id
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

UNKNOWN: Final = len(workload.HEADER) + 1
"""Id of the one column that means nothing."""
_STARTED_TOGETHER: Final = 20
_LOOK_SECONDS: Final = 0.1
_TIMEOUT: Final = 3600.0
_WAITING: Final = (
    "SELECT count(*) FROM spreadsheet_imports WHERE waiting_since IS NOT NULL AND total IS NOT NULL"
)


async def open_imports(stack: SheetStack, count: int) -> Sequence[str]:
    """Start imports straight on Temporal, on a PostgreSQL database; their uuids once all wait.

    All of them are of one small file. Past the gateway nothing of theirs is different.
    """
    file = stack.folder / "small.csv"
    workload.write_text(file, workload.SMALL_ROWS, unknown="Shoe size")
    blob = await FolderBlobs(stack.blobs).upload(file, file.name)
    opened = [str(uuids.uuid4()) for _ in range(count)]
    connection = cast(Any, await asyncpg.connect(stack.environment["DATABASE_URL"]))
    try:
        async with asyncio.timeout(_TIMEOUT):
            for first in range(0, count, _STARTED_TOGETHER):
                some = opened[first : first + _STARTED_TOGETHER]
                await asyncio.gather(*(_start(stack, uuid, blob) for uuid in some))
                # At most as many are in flight as a worker keeps in memory.
                while await connection.fetchval(_WAITING) < first:
                    await asyncio.sleep(_LOOK_SECONDS)
            while await connection.fetchval(_WAITING) < count:
                await asyncio.sleep(_LOOK_SECONDS)
    finally:
        await connection.close()
    return opened


async def _start(stack: SheetStack, uuid: str, blob: BlobRef) -> None:
    order = SpreadsheetInput(
        uuid=uuid,
        organisation_id=ORGANISATION,
        import_type="EVENT_PARTICIPANT",
        context_id=stack.club.event_id,
        source=blob,
        filename=blob.name,
        by="bench",
    )
    await stack.client.start_workflow(
        SpreadsheetImport.run,
        args=[order, None],
        id=workflow_id(uuid),
        task_queue=TASK_QUEUE,
        search_attributes=attributes.at_start("spreadsheets", order.import_type, str(ORGANISATION)),
    )
