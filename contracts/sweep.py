"""Closing the rows of runs that ended without closing them: terminated, timed out, forgotten."""

from typing import Annotated, Final

from pydantic import Field

from contracts.base import Contract

RUN_SWEEPER: Final = "RunSweeper"
"""Name of the workflow type."""
TERMINATED: Final = "terminated"
"""State of a run that was ended from outside, in every pipeline; some write it in capitals."""
NAMED: Final = 20
"""Runs that a result names."""


class RunSweepOrder(Contract):
    """Input of a sweep of the runs of one pipeline."""

    pipeline: Annotated[str, Field(max_length=64)]
    closed_for: int = Field(default=60, ge=0)
    """Seconds that a run has been over, and its row has not changed, before it is closed."""
    unknown_for: int = Field(default=24 * 3600, ge=0)
    """Seconds that a row of which Temporal knows no run has not changed."""


class RunsSwept(Contract):
    """Result of a sweep."""

    terminated: int = 0
    """Rows that were closed."""
    runs: tuple[Annotated[str, Field(max_length=1000)], ...] = Field(default=(), max_length=NAMED)
    """Workflow ids of the first of them."""
    folders: int = 0
    """Scratch folders of killed workers that were removed."""
