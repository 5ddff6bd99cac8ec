"""A notice that goes several ways."""

from collections.abc import Sequence

from adapters.ports import Notifications, PortError, Unavailable
from contracts.spreadsheets import Notice


class SeveralNotices:
    """Sends each notice through every channel; one that fails does not hold up the others.

    Attributes:
        channels: In the order they are used.
    """

    def __init__(self, channels: Sequence[Notifications]) -> None:
        self.channels = tuple(channels)

    async def send(self, notice: Notice, key: str) -> None:
        """Send through each channel in turn.

        When one fails, the next attempt sends through all of them again: receivers see by the
        key.

        Raises:
            Unavailable: At least one channel may be well again in a moment.
            PortError: At least one channel cannot send it, and none is worth another attempt.
        """
        failures: list[PortError] = []
        for channel in self.channels:
            try:
                await channel.send(notice, key)
            except PortError as failure:
                failures.append(failure)
        if failures:
            raise next((one for one in failures if isinstance(one, Unavailable)), failures[0])
