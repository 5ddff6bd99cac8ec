"""Which schedule of its project a file is about; where that is not certain, a person is asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from activities.threads import WorkerThread
from adapters.ports import HeldBy, ImportStore, ScheduleClaim, ScheduleSource
from contracts.imports import Choice, HandlerOutcome, Question, ScheduleExtractionMessage
from domain.imports.chunks import LoadMark, TaskKey
from domain.imports.schedule_identity import Resemblance, resembling

CODES_AT_ONCE: Final = 5_000
"""Task codes of one query."""


@dataclass(frozen=True, slots=True)
class Identified:
    """The schedule that a file is about."""

    schedule_id: str
    short_name: str
    """As the file has it."""
    names: Mapping[str, str]
    """Short names of the project's schedules, to their ids."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A load that has its schedule to itself."""

    schedule: Identified
    mark: LoadMark

    @property
    def earlier_date(self) -> datetime | None:
        """Data date that the schedule had before; None: it had none."""
        date = self.mark.header[-1] if self.mark.header else ""
        return datetime.fromisoformat(date) if date else None


async def begin(
    store: ImportStore,
    message: ScheduleExtractionMessage,
    wanted: str,
    source: ScheduleSource,
    thread: WorkerThread,
    work: Sequence[str],
) -> Begun | HandlerOutcome | HeldBy:
    """Begin to load the schedule that the message names, or its short name, or a new one.

    Args:
        store: Knows the schedules of the project.
        message: What to import.
        wanted: The project in the file, by short name or object id.
        source: The file.
        thread: Reads it.
        work: Distinguishes this work from that of a message which a person has corrected.

    What was found is remembered with the short name, so that the next file with it asks nothing.

    Returns:
        The load. Where the short name is new and most activities stand in schedules that are
        there, an outcome with the question; where another task is loading, that one.
    """
    key = TaskKey(message.project_id, message.task_id)
    while True:
        found = await _identified(store, message, wanted, source, thread)
        if isinstance(found, HandlerOutcome):
            return found
        claim = ScheduleClaim(found.short_name, found.schedule_id, found.names)
        mark = await store.begin_schedule(key, (*work, found.schedule_id), claim)
        if isinstance(mark, HeldBy):
            return mark
        if mark is not None:
            return Begun(found, mark)


async def _identified(
    store: ImportStore,
    message: ScheduleExtractionMessage,
    wanted: str,
    source: ScheduleSource,
    thread: WorkerThread,
) -> Identified | HandlerOutcome:
    project_id = message.project_id
    short_name = await thread.run(lambda: source.short_name(wanted))
    names = await store.schedule_names(project_id)
    schedule_id = message.schedule_id or names.get(short_name)
    if schedule_id is None and names:
        total, held = await _compared(store, project_id, source.task_codes(wanted), thread)
        if alike := resembling(held, total):
            return _asked(short_name, alike, total)
    return Identified(schedule_id or short_name, short_name, names)


async def _compared(
    store: ImportStore, project_id: str, codes: Iterator[str], thread: WorkerThread
) -> tuple[int, Mapping[str, int]]:
    """How many codes there are, and how many of them each schedule holds."""
    total, held = 0, dict[str, int]()

    def some() -> Sequence[str]:
        return list(dict.fromkeys(islice(codes, CODES_AT_ONCE)))

    while page := await thread.run(some):
        total += len(page)
        for schedule_id, count in (await store.schedules_holding(project_id, page)).items():
            held[schedule_id] = held.get(schedule_id, 0) + count
    return total, held


def _asked(short_name: str, alike: Sequence[Resemblance], total: int) -> HandlerOutcome:
    shares = ", ".join(f"{each.share:.0%} in {each.schedule_id}" for each in alike)
    ids = " or ".join(each.schedule_id for each in alike)
    update = (
        Choice(
            value=each.schedule_id, meaning=f"an update, with {each.share:.0%} of its activities"
        )
        for each in alike
    )
    new = Choice(value=short_name, meaning="a new schedule")
    return HandlerOutcome(
        held_back=(
            f"no schedule is known as {short_name}, but of its {total:,} activities stand "
            f"{shares}: is it an update of {ids}, or new? Retry with schedule {ids}, or with "
            f"{short_name} for a new one"
        )[:500],
        question=Question(field="schedule_id", choices=(*update, new)),
    )
