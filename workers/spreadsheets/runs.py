"""Runs of spreadsheets in Temporal: start, undo and answer them."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypeVar, overload

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
)
from temporalio.common import (
    Priority,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import ActivityError, ApplicationError, WorkflowAlreadyStartedError

from activities.spreadsheets.records import SpreadsheetRow
from adapters.ports.records import Runs
from adapters.temporal import TemporalRunEnds
from workers.shared.services.errors import (
    Conflict,
    NotFound,
    Refused,
    ServiceError,
    TemporalUnavailable,
    WrongState,
)
from workers.shared.services.intake import short
from workers.shared.services.runs import TemporalRuns, temporal_errors
from workflows.shared import attributes, errors
from workflows.shared.contracts import Contract
from workflows.shared.fairness import fairness_key
from workflows.spreadsheets.mappings import FINAL, MappingsAnswer
from workflows.spreadsheets.runs import (
    TASK_QUEUE,
    Answer,
    SpreadsheetInput,
    UndoInput,
    status_label,
    undo_id,
    workflow_id,
)
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport
from workflows.spreadsheets.undo_and_retention import SpreadsheetUndo


class StillOpen(ServiceError):
    """Required fields or values have no mapping yet.

    Attributes:
        answer: What is open.
        saved: The decisions of this request were saved nevertheless.
    """

    status = 406
    kind = "still-open"
    title = "Mappings are still open"

    def __init__(self, message: str, answer: MappingsAnswer, *, saved: bool = False) -> None:
        super().__init__(message)
        self.answer = answer
        self.saved = saved


Result = TypeVar("Result", bound=Contract)

logger = logging.getLogger(__name__)

RPC_TIMEOUT: Final = timedelta(seconds=5)
_ANSWER_SECONDS: Final = 30
"""How long a run may take for its answer: reading the top of a file again is the slowest."""
_GONE_MEANWHILE: Final = "AcceptedUpdateCompletedWorkflow"


class StartedBefore(Exception):
    """The import was started by another request.

    Attributes:
        fingerprint: What that request was for.
    """

    def __init__(self, fingerprint: str) -> None:
        super().__init__("started by another request")
        self.fingerprint = fingerprint


class SpreadsheetRuns:
    """Runs of spreadsheets in one namespace; every refusal is a `ServiceError`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._runs = TemporalRuns(client, {}, seconds_to_answer=_ANSWER_SECONDS)
        self.ends: Runs = TemporalRunEnds(client)

    async def start(self, order: SpreadsheetInput) -> None:
        """Start an import.

        Raises:
            StartedBefore: There is a run of this import.
            TemporalUnavailable: Temporal does not take it; whether it was started is not known.
        """
        with temporal_errors():
            if not await self.start_once(order, {"fingerprint": order.fingerprint or ""}):
                handle = self._client.get_workflow_handle(workflow_id(order.uuid))
                found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
                memo = await found.memo()
                raise StartedBefore(str(memo.get("fingerprint")))

    async def start_once(
        self, order: SpreadsheetInput, memo: Mapping[str, str], details: str | None = None
    ) -> bool:
        """Start an import; False: there is a run of it already.

        Args:
            order: Its input.
            memo: What its run keeps beside the file name.
            details: What people are shown of it in Temporal.

        Raises:
            RPCError: Temporal does not take it; whether it was started is not known.
        """
        owner = order.organisation_id
        found = attributes.at_start("spreadsheets", order.import_type, str(owner), owner)
        try:
            await self._client.start_workflow(
                SpreadsheetImport.run,
                args=[order, None],
                id=workflow_id(order.uuid),
                task_queue=TASK_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                # A repeated call of the client library carries its request id, which the
                # server knows: only another request meets a run here.
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                memo={"filename": order.filename, **memo},
                search_attributes=found,
                priority=Priority(fairness_key=fairness_key(owner, order.by)),
                static_summary=short(
                    f"Spreadsheet {order.filename} as {order.import_type.replace('_', ' ').lower()}"
                ),
                static_details=details,
                rpc_timeout=RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return False
        return True

    @overload
    async def update(self, row: SpreadsheetRow, name: str, answer: Contract) -> MappingsAnswer: ...

    @overload
    async def update(
        self, row: SpreadsheetRow, name: str, answer: Contract, result: type[Result]
    ) -> Result: ...

    async def update(
        self,
        row: SpreadsheetRow,
        name: str,
        answer: Contract,
        result: type[Contract] = MappingsAnswer,
    ) -> Contract:
        """Bring a run what a person decided.

        Args:
            row: The import as the asker may see it.
            name: Of the update.
            answer: Its input.
            result: What it answers with.

        Raises:
            StillOpen: Something required is open; nothing has changed.
            Conflict: Another person has answered meanwhile.
            WrongState: The run does not wait for this, or has ended.
            Refused: The answer cannot be applied.
            TemporalUnavailable: Temporal or the run does not answer.
        """
        if row.state in FINAL:
            raise _ended(row)
        try:
            return await self._update(row, name, answer, result)
        except NotFound:
            # A run that began a new history under the update takes it there.
            if await self._is_running(workflow_id(row.uuid)):
                return await self._update(row, name, answer, result)
            raise _ended(row) from None

    async def undo(self, order: UndoInput) -> None:
        """Start taking an import back; one that is being taken back continues.

        Raises:
            TemporalUnavailable: Temporal does not take it.
        """
        with temporal_errors():
            await self._client.start_workflow(
                SpreadsheetUndo.run,
                order,
                id=undo_id(order.uuid),
                task_queue=TASK_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                search_attributes=TypedSearchAttributes(
                    [
                        SearchAttributePair(attributes.PIPELINE, "spreadsheets"),
                        SearchAttributePair(attributes.ORGANISATION_ID, str(order.organisation_id)),
                    ]
                ),
                priority=Priority(fairness_key=fairness_key(order.organisation_id, order.uuid)),
                static_summary="Undo of an import",
                rpc_timeout=RPC_TIMEOUT,
            )

    async def retry_undo(self, uuid: str, answer: Answer) -> None:
        """Try the step again that an undo is parked at.

        Raises:
            NotFound: No undo of the import is open.
            Refused: It is not parked.
            TemporalUnavailable: Temporal or the run does not answer.
        """
        await self._runs.update(undo_id(uuid), "retry", answer, type(None), TASK_QUEUE)

    async def _update(
        self, row: SpreadsheetRow, name: str, answer: Contract, result: type[Contract]
    ) -> Contract:
        return await self._runs.update(
            workflow_id(row.uuid),
            name,
            answer,
            result,
            TASK_QUEUE,
            refusal=lambda error: _refusal(row, error),
        )

    async def _is_running(self, id: str) -> bool:
        with temporal_errors():
            found = await self._client.get_workflow_handle(id).describe(rpc_timeout=RPC_TIMEOUT)
            return found.status is WorkflowExecutionStatus.RUNNING


def _cause(error: WorkflowUpdateFailedError | WorkflowFailureError) -> BaseException | None:
    """What went wrong itself, beneath the step in which it did."""
    cause = error.cause
    while isinstance(cause, ActivityError):
        cause = cause.cause
    return cause


def _refusal(row: SpreadsheetRow, error: WorkflowUpdateFailedError) -> ServiceError:
    cause = _cause(error)
    if not isinstance(cause, ApplicationError):
        return TemporalUnavailable("the import could not take the answer; try again in a minute")
    match cause.type:
        case errors.STILL_OPEN:
            return StillOpen(cause.message, MappingsAnswer.model_validate(cause.details[0]))
        case errors.VERSION_CONFLICT:
            return Conflict(cause.message)
        case errors.WRONG_STATE | errors.NOT_PARKED:
            return WrongState(cause.message)
        case errors.UNAVAILABLE | errors.TRANSIENT | errors.THROTTLING:
            return TemporalUnavailable("the answer could not be stored at the moment; try again")
        case kind if kind == _GONE_MEANWHILE:
            return _ended(row)
        case _:
            return Refused(cause.message)


def _ended(row: SpreadsheetRow) -> WrongState:
    reason = f"it {status_label(row.state)}" if row.state in FINAL else "its run is over"
    return WrongState(f"the import accepts no further answers: {reason}")
