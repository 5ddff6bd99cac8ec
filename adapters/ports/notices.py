"""Notices to people."""

from typing import Protocol

from contracts.notices import Notice


class Notifications(Protocol):
    """One way to notify people."""

    async def send(self, notice: Notice) -> None:
        """Send a notice.

        Args:
            notice: Its id is the same for every attempt; receivers may dedupe on it.

        Raises:
            Unavailable: Another attempt may succeed.
            PortError: None will.
        """
        ...
