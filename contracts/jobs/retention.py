"""What of jobs is removed when its time is over."""

from typing import Annotated, Final

from pydantic import Field

from contracts.base import Contract

JOB_RETENTION: Final = "JobRetention"
"""Name of the workflow type."""
JOB_RETENTION_SCHEDULE: Final = "job-retention"
"""Id of its schedule."""
NAMED_REMOVED: Final = 20
"""Jobs and files that a result names."""
Removed = Annotated[str, Field(max_length=400)]


class JobRetentionOrder(Contract):
    """Input of the retention of jobs."""

    dry_run: bool = False
    """Say what would be removed, and remove nothing."""
    most: int = Field(default=1_000, ge=1)
    """Jobs, and notes of superseded files, of one run; the next run takes the rest."""


class JobRetentionResult(Contract):
    """What was removed, or would be."""

    jobs: int = 0
    """Jobs whose tasks, plans, results and webhooks were removed."""
    kept: int = 0
    """Those of them whose record stays, because the catalogue has items of theirs."""
    files: int = 0
    """Files in silver and gold: superseded ones, and leftovers of jobs."""
    named: tuple[Removed, ...] = Field(default=(), max_length=NAMED_REMOVED)
    """The first of them."""

    def plus(self, other: "JobRetentionResult") -> "JobRetentionResult":
        """Both together."""
        return JobRetentionResult(
            jobs=self.jobs + other.jobs,
            kept=self.kept + other.kept,
            files=self.files + other.files,
            named=(*self.named, *other.named)[:NAMED_REMOVED],
        )
