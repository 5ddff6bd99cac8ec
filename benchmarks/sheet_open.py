"""Many imports that wait for somebody to look at their columns."""

import asyncio
import uuid as uuids
from collections.abc import Sequence
from typing import Any, Final, cast

import asyncpg

from adapters.files.blobs import FolderBlobs
from benchmarks import sheet_workload
from benchmarks.sheet_stack import SheetStack
from benchmarks.sheet_workload import ORGANISATION
from contracts.blobs import BlobRef
from contracts.spreadsheets import TASK_QUEUE, SpreadsheetOrder, workflow_id
from workflows import attributes
from workflows.spreadsheets import SpreadsheetImport

UNKNOWN: Final = len(sheet_workload.HEADER) + 1
"""Id of the one column that means nothing."""
_AT_ONCE: Final = 50
_PATIENCE: Final = 3600.0
_WAITING: Final = (
    "SELECT count(*) FROM spreadsheet_imports WHERE waiting_since IS NOT NULL AND total IS NOT NULL"
)


async def open_imports(stack: SheetStack, count: int) -> Sequence[str]:
    """Start imports straight on Temporal, on a PostgreSQL database; their uuids once all wait.

    All of them are of one small file. Past the gateway nothing of theirs is different.
    """
    file = stack.folder / "small.csv"
    sheet_workload.write_text(file, sheet_workload.SMALL_ROWS, unknown="Shoe size")
    blob = await FolderBlobs(stack.blobs).upload(file, file.name)
    opened = [str(uuids.uuid4()) for _ in range(count)]
    left = iter(opened)

    async def start() -> None:
        for uuid in left:
            await _start(stack, uuid, blob)

    async with asyncio.timeout(_PATIENCE):
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(start())
        await _all_waiting(stack, count)
    return opened


async def _start(stack: SheetStack, uuid: str, blob: BlobRef) -> None:
    order = SpreadsheetOrder(
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


async def _all_waiting(stack: SheetStack, count: int) -> None:
    """Until each waits for a person and has put its rows aside."""
    connection = cast(Any, await asyncpg.connect(stack.environment["DATABASE_URL"]))
    try:
        while await connection.fetchval(_WAITING) < count:
            await asyncio.sleep(0.5)
    finally:
        await connection.close()
