"""How much work an organisation may bring to a gateway."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Final

from adapters.database.runs import SqlRuns, Usage
from workers.shared.services.errors import QuotaExceeded
from workers.shared.settings.quotas import QuotaSettings

if TYPE_CHECKING:
    from adapters.database.engine import Database

WINDOW: Final = timedelta(days=1)
_SOONEST: Final = 60
"""Seconds: a run in progress may end at any moment."""


class Quotas:
    """Refuses new work of an organisation that has used up a quota, by the table of runs.

    Requests that arrive at the same moment are counted once their runs are in the table. What
    comes through queues is never refused: it would be lost, or block what is behind it.

    Args:
        rows: The table of runs.
        settings: The quotas; 0: there is none.
    """

    def __init__(self, rows: SqlRuns, settings: QuotaSettings) -> None:
        self._rows = rows
        self._settings = settings

    @classmethod
    def read(cls, environment: Mapping[str, str], database: "Database") -> "Quotas":
        """The quotas of a process.

        Raises:
            SettingsError: One makes no sense.
        """
        return cls(SqlRuns(database), QuotaSettings.read(environment))

    async def admit(self, organisation_id: int | None, size: int = 0) -> None:
        """Refuse another run of an organisation that has used up a quota.

        Args:
            organisation_id: Whose run it is; None: it belongs to no organisation, and is admitted.
            size: Bytes that it brings.

        Raises:
            QuotaExceeded: It has; the message says which quota, and what to do.
            PortError: The table cannot be read.
        """
        quota = self._settings
        if organisation_id is None or not (quota.runs or quota.rows or quota.size):
            return
        now = datetime.now(UTC)
        used = await self._rows.usage(organisation_id, now - WINDOW)
        who = f"organisation {organisation_id}"
        if quota.runs and used.open_runs >= quota.runs:
            raise QuotaExceeded(
                f"{who} has {used.open_runs:,} runs in progress, and DOCFLOW_QUOTA_RUNS allows "
                f"{quota.runs:,}: wait until one ends, or answer or cancel one that waits",
                _SOONEST,
            )
        if quota.rows and used.rows >= quota.rows:
            raise QuotaExceeded(
                f"{who} has brought {used.rows:,} rows within a day, and DOCFLOW_QUOTA_ROWS allows "
                f"{quota.rows:,}: send it again later",
                _until(used, now),
            )
        if quota.size and used.size + size > quota.size:
            raise QuotaExceeded(
                f"{who} has brought {used.size:,} bytes within a day and this request brings "
                f"{size:,}, and DOCFLOW_QUOTA_BYTES allows {quota.size:,}: send it again later",
                _until(used, now),
            )


def _until(used: Usage, now: datetime) -> int:
    """Seconds until the first run of the day no longer counts."""
    first = used.since or now
    return max(_SOONEST, ceil((first + WINDOW - now).total_seconds()))
