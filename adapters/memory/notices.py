"""Notices in memory: the fake that tests share."""

from adapters.ports import PortError
from contracts.spreadsheets import Notice


class MemoryNotices:
    """Keeps what was sent.

    Attributes:
        sent: Each key once, with its notice.
        failure: Raised by the next sendings, until it is None again.
    """

    def __init__(self) -> None:
        self.sent: dict[str, Notice] = {}
        self.failure: PortError | None = None

    async def send(self, notice: Notice, key: str) -> None:
        """Keep a notice, as a receiver that dedupes on the key does."""
        if self.failure is not None:
            raise self.failure
        self.sent.setdefault(key, notice)
