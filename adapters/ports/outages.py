"""Outages of what docflow itself needs."""

from typing import Protocol

from contracts.dependencies import OutageOrder


class Outages(Protocol):
    """Shows operators what is down."""

    async def begin(self, outage: OutageOrder, task_queue: str) -> None:
        """Show an outage; one that is shown already stays as it is.

        Args:
            outage: What is down, and why.
            task_queue: Whose workers see the end of it.
        """
        ...
