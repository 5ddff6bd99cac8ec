"""The totals of a bridge's run."""

from dataclasses import dataclass

from workers.settings.errors import SettingsError


class BridgeError(SettingsError):
    """The queue cannot be opened at all; the message says what to check."""


class QueueUnusable(BridgeError):
    """There is no such queue, or it does not let us in; that may be put right meanwhile."""


@dataclass(frozen=True)
class BridgeTotals:
    """Messages of one run; received ones that are none of the others come back by themselves."""

    received: int = 0
    settled: int = 0
    dead_lettered: int = 0
    abandoned: int = 0

    def plus(
        self, *, received: int = 0, settled: int = 0, dead_lettered: int = 0, abandoned: int = 0
    ) -> "BridgeTotals":
        """These and more."""
        return BridgeTotals(
            received=self.received + received,
            settled=self.settled + settled,
            dead_lettered=self.dead_lettered + dead_lettered,
            abandoned=self.abandoned + abandoned,
        )
