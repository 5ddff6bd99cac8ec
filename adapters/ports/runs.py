"""Runs that are over, and the rows that they left open."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How the newest run of a workflow id ended."""

    status: str
    """Temporal's own: `completed`, `failed`, `canceled`, `terminated`, `timed_out`; or `unknown`
    where it knows no run of that id."""
    at: datetime | None = None
    """UTC; None: not known."""
    document_type: str | None = None
    """As its search attribute says; None: not known."""


class Runs(Protocol):
    """What Temporal knows of runs."""

    async def end(self, workflow_id: str) -> RunEnd | None:
        """How the newest run of an id ended; None: it is open, or continues as a new one."""
        ...


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A row that its run has not closed."""

    id: str
    """Names the row: the workflow id of the run that it is about."""
    changed_at: datetime
    """UTC."""
    run: str | None = None
    """Workflow id of the run that would close it; None: that of `id`."""
    grace: timedelta = timedelta()
    """How much longer than others it is left to what else closes it."""
    only_after: frozenset[str] = frozenset()
    """Ends of its run that leave it open by mistake; empty: every end does."""


class OpenRows(Protocol):
    """The rows of one pipeline's runs."""

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Rows of open runs that have not changed since, by id.

        Args:
            before: The latest change.
            after: Ids above this one.
            limit: At most so many.
        """
        ...

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close the row of a run that is over as terminated, and release what the run held.

        Args:
            id: Of the row.
            reason: For people.
            unchanged_since: Only if this was the last change of the row; None: whatever it was.

        Returns:
            False, and nothing changed: it is closed already, or has changed.
        """
        ...
