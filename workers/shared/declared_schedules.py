"""What a register says about what happens by the clock."""

from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import ScheduleCalendarSpec, ScheduleRange

from workflows.shared.contracts import Contract


def daily(hour: int, minute: int = 0) -> ScheduleCalendarSpec:
    """Every day at this time of UTC.

    Written in full, as the server gives it back: a cron expression comes back as this, and could
    not be compared.
    """
    return _every_day(
        ScheduleRange(hour, hour, 1),
        ScheduleRange(minute, minute, 1),
        f"daily at {hour:02}:{minute:02} UTC",
    )


def every(minutes: int) -> ScheduleCalendarSpec:
    """So many minutes apart, from the full hour on; written in full, as `daily` is.

    Args:
        minutes: A divisor of 60: with any other the last pause of an hour would be shorter.
    """
    assert 60 % minutes == 0, minutes
    return _every_day(
        ScheduleRange(0, 23, 1), ScheduleRange(0, 59, minutes), f"every {minutes} minutes"
    )


def _every_day(hour: ScheduleRange, minute: ScheduleRange, comment: str) -> ScheduleCalendarSpec:
    return ScheduleCalendarSpec(
        second=(ScheduleRange(0, 0, 1),),
        minute=(minute,),
        hour=(hour,),
        day_of_month=(ScheduleRange(1, 31, 1),),
        month=(ScheduleRange(1, 12, 1),),
        day_of_week=(ScheduleRange(0, 6, 1),),
        comment=comment,
    )


@dataclass(frozen=True)
class Declared:
    """One schedule of a pipeline."""

    pipeline: str
    """Of the catalogue; the workers of this pipeline maintain the schedule."""
    workflow: str
    """By the name that its workers know it by."""
    task_queue: str
    input: Contract
    at: ScheduleCalendarSpec
    catch_up: timedelta = timedelta(hours=12)
    """A time that passed while Temporal was unavailable is made up for within this."""
