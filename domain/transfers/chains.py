"""Chains of events that send events: whether one goes round in a circle."""

from contracts.transfers import CHAIN, FileJobOrder, visit_of


def loop_of(order: FileJobOrder, job: str) -> str | None:
    """Why an event must not be carried out; None: it may.

    Args:
        order: The event, with the queues and jobs that led to it.
        job: The job that it gets.
    """
    event = order.event
    if event.depth >= CHAIN:
        return f"a loop: {event.depth} events led to this one, and {CHAIN} are the most"
    if visit_of(order.queue, job, event.subject) in event.visited:
        return (
            f"a loop: job {job} of queue {order.queue} has been here before in this chain of "
            f"{event.depth} events, with the same subject {event.subject[:100]!r}"
        )
    return None
