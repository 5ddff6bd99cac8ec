"""What the consumer needs of a queue: a transport, and the errors that it raises.

What the consumer needs of a queue: a transport, and the errors that it raises.

A transport speaks to one queue and decides nothing. The consumer
(`workers.shared.bridges.consumer`) receives through it, has each message decided about, and
settles it: when, in which order, how often to try again and when to stop are the consumer's. A
transport promises:

Receiving
    `receive` returns within about `wait` seconds, and as soon as it can once there are messages;
    it may be cancelled at any await, and what it had received then comes back by itself. It opens
    what it needs, and opens it again after a loss, so that an error only ever means "call again".
    What opening takes comes on top of `wait`, also until it is known which part of the queue is
    this consumer's: the quiet time after which a drain ends begins with the first answer.
    `delivery_count` grows with each delivery of a message, 0 the first time. `message_id` stays
    the same from delivery to delivery wherever the consumer is given an ordering key.

Leases
    A message that was received belongs to this consumer alone for `lease_seconds`. `extend` begins
    that time again. A message whose lease ends unsettled is delivered again: a process that dies
    loses nothing. A queue without leases returns `math.inf`.

Settling
    `complete`, `abandon` and `dead_letter` have either happened when they return, or raise; each
    may be called again after a `TransportError`, and must not leave two dead letters then.
    Settlements of different messages may overlap, also with `receive`. Calls that concern one
    message never do, so that a receipt which changes with every extension is not a race.
    `abandon` delivers the message again, after `delay` seconds where the queue can wait; where it
    cannot, a message that is given back may be overtaken, and no ordering key may be used.

Errors
    `QueueRefused` and `QueueMissing` for what waiting does not repair, with a message that says
    what to check; `LeaseLost` for a message that is another consumer's by now, or gone;
    `NotDeadLettered` when a message cannot be kept aside; plain `TransportError` for the rest.

How queues without leases and dead letters of their own fit: a storage queue keeps
the newest pop receipt on its delivery, and writes dead letters to a second queue before it deletes
(`NotDeadLettered` when that fails). A log with partitions, such as an event hub, has no leases; it
keeps what it delivered in order, moves a partition's checkpoint up to the first event that is not
complete, delivers an abandoned event again from memory after the delay, and writes dead letters
elsewhere before they count as complete. Its ordering key is the partition.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from workers.shared.services.bodies import DeadLetter


def moment_of(milliseconds: str | None) -> datetime | None:
    """A time stamp of SQS, which counts milliseconds since 1970."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


class TransportError(Exception):
    """The queue did not do what it was asked; trying again may help."""


class QueueRefused(TransportError):
    """The queue cannot be opened with these settings; the message says what to check."""


class QueueMissing(QueueRefused):
    """There is no such queue."""


class LeaseLost(TransportError):
    """The message is no longer this consumer's; unless it was settled, it comes back by itself."""


class NotDeadLettered(TransportError):
    """The message could not be kept as a dead letter, and has to be given back."""


class Delivery(Protocol):
    """A received message."""

    @property
    def body(self) -> bytes:
        """As it was sent."""
        ...

    @property
    def message_id(self) -> str | None:
        """The queue's or the sender's name for the message."""
        ...

    @property
    def delivery_count(self) -> int:
        """Deliveries before this one."""
        ...


Received = TypeVar("Received", bound=Delivery)


class Transport(Protocol[Received]):
    """One queue; the promises are in the docstring of this module."""

    @property
    def name(self) -> str:
        """Of the queue, for logs."""
        ...

    async def receive(self, most: int, wait: float) -> Sequence[Received]:
        """Receive up to `most` messages; wait for the first one up to `wait` seconds."""
        ...

    def lease_seconds(self, message: Received) -> float:
        """How long the message stays this consumer's without an extension."""
        ...

    async def extend(self, message: Received) -> None:
        """Renew the lease."""
        ...

    async def complete(self, message: Received) -> None:
        """Take the message off the queue."""
        ...

    async def abandon(self, message: Received, delay: int) -> None:
        """Give the message back, to be delivered again after `delay` seconds."""
        ...

    async def dead_letter(self, message: Received, verdict: DeadLetter) -> None:
        """Take the message off the queue, and keep it aside with reason and description."""
        ...

    async def close(self) -> None:
        """Close what was opened; raises nothing of the queue's."""
        ...
