"""Moments as queues give them."""

from datetime import UTC, datetime


def moment_of(milliseconds: str | None) -> datetime | None:
    """A time stamp of SQS, which counts milliseconds since 1970."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
