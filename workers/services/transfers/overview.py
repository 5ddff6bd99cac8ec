"""One transfer as its page shows it, and what a person has done with it there."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from adapters.ports.transfers import StatusRow, TransferStore
from contracts.transfers import (
    ActionDetail,
    ActionDetails,
    ActionView,
    TransferStatus,
    redrive_id,
    resend_id,
)
from workers.services.errors import TemporalUnavailable
from workers.services.identity import Identity
from workers.services.runs import TemporalRuns
from workers.services.transfers.answers import TransferAnswers
from workers.services.transfers.offers import Offer, offers
from workers.services.transfers.redrive import Redrives
from workers.services.transfers.service import TransferDetails, TransferService
from workers.services.transfers.stored_receipts import ShownReceipt, StoredReceipts
from workers.services.transfers.verbs import run_of
from workflows.parking import Decision

_FOLLOWING: Final = 10
"""Transfers that a page links as those that sent it again."""


@dataclass(frozen=True, slots=True)
class TransferOverview:
    """All that is known of one transfer."""

    details: TransferDetails
    actions: Sequence[tuple[ActionView, ActionDetail]]
    """Of its job, in order; as long as a worker of its queue answers."""
    offers: Sequence[Offer]
    receipt: ShownReceipt | None
    before: str | None
    """The transfer that it sends again, or carries out anew."""
    following: Sequence[StatusRow]
    """Those that have sent it again, or carried it out anew."""


class TransferPageService:
    """What the page of a transfer asks, and does.

    Args:
        service: Of transfers.
        store: Their rows.
        runs: Of Temporal.
        receipts: As they are stored.
        redrives: Start failed ones anew.
        answers: Send answers to their runs.
    """

    def __init__(
        self,
        service: TransferService,
        store: TransferStore,
        runs: TemporalRuns,
        receipts: StoredReceipts,
        redrives: Callable[[], Redrives],
        answers: TransferAnswers,
    ) -> None:
        self._service, self._store, self._runs = service, store, runs
        self._receipts, self._redrives, self._answers = receipts, redrives, answers
        self.queues = tuple(service.queues)
        self.accepted = service.accepted
        self.assign = service.assign
        self.reroute = service.reroute
        self.resend = service.resend

    async def get(self, who: Identity, name: str) -> TransferOverview:
        """A transfer.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is none.
        """
        details = await self._service.get(who, name)
        receipt = await self._receipts.of(details.row)
        known = receipt and receipt.receipt
        return TransferOverview(
            details,
            await self._actions(details),
            offers(details),
            receipt,
            known and (known.resent_from or known.redriven_from),
            await self._following(details.row),
        )

    async def _actions(self, details: TransferDetails) -> Sequence[tuple[ActionView, ActionDetail]]:
        views = () if details.view is None else details.view.actions
        found: ActionDetails | None = None
        if views:
            # A worker of an earlier release does not know the query.
            with suppress(TemporalUnavailable):
                found = await self._runs.query(run_of(details.row), "actions", ActionDetails)
        known = [] if found is None else [*found.actions]
        return list(zip(views, [*known, *[ActionDetail()] * len(views)], strict=False))

    async def _following(self, row: StatusRow) -> Sequence[StatusRow]:
        name = {TransferStatus.SUCCEEDED: resend_id, TransferStatus.FAILED: redrive_id}.get(
            row.status
        )
        found: list[StatusRow] = []
        while name is not None and len(found) < _FOLLOWING:
            following = await self._store.get(name(row.transfer_id, len(found) + 1))
            if following is None:
                break
            found.append(following)
        return found

    async def answer(
        self,
        who: Identity,
        name: str,
        decision: Decision,
        *,
        reason: str | None = None,
        correction: str = "",
        settings: bool = False,
    ) -> None:
        """Answer a run that waits for a person; see `TransferAnswers.answer`."""
        row = await self._service.row(who, name)
        await self._answers.answer(
            who, row, decision, reason=reason, correction=correction, settings=settings
        )

    async def cancel(self, who: Identity, name: str, reason: str | None = None) -> None:
        """Begin no further action of its job; see `TransferAnswers.cancel`."""
        await self._answers.cancel(who, await self._service.row(who, name), reason)

    async def redrive(self, who: Identity, name: str, from_action: int | None = None) -> str:
        """Carry out a failed transfer anew; the id of the new one."""
        return (await self._redrives().redrive(who, name, from_action)).started.transfer_id
