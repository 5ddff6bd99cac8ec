"""What can be done to runs of transfers, by id."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from workers import catalogue
from workers.shared.register import Run, recognise
from workers.shared.services.bodies import correction_of
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.verbs import (
    AnswerRequest,
    Filters,
    Report,
    RunEntry,
    RunVerbs,
    send_answer,
)
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import file_job_id, transfer_workflow_id

if TYPE_CHECKING:
    from activities.transfers.records import Transfer

_BEGINNING: Final = re.compile("[0-9a-fA-F]{8,64}")
_RUNNING: Final = "running"
_OPEN: Final = {
    TransferStatus.READ_MESSAGE: _RUNNING,
    TransferStatus.ASSIGNED: _RUNNING,
    TransferStatus.NO_ASSIGNED: "parked",
}
UNNAMED: Final = "operator"
"""Who answers where the machine knows no user name, as in many containers."""
SHOWN: Final = 12
"""Characters of an id, for people."""
_PARKED: Final = "parked: "
"""Begins the reason of a row whose run is parked."""
WAITING: Final[Mapping[TransferStatus, str | None]] = {
    TransferStatus.NO_ASSIGNED: None,
    TransferStatus.READ_MESSAGE: _PARKED,
}
"""States of transfers that may wait for a person, and how the reason of those that do begins."""
_EVENTS: Final = (TransferStatus.INVALID, TransferStatus.GARBAGE, TransferStatus.NO_ASSIGNED)


class TransferVerbs:
    """What can be done to events and to their jobs."""

    pipeline = "transfers"
    naming = "transfer/ID, transfer/ID/job, or the first 8 characters of ID or more"
    states: Sequence[str] = (
        _RUNNING,
        "parked",
        *(status.lower() for status in TransferStatus if status not in _OPEN),
    )
    filters: frozenset[str] = frozenset()
    corrects: frozenset[str] = frozenset({"retry"})
    changes: frozenset[str] = frozenset()

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """The runs of transfers whose id begins so: that of the job, where there is one."""
        if not _BEGINNING.fullmatch(text):
            return None
        from activities.transfers.store import SqlTransferStore
        from workers.shared.tables import open_tables

        async with open_tables(environment) as database:
            found = await SqlTransferStore(database).find(text)
        runs = (recognise(catalogue.PIPELINES, run_of(row)) for row in found)
        return [run for run in runs if run is not None]

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Transfers, as the database has them."""
        from activities.transfers.store import SqlTransferStore
        from workers.shared.tables import open_tables

        async with open_tables(environment) as database:
            store = SqlTransferStore(database)
            found: list[Transfer] = []
            for status in _statuses(filters.state):
                found += await store.newest(limit=filters.limit, status=status)
        entries = [_entry(row) for row in sorted(found, key=lambda row: row.at, reverse=True)]
        if filters.state is not None:
            entries = [each for each in entries if each.state == filters.state]
        return entries[: filters.limit]

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send the update of the verb; `retry` takes the failed action with corrected settings.

        An answer without a name is the operator's, as with every other command of transfers.

        Raises:
            InvalidRequest: The correction is not a JSON object.
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        action = correction_of(request.correction, "action")
        named = replace(request, by=request.by or UNNAMED)
        return await send_answer(environment, run, named, action=action)

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """No run offers one."""
        raise InvalidRequest(f"{run.workflow_id} has no report; see `docflow transfers receipt`")


def run_of(row: "Transfer") -> str:
    """The workflow id of the run that a row is about."""
    if row.run is not None:
        return row.run
    is_event = row.status in _EVENTS
    return (transfer_workflow_id if is_event else file_job_id)(row.transfer_id)


def parked_reason(row: "Transfer") -> str | None:
    """Why a transfer waits for a person; None: it does not."""
    reason = row.reason or ""
    if row.status is TransferStatus.NO_ASSIGNED:
        return reason
    is_parked = row.status in WAITING and reason.startswith(_PARKED)
    return reason.removeprefix(_PARKED) if is_parked else None


def _statuses(state: str | None) -> Sequence[TransferStatus | None]:
    """What a state in lists may stand for in the table; None: any status."""
    if state is None:
        return (None,)
    if state in _OPEN.values():
        return tuple(_OPEN)
    return tuple(status for status in TransferStatus if status.lower() == state)


def _entry(row: "Transfer") -> RunEntry:
    is_parked = (row.reason or "").startswith(_PARKED)
    state = "parked" if is_parked and row.status in _OPEN else None
    return RunEntry(
        workflow_id=run_of(row),
        name=row.transfer_id[:SHOWN],
        pipeline="transfers",
        type=row.queue or "event",
        state=state or _OPEN.get(row.status, row.status.lower()),
        since=row.at,
        note=row.reason,
        is_open=row.status in _OPEN,
        columns={"account": row.account_id or "", "file": row.file or ""},
        row={
            "transfer_id": row.transfer_id,
            "status": row.status.value,
            "source": row.source,
            "event_id": row.event_id,
            "account_id": row.account_id,
            "type": row.type,
            "subject": row.subject,
            "queue": row.queue,
            "job": row.job,
            "file": row.file,
            "at": row.at.isoformat(),
            "by": row.by,
        },
    )


VERBS: Final[RunVerbs] = TransferVerbs()
