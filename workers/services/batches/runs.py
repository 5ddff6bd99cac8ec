"""Runs of batches in Temporal, as commands see, tell and answer them."""

import uuid
from datetime import timedelta
from typing import Final

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import RejectedMessages
from contracts.batches import BatchAnswer, BatchKey, BatchStatus, CaseEvent, Timings
from workers.cli.batches.context import name_of
from workers.cli.errors import CommandError
from workers.services.batches.case_events import CaseEventIntake
from workers.services.imports.runs import SECONDS_TO_ANSWER, TemporalRuns, send_update
from workers.services.verdicts import Settle

SENDER: Final = "docflow batches"
"""Whom the record of rejected messages names as the queue of an event."""


class BatchRuns:
    """Runs of batches of one namespace."""

    def __init__(self, client: Client, runs: TemporalRuns) -> None:
        self._client = client
        self._runs = runs

    def link(self, key: BatchKey) -> str | None:
        """The run's page in the Temporal UI; None when TEMPORAL_UI_ADDRESS is not set."""
        return self._runs.link(key.workflow_id)

    async def status(self, key: BatchKey) -> BatchStatus | None:
        """Where the newest run of a batch stands; None: there is none.

        Raises:
            CommandError: No worker answers.
        """
        handle = self._client.get_workflow_handle(key.workflow_id)
        try:
            return await handle.query(
                "status",
                result_type=BatchStatus,
                rpc_timeout=timedelta(seconds=SECONDS_TO_ANSWER),
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise CommandError(
                f"{key.workflow_id} does not answer: {error.message}; "
                "is `docflow worker batches` running?"
            ) from error
        except WorkflowQueryFailedError as error:
            raise CommandError(f"{key.workflow_id} cannot be asked: {error}") from error

    async def take(self, event: CaseEvent, rejected: RejectedMessages, timings: Timings) -> str:
        """Have an event taken through the same intake as the bridge's; who took it.

        Raises:
            CommandError: It was not taken, or nobody knows.
        """
        intake = CaseEventIntake(self._client, rejected, queue=SENDER, timings=timings)
        body = event.model_dump_json(by_alias=True, exclude_none=True)
        # A person who says something twice means it twice.
        verdict = await intake.accept(body.encode(), 0, uuid.uuid4().hex)
        if isinstance(verdict, Settle):
            return verdict.workflow_id
        raise CommandError(f"{event.event_type} of {event.key} was not taken: {verdict.reason}")

    async def answer(self, key: BatchKey, name: str, answer: BatchAnswer) -> None:
        """Send an update (`retry`, `skip`, `fail`) and wait until it is taken.

        Raises:
            CommandError: There is no such open run, it refused, or no worker answered.
        """
        await send_update(
            self._client.get_workflow_handle(key.workflow_id),
            name,
            answer,
            result_type=type(None),
            seconds=SECONDS_TO_ANSWER,
            worker="docflow worker batches",
            tells=f"docflow batches show {name_of(key)}",
        )
