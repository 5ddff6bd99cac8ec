"""Plans of runs that continue what was begun: in the same run, or by a redrive of a failed one."""

from collections.abc import Sequence
from typing import Final

from contracts.transfers import (
    Action,
    CallHttp,
    FileJobOrder,
    FireEvent,
    ReceiptStep,
    TransferPlan,
    WriteFile,
)
from domain.transfers.remarks import first_of

_ROUTES: Final = "the routes"


def in_its_turn(plan: TransferPlan, before: TransferPlan) -> TransferPlan:
    """A plan that was read again, with the turn that its run has; a remark where it would differ.

    A run stands in the line of the key that it has begun with, and gives that turn back.
    """
    if plan.sequence == before.sequence:
        return plan
    known = "without one" if before.sequence is None else f"with {before.sequence[:100]!r}"
    remark = f"SequenceKey has changed meanwhile: this run continues {known}"
    remarks = first_of([remark, *plan.remarks])
    return plan.model_copy(update={"sequence": before.sequence, "remarks": remarks})


def where_to(action: Action) -> str | None:
    """The partner or queue that an action sends to, as a receipt names it; None: it sends nothing.

    See `where_of`.
    """
    match action:
        case WriteFile() | CallHttp():
            return action.partner
        case FireEvent():
            return fired_to(action.queue)
        case _:
            return None


def fired_to(queue: str | None) -> str:
    """Where an event is sent, for receipts."""
    return _ROUTES if queue is None else f"queue {queue}"


def where_of(step: ReceiptStep) -> str | None:
    """The partner or queue that an action has sent to; None: it had nothing to send."""
    place = next((file.place for file in step.files), None)
    if place is None or step.action == FireEvent.__name__:
        return place
    return place.partition("/")[0].partition(":")[2]


def is_done_before(order: FileJobOrder, index: int, action: Action) -> bool:
    """Whether the failed transfer has done an action: one of its kind there, to the same side."""
    if (index, action.action) not in order.done_before:
        return False
    return dict(order.done_where).get(index, where_to(action)) == where_to(action)


def done_elsewhere(order: FileJobOrder, actions: Sequence[Action]) -> Sequence[str]:
    """Remarks on actions that are carried out, since they went elsewhere in the failed transfer."""
    where = dict(order.done_where)
    return [
        f"{index + 1}. {action.action} went to {where[index]} in transfer "
        f"{(order.redriven_from or '')[:12]}, and is carried out for {where_to(action)}"
        for index, action in enumerate(actions)
        if (index, action.action) in order.done_before and not is_done_before(order, index, action)
    ]
