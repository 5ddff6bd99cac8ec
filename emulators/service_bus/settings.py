"""Settings of a queue, and its own description."""

from dataclasses import dataclass


@dataclass(frozen=True)
class QueueSettings:
    """How a queue behaves.

    Attributes:
        name: Letters, digits, '-', '_', '.' and '/'.
        lock_seconds: How long a receiver may hold a message.
        max_delivery_count: Deliveries after which a message goes to the dead-letter queue.

    Raises:
        ValueError: A setting is out of its range.
    """

    name: str
    lock_seconds: float = 60
    max_delivery_count: int = 10

    def __post_init__(self) -> None:
        letters = self.name.translate(str.maketrans("", "", "-_./"))
        if not (letters.isascii() and letters.isalnum()) or len(self.name) > 260:
            raise ValueError(
                f"{self.name!r} cannot name a queue: use at most 260 letters, digits, '-_./'"
            )
        if not 0 < self.lock_seconds <= 300:
            raise ValueError(f"queue {self.name}: lock must be above 0 and at most 300 seconds")
        if not 1 <= self.max_delivery_count <= 2000:
            raise ValueError(f"queue {self.name}: max must be from 1 to 2000 deliveries")


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many messages a queue holds, by state."""

    active: int
    locked: int
    scheduled: int
    deferred: int
    dead_letter: int
    """Messages in its dead-letter queue, whatever their state."""


def parse_queue(text: str) -> QueueSettings:
    """Read a queue from the command line, such as `import-queue:lock=30,max=10`.

    Raises:
        ValueError: The text is no such description; the message says what is wrong.
    """
    name, _, options = text.partition(":")
    lock_seconds, max_delivery_count = 60.0, 10
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        try:
            if key == "lock":
                lock_seconds = float(value)
            elif key == "max":
                max_delivery_count = int(value)
            else:
                raise ValueError
        except ValueError:
            raise ValueError(
                f"{option!r} of queue {name!r} is not understood: use NAME:lock=SECONDS,max=COUNT"
            ) from None
    return QueueSettings(name, lock_seconds, max_delivery_count)
