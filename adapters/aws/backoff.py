"""How long AWS is given for what it does behind a call that has returned."""

from datetime import UTC, datetime
from typing import Final

SHORTEST: Final = 0.5
LONGEST: Final = 10.0


def backoff_proportional_to_elapsed(since: datetime | None) -> float:
    """Seconds until something is looked at again: as long as it has taken so far.

    Most of it is there within a second or two, a function in a private network within minutes.

    Args:
        since: When it was asked for; None: just now.
    """
    waited = 0.0 if since is None else (datetime.now(UTC) - since).total_seconds()
    return min(max(waited, SHORTEST), LONGEST)
