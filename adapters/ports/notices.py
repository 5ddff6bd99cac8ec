"""Notices to people."""

from typing import Protocol

from contracts.spreadsheets import (
    Notice,
)


class Notifications(Protocol):
    """Notifies people."""

    async def send(self, notice: Notice, key: str) -> None:
        """Send a notice.

        Args:
            notice: The notice.
            key: The same for every attempt at the same notice; receivers may dedupe on it.
        """
        ...
