"""What headers of an answer say."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_HINT_SECONDS: Final = 3600.0
"""A receiver may ask for no longer pause."""


def retry_after(value: str | None) -> float | None:
    """Seconds of a `Retry-After` header (RFC 9110, 10.2.3); None when there is none."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        seconds = float(value[:10])
    else:
        try:
            moment = parsedate_to_datetime(value)
        except (OverflowError, ValueError):
            # A year or a zone of so many digits overflows before it is refused.
            return None
        # A date without zone is what an HTTP date never is, and GMT is what it would mean.
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_HINT_SECONDS)
