"""Times of day, and days with a time, as people and programs write them."""

import re
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

_CLOCK: Final = (
    r"(?i:(?P<hour>[0-9]{1,2})(?:\s*(?P<mark>[:.h])\s*(?P<minute>[0-9]{2})"
    r"(?:[:.](?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    r"\s*(?:(?P<half>[ap])\.?\s?m\.?|(?P<word>uhr|hrs?|h))?)"
    r"\s*(?P<offset>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_TIME: Final = re.compile(_CLOCK)
_MOMENT: Final = re.compile(
    rf"(?P<day>\S.*?)(?:\s*,\s*|\s+|T)(?:(?i:at|um|\u00e0)\s+)?(?P<rest>{_CLOCK})"
)
_BASIC: Final = re.compile(r"(?<=[0-9]T)([0-9]{2})([0-9]{2})([0-9]{2})(?![0-9:])")
"""A time without colons, in the basic format of ISO 8601."""
_LONGEST: Final = 60


def split_moment(text: str) -> tuple[str, str] | None:
    """Return the day and the time of day that a text holds; None: it does not hold both."""
    if len(text) > _LONGEST:
        return None
    found = _MOMENT.fullmatch(_BASIC.sub(r"\1:\2:\3", text))
    return None if found is None else (found["day"], found["rest"])


def read_clock(text: str) -> tuple[time, tzinfo | None] | None:
    """Return a time of day and its offset from UTC; None: the text is none.

    `14.30` and `14` may be numbers: they are times beside `Uhr`, `am` or `pm`.
    """
    found = _TIME.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    word = found["half"] or (found["word"] or "").lower()
    is_dotted = found["mark"] == "." and found["second"] is None
    if (found["minute"] is None and not word) or (
        is_dotted and not found["half"] and word != "uhr"
    ):
        return None
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] in "pP" else 0)
    microsecond = int((found["fraction"] or "0")[:6].ljust(6, "0"))
    try:
        clock = time(hour, int(found["minute"] or 0), int(found["second"] or 0), microsecond)
        return clock, _offset(found["offset"])
    except ValueError:
        return None


def _offset(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    if text.isalpha():
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:]) if len(text) > 3 else 0
    length = timedelta(hours=hours, minutes=minutes)
    return timezone(-length if text[0] == "-" else length)


def in_zone(local: datetime, name: str) -> list[datetime]:
    """Return the moments, in UTC, that a local time of a zone means.

    None of the hour that a change of clocks skips, two of the hour that it repeats.
    """
    zone = ZoneInfo(name)
    both = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return [moment for moment in dict.fromkeys(both) if local_time(moment, name) == local]


def local_time(moment: datetime, name: str) -> datetime:
    """Return the local time of a moment in a zone, without its offset."""
    return moment.astimezone(ZoneInfo(name)).replace(tzinfo=None)
