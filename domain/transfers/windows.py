"""When a partner may be used."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from contracts.transfers import Partner, Window
from domain.errors import RuleViolation


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name.

    Raises:
        RuleViolation: There is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise RuleViolation(f"there is no time zone {name[:64]!r}") from None


def opens_at(partner: Partner, now: datetime) -> datetime | None:
    """When the next window of a partner begins; None: one is open, or it has none.

    A window is meant in the partner's zone: on the days when clocks change it is as much shorter
    or longer as the day.

    Raises:
        RuleViolation: The zone is unknown, or the windows name no time at all.
    """
    if not partner.windows:
        return None
    zone = zone_of(partner.zone)
    today = now.astimezone(zone).date()
    spans = [
        span
        for window in partner.windows
        # One that began yesterday may be open; the same weekday next week is the farthest.
        for days in range(-1, 8)
        if (span := _span(window, today + timedelta(days), zone)) is not None
    ]
    if any(begin <= now < end for begin, end in spans):
        return None
    later = [begin for begin, _ in spans if begin > now]
    if not later:
        raise RuleViolation(f"the windows of {partner.name} are never open")
    return min(later)


def _span(window: Window, day: date, zone: tzinfo) -> tuple[datetime, datetime] | None:
    if day.weekday() not in window.weekdays:
        return None
    begin = _moment(day, window.opens, zone)
    end = _moment(day, window.closes, zone)
    if window.closes <= window.opens:
        end = _moment(day + timedelta(1), window.closes, zone)
    return begin, end


def _moment(day: date, text: str, zone: tzinfo) -> datetime:
    hours, minutes = map(int, text.split(":"))
    days, hours = divmod(hours, 24)
    # In UTC: times of one zone are compared by their clock faces, which clock changes repeat.
    local = datetime.combine(day + timedelta(days), time(hours, minutes), zone)
    return local.astimezone(UTC)
