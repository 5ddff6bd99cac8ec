"""A message in a queue: its content, and what has become of it there."""

import uuid
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from emulators.service_bus.codec import Int, Timestamp, Value
from emulators.service_bus.message import Content


class State(Enum):
    """Where a message stands."""

    ACTIVE = auto()
    LOCKED = auto()
    DEFERRED = auto()
    SCHEDULED = auto()


_MESSAGE_STATES: Final = {State.DEFERRED: Int(1), State.SCHEDULED: Int(2)}


@dataclass(slots=True, eq=False)
class QueuedMessage:
    """A message in a queue; moments are seconds since 1970."""

    content: Content
    sequence_number: int
    enqueued_at: float
    enqueue_sequence_number: int
    state: State = State.ACTIVE
    deferred: bool = False
    """Whether it goes back to the deferred ones when its lock ends."""
    delivery_count: int = 0
    lock_token: uuid.UUID | None = None
    locked_until: float = 0
    scheduled_for: float = 0
    expires_at: float | None = None
    dead_letter_source: str | None = None

    @property
    def deadline(self) -> float | None:
        """When time next changes its state."""
        if self.state is State.LOCKED:
            return self.locked_until
        return self.scheduled_for if self.state is State.SCHEDULED else self.expires_at

    def encode(self) -> bytes:
        """The message as a receiver gets it."""
        annotations: dict[str, Value] = {
            "x-opt-sequence-number": self.sequence_number,
            "x-opt-enqueued-time": Timestamp(self.enqueued_at * 1000),
            "x-opt-enqueue-sequence-number": self.enqueue_sequence_number,
        }
        if self.state is State.LOCKED:
            annotations["x-opt-locked-until"] = Timestamp(self.locked_until * 1000)
        if self.deferred:
            annotations["x-opt-message-state"] = _MESSAGE_STATES[State.DEFERRED]
        elif self.state in _MESSAGE_STATES:
            annotations["x-opt-message-state"] = _MESSAGE_STATES[self.state]
        if self.dead_letter_source is not None:
            annotations["x-opt-deadletter-source"] = self.dead_letter_source
        return self.content.encode(self.delivery_count, annotations)
