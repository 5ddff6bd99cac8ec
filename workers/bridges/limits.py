"""How much a consumer takes on at once."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How much is received, and how long is waited for it."""

    concurrency: int = 10
    """Messages that are decided about at once."""
    in_flight: int = 10
    """Messages that are received and not yet settled."""
    refill: int = 1
    """Messages that there must be room for before more are received. With as many as
    `concurrency`, nothing is received while anything is being decided about."""
    wait: float = 20
    """Seconds that a receive waits for the first message."""
    quiet: float = 20
    """Seconds that a queue stays empty before a drain ends."""
