"""Files that operators write in YAML: queues, watches and expected files.

Files that operators write in YAML: lists of mappings from words to plain values.

queues:
  - name: jobs        # a comment
    slots: 8

Queues: who carries out which jobs, how many at once, and how fast.

They are data, `config/queues.yaml`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from adapters.files.yaml_files import Location, YamlFile, read_yaml
from workflows.shared.contracts import Contract, problem_text
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import QueueName, queue_task_queue
from workflows.transfers.partners import zone_of
from workflows.transfers.watches import (
    Expectation,
    ExpectedDay,
    ExpectedState,
    Period,
    Watch,
    WorkCalendar,
)

Item = dict[str, str | None]


def read_lists(text: str, fields: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Item]]:
    """Read the lists of a file.

    Args:
        text: The file.
        fields: Names of lists, each with the fields that its items may have.

    Returns:
        Name to items, a value that is empty as None; a list that the file lacks is empty.

    Raises:
        RuleViolation: It cannot be read; the message says where.
    """
    file = read_yaml(text)
    if not isinstance(file.value, dict):
        heads = " or ".join(f"`{each}:`" for each in fields)
        raise RuleViolation(f"the first line has to be {heads}")
    found = {key: _items(file, key, fields) for key in cast("dict[str, Any]", file.value)}
    return {key: found.get(key, []) for key in fields}


def _items(file: YamlFile, key: str, fields: Mapping[str, Collection[str]]) -> Sequence[Item]:
    """The items of a list; none where nothing stands behind its name."""
    _refuse_unknown(file, (key,), fields)
    items = file.value[key]
    if items is None:
        return []
    if not isinstance(items, list):
        raise _at(file, (key,), f"{key} is not a list of `- name: ...`")
    for number, item in enumerate(cast("list[Any]", items)):
        if not isinstance(item, dict):
            raise _at(file, (key, number), "this is no `name: value`")
        for name, value in cast("dict[str, Any]", item).items():
            place = (key, number, name)
            _refuse_unknown(file, place, fields[key])
            if not isinstance(value, str | None):
                raise _at(file, place, "only plain values are read here; put it into quotes")
    return cast("list[Item]", items)


def _refuse_unknown(file: YamlFile, place: Location, known: Collection[str]) -> None:
    if place[-1] not in known:
        raise _at(file, place, f"{place[-1]} is not known; known are {', '.join(known)}")


def _at(file: YamlFile, place: Location, problem: str) -> RuleViolation:
    return RuleViolation(f"line {file.line_of(place)}: {problem}")


_HEAD: Final = "queues"


class Queue(Contract):
    """One queue."""

    name: QueueName
    handler: str = Field(max_length=100)
    """What carried out its jobs in the system that docflow replaces."""
    description: str = Field(default="", max_length=500)
    slots: int = Field(default=4, ge=1, le=1_000)
    """Actions at once in one worker."""
    rate_per_second: float | None = Field(default=None, gt=0, le=100_000)
    """Actions that all workers together begin; None: as many as they can."""
    priority: int = Field(default=3, ge=1, le=5)
    """Of its jobs where they share something with those of others: 1 comes first."""

    @property
    def task_queue(self) -> str:
        """Of Temporal."""
        return queue_task_queue(self.name)


_QUEUES: Final[TypeAdapter[list[Queue]]] = TypeAdapter(list[Queue])


def read_queues(text: str) -> Mapping[str, Queue]:
    """Read the file.

    Returns:
        Name to queue, in the order of the file.

    Raises:
        RuleViolation: It cannot be read, or names a queue twice; the message says where.
    """
    try:
        items = read_lists(text, {_HEAD: tuple(Queue.model_fields)})[_HEAD]
        found = _QUEUES.validate_python(items)
    except ValidationError as error:
        each = error.errors(include_url=False, include_input=False)[0]
        number, *field = each["loc"]
        where = ".".join(map(str, field)) or "it"
        raise RuleViolation(f"queue {int(number) + 1}: {where}: {problem_text(each)}") from error
    queues = {queue.name: queue for queue in found}
    if len(queues) < len(found):
        names = [queue.name for queue in found]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleViolation(f"there are two queues {twice}")
    if not queues:
        raise RuleViolation("there is no queue")
    return queues


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
