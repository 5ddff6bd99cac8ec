"""Import runs in Temporal: how one is submitted, where it stands, answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from adapters.ports.errors import Unavailable
from adapters.ports.records import RejectedMessage
from workers.imports.access import ImportAccess
from workers.shared.connect import connect
from workers.shared.services.errors import TemporalUnavailable, WrongState
from workers.shared.services.runs import TemporalRuns, temporal_errors
from workers.shared.services.service_bus import ServiceBusQueue
from workflows.imports.messages import FileMessage, ImportMessage, ScheduleUploadMessage
from workflows.imports.runs import TASK_QUEUE, ImportResult, ImportState, ImportStatus, Retry
from workflows.shared.contracts import Answer
from workflows.shared.records import TERMINATED

PIPELINE: Final = "imports"


class ImportRuns(TemporalRuns):
    """Import runs of one namespace."""

    async def status(self, workflow_id: str) -> ImportStatus | None:
        """Where a run stands, from its worker; None when there is no answer."""
        try:
            return await self.query(workflow_id, "status", ImportStatus)
        except TemporalUnavailable:
            return None

    async def result(self, workflow_id: str) -> ImportResult:
        """The result of a closed run, failed ones included.

        Raises:
            WrongState: It was terminated, cancelled in Temporal or timed out.
        """
        handle = self.client.get_workflow_handle(workflow_id, result_type=ImportResult)
        with temporal_errors():
            try:
                return await handle.result()
            except WorkflowFailureError as error:
                cause = error.cause
                if isinstance(cause, ApplicationError) and cause.details:
                    return ImportResult.model_validate(cause.details[0])
                raise WrongState(
                    f"the run of {workflow_id} ended without a result: {cause}",
                    workflow_id=workflow_id,
                ) from error

    async def answer(self, workflow_id: str, name: str, answer: Retry | Answer) -> ImportStatus:
        """Send an update (`retry`, `skip`, `fail`, `cancel`) and wait until it is applied.

        Raises:
            NotFound: There is no such open run.
            Refused: The run refused; nothing has changed.
            TemporalUnavailable: No worker answered.
        """
        return await self.update(workflow_id, name, answer, ImportStatus, PIPELINE)

    async def workers(self) -> int:
        """How many workers poll the task queue, or did in the last minutes."""
        return await self.pollers(TASK_QUEUE)


async def open_runs(environment: Mapping[str, str]) -> ImportRuns:
    """Connect.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    return ImportRuns(await connect(), environment)


REJECTIONS_SEARCHED: Final = 50
"""The newest rejected messages, among which a message is looked for."""


class KnownTask(WrongState):
    """There is an import, or a file, of this task already."""


class RejectedBefore(WrongState):
    """A message of this task was rejected.

    Attributes:
        number: Of the rejected message.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


async def submit(
    access: ImportAccess,
    queue: ServiceBusQueue,
    message: ImportMessage,
    file: Path | None,
    runs: ImportRuns | None = None,
) -> str | None:
    """Store the file of an import and send its message; a bridge starts its run.

    A task whose run was terminated is sent again.

    Args:
        access: Status rows, rejected messages and blobs.
        queue: Where the message goes.
        message: What to import.
        file: Of the types that work from one.
        runs: Temporal; None: the status row alone says how an earlier run ended.

    Returns:
        Run id of the earlier run, where there is one that was terminated.

    Raises:
        KnownTask: A task is done once.
        RejectedBefore: Its message was rejected.
        QueueUnavailable: The queue does not answer.
    """
    task = f"task {message.project_id}/{message.task_id}"
    known = await access.tasks.get(message.project_id, message.task_id)
    earlier = await _terminated(runs, message) if known is not None else None
    again = earlier is not None or (known is not None and known.state is ImportState.TERMINATED)
    if known is not None and not again:
        raise KnownTask(f"{task} is {known.state} already, and a task is done once")
    rejected = await find_rejection(access, message.workflow_id)
    if rejected is not None:
        raise RejectedBefore(f"{task} was rejected before", rejected.id)
    if file is not None:
        try:
            # Never over the file of an import that may be reading it right now.
            await access.blobs.upload(file, _blob_of(message), overwrite=again)
        except FileExistsError as error:
            raise KnownTask(f"{task} has a file already, and a task is done once") from error
    await queue.send(to_wire(message), message.workflow_id)
    return earlier


async def _terminated(runs: ImportRuns | None, message: ImportMessage) -> str | None:
    """Run id of the newest run of a task, where it was terminated."""
    view = None if runs is None else await runs.look(message.workflow_id)
    return view.run_id if view is not None and view.status == TERMINATED else None


def _blob_of(message: ImportMessage) -> str:
    if isinstance(message, FileMessage):
        return message.blob_name
    assert isinstance(message, ScheduleUploadMessage)
    assert message.source_blob_name is not None
    return message.source_blob_name


def to_wire(message: ImportMessage) -> bytes:
    """The body of the message in the queue: what was given, defaults left out."""
    return message.model_dump_json(exclude_unset=True).encode()


async def find_rejection(access: ImportAccess, message_id: str) -> RejectedMessage | None:
    """The rejected message of this id, among the newest; None when the record is unavailable."""
    try:
        newest = await access.rejected.list(REJECTIONS_SEARCHED)
    except Unavailable:
        return None
    return next((found for found in newest if found.message_id == message_id), None)
