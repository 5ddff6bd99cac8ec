"""Notices in memory: the fake that tests share."""

from adapters.ports.errors import PortError
from workflows.shared.notifications import Notification


class MemoryNotifications:
    """Keeps what was sent.

    Attributes:
        sent: Each notice, however often it came, by its id.
        calls: How often a notice was handed over.
        failure: Raised by the next sendings, until it is None again.
    """

    def __init__(self) -> None:
        self.sent: dict[str, Notification] = {}
        self.calls = 0
        self.failure: PortError | None = None

    async def send(self, notice: Notification) -> None:
        """Keep a notice, as a receiver that dedupes on the id does."""
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        self.sent.setdefault(notice.id, notice)
