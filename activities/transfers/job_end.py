"""`transfers.close`: the end of a job."""

from dataclasses import dataclass

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports.transfers import Staging, StatusRow, TransferStore
from contracts.transfers import KeptTransfer, TransferClosing, file_job_id
from domain.transfers.event_facts import file_of


@dataclass(frozen=True)
class ClosingPorts:
    """What `JobClosing` is given."""

    store: TransferStore
    staging: Staging


class JobClosing:
    """Ends jobs.

    Args:
        ports: Where rows and bytes are kept.
    """

    def __init__(self, ports: ClosingPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.close")
    @translate_failures
    async def close(self, closing: TransferClosing) -> None:
        """Remove what a job has staged, and write how it ended: the next one has its turn then."""
        job, ports = closing.job, self._ports
        async with Heartbeater():
            await ports.staging.remove(job.transfer_id)
        await ports.store.record(
            StatusRow(
                transfer_id=job.transfer_id,
                status=closing.status,
                at=closing.at,
                source=job.event.source,
                event_id=job.event.id,
                account_id=job.event.account_id,
                type=job.event.type,
                subject=job.event.subject,
                queue=job.queue,
                job=closing.settings_job,
                file=closing.file or file_of(job.event),
                reason=closing.reason,
                by=closing.by,
                run=file_job_id(job.transfer_id),
                digest=job.digest,
                receipt=closing.receipt,
                kept=_kept(closing),
            )
        )


def _kept(closing: TransferClosing) -> KeptTransfer | None:
    """What is kept to be sent again, with what names may refer to."""
    if closing.kept is None:
        return None
    kept = closing.kept
    return KeptTransfer(files=kept.files, until=kept.until, event=closing.job.event)
