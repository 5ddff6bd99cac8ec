"""The course of a job: its stages from top to bottom, their tasks as bars over time.

Places along the time are percentages of the width: texts keep their size in every window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from activities.jobs.ports import TaskSpan
from workers.jobs.labels import TASKS, duration
from workers.jobs.runs import JobDocument
from workers.shared.gateway.pages.renderer import counted, gettext, localised, number
from workflows.jobs.records import JobStatus, TaskStatus
from workflows.jobs.runs import StageState, StageView

APART: Final = 12
"""Tasks of a stage that have a bar each; of a stage with more, there is one for each status."""
_CROWDED: Final = 8
"""Stages from which on tasks have no bars of their own."""
_TITLE: Final = 24
_BAR: Final = 10
_ROW: Final = 15
_GAP: Final = 14
_AXIS: Final = 22
_THIN: Final = 0.4
"""Per cent: nothing is drawn thinner."""
_OPEN: Final = (TaskStatus.QUEUED, TaskStatus.PROCESSING)


@dataclass(frozen=True, slots=True)
class TaskBar:
    """A task, or the tasks of a stage in one status."""

    span: TaskSpan
    y: int
    x: float
    width: float
    """Per cent of the width."""
    took: str
    tip: str


@dataclass(frozen=True, slots=True)
class StageLane:
    """A stage, with the bars of its tasks."""

    stage: StageView
    y: int
    """Of its title."""
    words: str
    bars: Sequence[TaskBar]


@dataclass(frozen=True, slots=True)
class JobGraph:
    """Stages from top to bottom, time from left to right."""

    lanes: Sequence[StageLane]
    begins: datetime
    ends: datetime
    took: str
    height: int
    bar: int = _BAR


def job_graph(job: JobDocument, spans: Sequence[TaskSpan], now: datetime) -> JobGraph | None:
    """Draw a job; None: no task of it is planned.

    Args:
        job: With its stages.
        spans: Of its tasks, by stage.
        now: Where the time of an open job ends.
    """
    if not spans:
        return None
    fresh = [each for each in spans if not each.kept] or list(spans)
    begins = min(each.begun for each in fresh)
    ends = now if not job.ended else max(each.ended for each in fresh)
    ends = max(ends, begins + timedelta(milliseconds=1))
    lanes: list[StageLane] = []
    y = _TITLE - 8
    for stage in job.stages:
        own = [each for each in spans if each.stage == stage.stage]
        shown = own if len(job.stages) <= _CROWDED else []
        bars = [
            _bar(each, y + 8 + place * _ROW, begins, ends, now)
            for place, each in enumerate(each for each in shown if not each.kept)
        ]
        lanes.append(StageLane(stage, y, _words(own, now), bars))
        y += len(bars) * _ROW + _TITLE + (_GAP if bars else 0)
    return JobGraph(lanes, begins, ends, duration((ends - begins).total_seconds()), y + _AXIS)


def _bar(span: TaskSpan, y: int, begins: datetime, ends: datetime, now: datetime) -> TaskBar:
    end = _end(span, now)
    whole = (ends - begins).total_seconds()
    x = max(0.0, (span.begun - begins).total_seconds() / whole * 100)
    width = (end - span.begun).total_seconds() / whole * 100
    took = duration((end - span.begun).total_seconds())
    name = span.index or counted("%(count)s task", "%(count)s tasks", span.tasks)
    x = min(x, 100 - _THIN)
    return TaskBar(
        span,
        y,
        round(x, 2),
        round(min(max(width, _THIN), 100 - x), 2),
        took,
        f"{name}: {localised(TASKS[span.status].text)}, {took}",
    )


def _end(span: TaskSpan, now: datetime) -> datetime:
    return now if span.status in _OPEN else max(span.ended, span.begun)


def _words(spans: Sequence[TaskSpan], now: datetime) -> str:
    """How many tasks are in which status, and how long they took together."""
    by_status: dict[TaskStatus, int] = {}
    kept = sum(each.tasks for each in spans if each.kept)
    fresh = [each for each in spans if not each.kept]
    for each in fresh:
        by_status[each.status] = by_status.get(each.status, 0) + each.tasks
    parts = [
        f"{number(count)} {localised(TASKS[status].text).lower()}"
        for status, count in by_status.items()
    ]
    if kept:
        parts.append(gettext("%(count)s kept", count=number(kept)))
    if fresh:
        begun, ended = min(each.begun for each in fresh), max(_end(each, now) for each in fresh)
        parts.append(duration((ended - begun).total_seconds()))
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class RestartChoice:
    """A stage at which another attempt can begin, and what is done again then."""

    stage: StageView
    again: str
    is_default: bool


_DONE: Final = (StageState.COMPLETED, StageState.SKIPPED)
_RESTARTED: Final = (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.TERMINATED)


def restart_choices(job: JobDocument) -> Sequence[RestartChoice]:
    """Where a job that has ended can begin again; the stage that failed comes first.

    Args:
        job: One that has ended.
    """
    stages = job.stages
    failed = None
    if job.status in _RESTARTED:
        failed = next((each.stage for each in stages if each.state not in _DONE), None)
    last = failed or len(stages)
    # Only these stages keep their good tasks.
    partly = {failed, next((each.stage for each in stages if each.counts.failed), None)}
    default = failed or next((each.stage for each in stages if each.counts.failed), None)
    by_number: Mapping[int, StageView] = {each.stage: each for each in stages}
    found = [
        RestartChoice(by_number[number], _again(job, number, number in partly), number == default)
        for number in range(1, last + 1)
        if number in by_number
    ]
    return sorted(found, key=lambda each: not each.is_default)


def _again(job: JobDocument, first: int, keeps: bool) -> str:
    """What is done again from a stage, and what is kept, in words."""
    counts = job.stages[first - 1].counts
    if keeps and counts.completed:
        text = counted(
            "%(count)s good task is kept.", "%(count)s good tasks are kept.", counts.completed
        )
        if others := counts.total - counts.completed:
            text += " " + counted(
                "%(count)s task is done again.", "%(count)s tasks are done again.", others
            )
    elif counts.total:
        text = counted(
            "Its task is done again.", "All its %(count)s tasks are done again.", counts.total
        )
    else:
        text = gettext("All of it is done again.")
    after = len(job.stages) - first
    if after:
        text += " " + counted(
            "So is the stage after it.", "So are the %(count)s stages after it.", after
        )
    if first > 1:
        text += " " + counted(
            "The stage before it is kept.", "The %(count)s stages before it are kept.", first - 1
        )
    return text
