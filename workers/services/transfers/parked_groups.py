"""Transfers that wait for a person for one cause, answered together."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.ports.transfers import StatusRow
from contracts.transfers import TransferStatus
from domain.causes import cause_key, cause_of
from workers.services.errors import NotFound, ServiceError
from workers.services.identity import Identity
from workers.services.parked_runs import gathered
from workers.services.transfers.answers import TransferAnswers
from workers.services.transfers.service import TransferService
from workers.services.transfers.verbs import parked_reason
from workflows.parking import Decision

MOST: Final = 5_000
"""Transfers that are looked at, and answered by one command."""
EVENT: Final = "event"
"""Kind of an event that has no queue, as its search attribute `DocumentType` has it."""


@dataclass(frozen=True, slots=True)
class ParkedGroup:
    """Transfers of a queue that wait for one cause."""

    key: str
    kind: str
    """Their queue; `event`: no rule has matched them."""
    cause: str
    """Partner and failure, without names of files."""
    rows: Sequence[StatusRow]
    """The longest wait first."""

    @property
    def since(self) -> datetime:
        """When the first of them was parked."""
        return self.rows[0].at


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one transfer of a group."""

    transfer_id: str
    problem: str | None
    """Why it was not answered; None: it was."""


def kind_of(row: StatusRow) -> str:
    """What tells the answers of transfers apart: whether they have a queue, and which."""
    return EVENT if row.status is TransferStatus.NO_ASSIGNED else row.queue or EVENT


class ParkedGroups:
    """Finds transfers that wait for one cause, and answers them.

    Args:
        service: Of transfers.
        answers: Sends answers to their runs.
    """

    def __init__(self, service: TransferService, answers: TransferAnswers) -> None:
        self._service, self._answers = service, answers

    async def all(self, who: Identity) -> Sequence[ParkedGroup]:
        """Every group, the largest first.

        Raises:
            Forbidden: The caller is not an operator.
        """
        found: dict[tuple[str, str], list[StatusRow]] = defaultdict(list)
        for row in await self._service.parked_rows(who, MOST):
            found[kind_of(row), cause_of(parked_reason(row) or "")].append(row)
        groups = [
            ParkedGroup(cause_key(kind, cause), kind, cause, sorted(rows, key=lambda row: row.at))
            for (kind, cause), rows in found.items()
        ]
        return sorted(groups, key=lambda group: (-len(group.rows), group.since))

    async def get(self, who: Identity, key: str) -> ParkedGroup:
        """One group.

        Raises:
            NotFound: No transfer waits for this cause, or none does any more.
        """
        for group in await self.all(who):
            if group.key == key:
                return group
        raise NotFound("no transfer waits for this cause now")

    async def answer(
        self, who: Identity, key: str, decision: Decision, reason: str | None = None
    ) -> Sequence[Answered]:
        """Give every transfer of a group the same answer, by the update of each run.

        Raises:
            NotFound: No transfer waits for this cause.
        """
        group = await self.get(who, key)

        async def one(row: StatusRow) -> Answered:
            try:
                await self._answers.answer(who, row, decision, reason=reason)
            except ServiceError as error:
                return Answered(row.transfer_id, str(error))
            return Answered(row.transfer_id, None)

        return await gathered(group.rows, one)
