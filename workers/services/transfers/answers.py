"""Answers of people to runs of transfers, of one or of many."""

from typing import Final

from adapters.ports.transfers import StatusRow
from contracts.answers import Answer, Retry
from contracts.base import Contract
from contracts.transfers import TransferRetry, TransferView, file_job_id
from workers.services.bodies import correction_of
from workers.services.identity import Identity
from workers.services.runs import TemporalRuns
from workers.services.transfers.verbs import run_of
from workflows.parking import Decision

_PIPELINE: Final = "transfers"


class TransferAnswers:
    """Sends answers to runs of transfers, as the updates that commands send.

    Args:
        runs: Of Temporal.
    """

    def __init__(self, runs: TemporalRuns) -> None:
        self._runs = runs

    async def answer(
        self,
        who: Identity,
        row: StatusRow,
        decision: Decision,
        *,
        reason: str | None = None,
        correction: str = "",
        settings: bool = False,
    ) -> None:
        """Answer a run that waits for a person.

        Args:
            who: Who decides.
            row: Of the transfer.
            decision: What is to be done.
            reason: Why, for its trail; a retry has none.
            correction: Of a retry: settings of the failed action that change, a JSON object.
            settings: Of a retry: read the settings of the job again.

        Raises:
            InvalidRequest: The correction is not a JSON object.
            Refused: The run does not take this answer; nothing has changed.
            TemporalUnavailable: No worker answered.
        """
        by = who.subject
        if decision is not Decision.RETRY:
            await self._send(row, decision.value, Answer(by=by, reason=reason))
        elif run_of(row) == file_job_id(row.transfer_id):
            action = correction_of(correction.encode() or None, "settings of the action")
            retry = TransferRetry(by=by, action=action, settings=settings)
            await self._send(row, decision.value, retry)
        else:
            await self._send(row, decision.value, Retry(by=by))

    async def cancel(self, who: Identity, row: StatusRow, reason: str | None = None) -> None:
        """Begin no further action of a job.

        Raises:
            NotFound: No run of it is open.
            Refused: It is too late.
        """
        await self._send(row, "cancel", Answer(by=who.subject, reason=reason))

    async def _send(self, row: StatusRow, verb: str, answer: Contract) -> None:
        await self._runs.update(run_of(row), verb, answer, TransferView, _PIPELINE)
