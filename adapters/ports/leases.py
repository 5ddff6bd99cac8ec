"""Leases: how much of a limited resource each run has, and who waits for it in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Claim:
    """What a run needs of one resource."""

    resource: str
    units: int
    """More than there are at all count as all of them."""
    limit: int
    """Units that there are."""


@dataclass(frozen=True, slots=True)
class LeaseWait:
    """A run that waits for a resource."""

    resource: str
    position: int
    """Among those that wait for it, from 1."""


class Leases(Protocol):
    """The leases of all runs; every method raises `Unavailable` when the database is down."""

    async def take(self, owner: str, claims: Sequence[Claim], keep: timedelta) -> LeaseWait | None:
        """Take leases, one resource after the other, in the order in which runs first asked.

        May be called again: a lease that the run has is renewed, and so is its place among those
        that wait. Who does not ask for `keep` loses that place.

        Args:
            owner: Workflow id of the run.
            claims: What it needs; the same resources in the same order for all runs.
            keep: How long a place is kept without being asked for.

        Returns:
            What the run waits for; None: it has all leases, until they are released.
        """
        ...

    async def waits(self, owner: str) -> LeaseWait | None:
        """What a run waits for; None: nothing."""
        ...
