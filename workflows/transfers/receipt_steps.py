"""The steps of a job's receipt, each with the hash of the one before it."""

from typing import Final

from temporalio import workflow

from contracts.blobs import BlobRef
from contracts.transfers import Action, ActionResult, FileJobOrder, ReceiptStep
from domain.transfers.receipts import sealed

_OUTCOMES: Final = "transfers-receipt-outcomes"
"""Change id: receipts of runs before it leave out what was not carried out."""
_SENTENCE: Final = 500


class ReceiptSteps:
    """What the receipt of a job will hold.

    Args:
        order: Of the job.
    """

    def __init__(self, order: FileJobOrder) -> None:
        self._order = order
        self.previous = order.digest
        """Hash of the last step."""
        self.stored: list[BlobRef] = []
        """Steps of actions that were carried out, but for short ones."""
        self.outcomes: list[ReceiptStep] = []
        """Short ones, and steps of actions that were not carried out."""

    def done(self, result: ActionResult) -> None:
        """An action was carried out."""
        if result.inline_step:
            self.outcomes.append(ReceiptStep.model_validate_json(result.inline_step))
        elif result.step is not None:
            self.stored.append(result.step)
        else:
            return
        self.previous = result.step_sha256

    def add(
        self,
        index: int,
        action: Action,
        outcome: str,
        reason: str,
        decided_by: str | None,
        configured_by: str | None = None,
    ) -> None:
        """An action was not carried out, and why."""
        if not workflow.patched(_OUTCOMES):
            return
        step = sealed(
            ReceiptStep(
                transfer_id=self._order.transfer_id,
                index=index,
                action=action.action,
                configured_by=configured_by,
                at=workflow.now(),
                outcome=outcome,
                reason=reason[:_SENTENCE],
                decided_by=decided_by,
                previous=self.previous,
                sha256="",
            )
        )
        self.outcomes.append(step)
        self.previous = step.sha256
