"""When the host of a receiver is left alone: a circuit breaker, as a pure rule."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

FAILURES: Final = 5
"""In a row; then the circuit opens."""
FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is known of a host."""

    failures: int = 0
    """In a row."""
    open_until: datetime | None = None
    """Nothing is sent before; None: the circuit is closed."""

    def blocked(self, now: datetime) -> float | None:
        """Seconds until an attempt may be made; None: now."""
        if self.open_until is None or self.open_until <= now:
            return None
        return (self.open_until - now).total_seconds()

    def probing(self, now: datetime, lease: float) -> "Circuit":
        """While one attempt finds out whether the host works again."""
        if self.open_until is None:
            return self
        return Circuit(self.failures, now + timedelta(seconds=lease))

    def after(self, now: datetime, *, healthy: bool) -> "Circuit":
        """After an attempt; the pause doubles with every one that fails."""
        if healthy:
            return Circuit()
        failures = self.failures + 1
        if failures < FAILURES:
            return Circuit(failures)
        doublings = min(failures - FAILURES, 16)
        return Circuit(failures, now + min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE))
