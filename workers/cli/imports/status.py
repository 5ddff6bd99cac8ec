"""What `docflow status` shows of imports beyond what Temporal knows."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from contracts.imports import ImportState
from workers.cli.context import CliContext
from workers.cli.errors import Failure, attempt
from workers.cli.imports.context import open_queue, open_tasks
from workers.cli.imports.views import row_as_json
from workers.pipelines.base import Pipeline
from workers.services.imports.verbs import name_of
from workers.services.status import AwaitingRun, Check

MESSAGES_PEEKED: Final = 100


async def parked(context: CliContext, pipeline: Pipeline, limit: int) -> Sequence[AwaitingRun]:
    """Imports that their status rows say are parked, with the reasons that these keep."""
    async with open_tasks(context) as tasks:
        rows = await tasks.list(limit, ImportState.PARKED)
    return [
        AwaitingRun(
            pipeline=pipeline.name,
            workflow_id=row.workflow_id,
            id=name_of(row),
            type=row.document_type,
            state=row.state,
            since=row.updated_at,
            reason=row.reason,
            row=row_as_json(row),
        )
        for row in rows
    ]


async def checks(context: CliContext) -> Sequence[Check]:
    """The Service Bus queue."""

    async def depth() -> str:
        async with AsyncExitStack() as stack:
            queue = await stack.enter_async_context(open_queue(context))
            depth = await queue.depth(MESSAGES_PEEKED)
        waiting, dead = (
            f"{number}{' or more' if number == depth.at_most else ''}"
            for number in (depth.waiting, depth.dead_letters)
        )
        return f"{waiting} waiting, {dead} in the dead letter queue"

    found = await attempt(depth())
    if isinstance(found, Failure):
        return [Check("queue", False, found.reason)]
    return [Check("queue", True, found)]
