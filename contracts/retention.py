"""Removal of rows of one pipeline that are no longer kept."""

from typing import Annotated, Final

from pydantic import Field

from contracts.base import Contract

ROW_RETENTION: Final = "RowRetention"
"""Name of the workflow type."""


class RowRetentionOrder(Contract):
    """Input of a removal."""

    pipeline: Annotated[str, Field(max_length=64)]
    dry_run: bool = False
    """Count what would be removed, and remove nothing."""
    most: int = Field(default=2_000_000, ge=1)
    """Rows of each kind; the next run removes the rest."""
    page: int = Field(default=500, ge=1, le=5_000)
    """Rows of one transaction."""


class RemovedRows(Contract):
    """What was removed of one kind, or would be."""

    what: Annotated[str, Field(max_length=200)]
    days: int | None = None
    """How long rows of this kind are kept; None: for ever."""
    rows: int = 0
    blobs: int = 0
    """Blobs that only these rows named; 0 in a dry run."""
    more: bool = False
    """The bound of one run was reached; there may be further rows."""


class RowRetentionResult(Contract):
    """Result of a removal, kind by kind."""

    kinds: Annotated[tuple[RemovedRows, ...], Field(max_length=20)] = ()
