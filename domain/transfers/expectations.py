"""What is expected, read from the operators' file, and what the arrivals of a day mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ValidationError

from contracts.base import problem_text
from contracts.transfers.watches import (
    Expectation,
    ExpectedDay,
    ExpectedState,
    Watch,
    WorkCalendar,
)
from domain.errors import RuleViolation
from domain.transfers.deadlines import Period
from domain.transfers.plain_lists import Item, read_lists
from domain.transfers.windows import zone_of

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
BACK: Final = timedelta(days=31)
"""So far back days are judged for which no worker was there."""

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class Clocks:
    """What happens by the clock, as operators declare it."""

    watches: Mapping[str, Watch]
    expected: Mapping[str, Expectation]


def read_clocks(text: str) -> Clocks:
    """Read `watches`, `calendars` and `expected`.

    Raises:
        RuleViolation: It cannot be read, or names something that is not there, or twice.
    """
    lists = read_lists(
        text,
        {
            "watches": tuple(Watch.model_fields),
            "calendars": tuple(WorkCalendar.model_fields),
            "expected": tuple(Expectation.model_fields),
        },
    )
    days = [_days(each) for each in lists["calendars"]]
    calendars = _named("calendar", WorkCalendar, days)
    expected = [_with_calendar(each, calendars) for each in lists["expected"]]
    clocks = Clocks(
        _named("watch", Watch, lists["watches"]), _named("expected", Expectation, expected)
    )
    for each in clocks.expected.values():
        zone_of(each.zone)
    return clocks


def _named(kind: str, model: type[T], items: Iterable[Mapping[str, Any]]) -> Mapping[str, T]:
    found: dict[str, T] = {}
    for number, item in enumerate(items, 1):
        where = f"{kind} {item.get('name') or number}"
        try:
            # What is left empty has its default.
            made = model.model_validate({k: v for k, v in item.items() if v is not None})
        except ValidationError as error:
            each = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, each["loc"]))
            raise RuleViolation(
                f"{where}: {field + ': ' if field else ''}{problem_text(each)}"
            ) from error
        name = cast(str, made.model_dump()["name"])
        if name in found:
            raise RuleViolation(f"{where} is there twice")
        found[name] = made
    return found


def _with_calendar(item: Item, calendars: Mapping[str, WorkCalendar]) -> Mapping[str, Any]:
    name = item.get("calendar")
    if name is None:
        return item
    calendar = calendars.get(name)
    if calendar is None:
        raise RuleViolation(f"expected {item.get('name')}: there is no calendar {name}")
    return {**item, "calendar": calendar}


def _days(item: Item) -> Mapping[str, Any]:
    """A calendar with its weekdays and holidays, which stand there as texts."""
    made: dict[str, Any] = dict(item)
    if (weekdays := item.get("weekdays")) is not None:
        made["weekdays"] = _weekdays(weekdays, item.get("name"))
    if (holidays := item.get("holidays")) is not None:
        made["holidays"] = holidays.replace(",", " ").split()
    return made


def _weekdays(text: str, name: object) -> Sequence[int]:
    """`mon-fri`, `sat sun`, `fri-mon`."""
    found: list[int] = []
    for part in text.lower().replace(",", " ").split():
        first, _, last = part.partition("-")
        if first not in WEEKDAYS or (last or first) not in WEEKDAYS:
            known = " ".join(WEEKDAYS)
            raise RuleViolation(f"calendar {name}: {part} names no weekdays; they are {known}")
        begin, end = WEEKDAYS.index(first), WEEKDAYS.index(last or first)
        found += [day % 7 for day in range(begin, (end if end >= begin else end + 7) + 1)]
    return sorted(set(found))


def judge(
    expectation: Expectation, period: Period, arrivals: Sequence[datetime], now: datetime
) -> ExpectedDay:
    """What the arrivals of a period mean now.

    Args:
        expectation: What is expected.
        period: Of one day.
        arrivals: When files came, from the beginning of the period to its end.
        now: The time.
    """
    in_time = sum(at <= period.due for at in arrivals)
    if expectation.most is not None and len(arrivals) > expectation.most:
        state = ExpectedState.TOO_MANY
    elif in_time >= expectation.count:
        state = ExpectedState.MET
    elif now <= period.due:
        state = ExpectedState.PENDING
    elif len(arrivals) >= expectation.count:
        state = ExpectedState.LATE
    else:
        state = ExpectedState.MISSING
    return ExpectedDay(
        name=expectation.name,
        day=period.day,
        state=state,
        count=len(arrivals),
        in_time=in_time,
        deadline=period.due,
        over=period.ends is not None and now >= period.ends,
    )


def sentence_of(expectation: Expectation, day: ExpectedDay) -> str:
    """What is wrong with a day."""
    due = f"{expectation.deadline:%H:%M} ({expectation.zone}) on {day.day.isoformat()}"
    where = f"queue {expectation.queue}"
    if day.state is ExpectedState.TOO_MANY:
        return (
            f"{expectation.name}: {day.count} files came on {where} for {day.day.isoformat()}; "
            f"{expectation.most} are expected at most"
        )
    if day.state is ExpectedState.LATE:
        return (
            f"{expectation.name}: {expectation.count - day.in_time} of {expectation.count} files "
            f"on {where} came after {due}"
        )
    return f"{expectation.name}: {day.count} of {expectation.count} files came on {where} by {due}"


def needs_notice(before: ExpectedDay | None, now: ExpectedDay) -> bool:
    """Whether a day needs a notice; true again until the day is over."""
    if before is not None and before.state is ExpectedState.CLOSED:
        return False
    changed = before is None or before.state is not now.state
    if now.state is ExpectedState.LATE:
        # They know already that it was missing.
        return changed and (before is None or before.state is not ExpectedState.MISSING)
    if now.state in (ExpectedState.MISSING, ExpectedState.TOO_MANY):
        return changed or not now.over
    return False


def has_arrived(before: ExpectedDay | None, now: ExpectedDay) -> bool:
    """Whether files that were missing have come."""
    return (
        before is not None
        and before.state is ExpectedState.MISSING
        and now.state in (ExpectedState.LATE, ExpectedState.TOO_MANY, ExpectedState.MET)
    )


def first_day(newest: date, recorded: Sequence[ExpectedDay]) -> date:
    """The first day to judge: those that no worker was there for are made up for."""
    last = max((each.day for each in recorded), default=newest)
    return max(min(last, newest), newest - BACK)
