"""Jobs of one sequence key run one after another, in the order in which their events arrived."""

from collections.abc import Callable
from typing import Final

from temporalio import workflow

from activities.transfers.plans import Planning
from contracts.transfers import FileJobOrder, Turn, TurnOrder
from workflows import policies
from workflows.waiting import OnFailure, Waiting

_POSITIONS_SHOWN: Final = 20
"""A long line must not fill the history."""


class SequenceTurn:
    """The place of a run in the line of its key.

    Args:
        order: Of the job.
        waiting: Of the run.
        show: Shows people what it waits for.
    """

    def __init__(
        self, order: FileJobOrder, waiting: Waiting, show: Callable[[str | None], None]
    ) -> None:
        self._order, self._waiting, self._show = order, waiting, show
        self.waits: str | None = None
        """What it waits for, in words; None: it does not."""

    async def taken(self, key: str, park: OnFailure) -> None:
        """Wait until those that came before have ended; the end of the job gives the turn back.

        Args:
            key: Of the job.
            park: Asks a person when its place cannot be found out.
        """
        known: Turn | None = None
        shown = 0
        while True:
            turn = await self._waiting.retried(lambda known=known: self._next(key, known), park)
            if not turn.position:
                break
            shown += 1
            known = turn if shown < _POSITIONS_SHOWN else Turn(position=-1)
            self.waits = f"its turn: position {turn.position} of {key!r}, behind {turn.behind}"
            self._show(self.waits)
        self.waits = None
        self._show(None)

    async def _next(self, key: str, known: Turn | None) -> Turn:
        order = TurnOrder(
            transfer_id=self._order.transfer_id,
            key=key,
            run=workflow.info().workflow_id,
            arrived=self._order.arrived,
            known=known and known.position,
        )
        return await workflow.execute_activity_method(
            Planning.take_turn, order, summary="wait for its turn", **policies.DEPENDENCY
        )
