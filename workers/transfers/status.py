"""What `docflow status` shows of transfers beyond what Temporal knows."""

from collections.abc import Sequence

from activities.transfers.store import SqlTransferStore
from workers.shared.cli.context import CliContext
from workers.shared.register import Pipeline
from workers.shared.services.status import AwaitingRun
from workers.shared.tables import open_tables
from workers.transfers.verbs import SHOWN, WAITING, parked_reason, run_of
from workflows.transfers.events import TransferStatus


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
