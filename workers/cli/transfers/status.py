"""What `docflow status` shows of transfers beyond what Temporal knows."""

from collections.abc import Sequence

from adapters.database.transfers.store import SqlTransferStore
from contracts.transfers import TransferStatus
from workers.cli.context import CliContext
from workers.pipelines.base import Pipeline
from workers.resources.tables import open_tables
from workers.services.status import AwaitingRun
from workers.services.transfers.verbs import SHOWN, WAITING, parked_reason, run_of


async def parked(context: CliContext, pipeline: Pipeline, limit: int) -> Sequence[AwaitingRun]:
    """Transfers whose rows say that they wait for a person, with the reasons."""
    async with open_tables(context.environment) as database:
        store = SqlTransferStore(database)
        found = [
            row for status in WAITING for row in await store.newest(limit=limit, status=status)
        ]
    return [
        AwaitingRun(
            pipeline=pipeline.name,
            workflow_id=run_of(row),
            id=row.transfer_id[:SHOWN],
            type="event" if row.status is TransferStatus.NO_ASSIGNED else row.queue or "",
            state="parked",
            since=row.at,
            reason=reason,
            row={"transfer_id": row.transfer_id, "file": row.file, "account_id": row.account_id},
        )
        for row in found
        if (reason := parked_reason(row)) is not None
    ]
