"""What the pages call states."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from babel.numbers import format_decimal

from activities.jobs.ports import WebhookDelivery
from workers.shared.gateway.pages.renderer import N_, gettext, language
from workers.shared.text import Label
from workflows.jobs.records import JobStatus, TaskStatus
from workflows.jobs.runs import StageState, StageView

JOBS: Final[Mapping[JobStatus, Label]] = {
    JobStatus.QUEUED: Label(N_("Queued")),
    JobStatus.PROCESSING: Label(N_("Running"), "info"),
    JobStatus.PARKED: Label(N_("Waits"), "warn"),
    JobStatus.COMPLETED: Label(N_("Completed"), "good"),
    JobStatus.FAILED: Label(N_("Failed"), "bad"),
    JobStatus.CANCELLED: Label(N_("Cancelled")),
    JobStatus.TERMINATED: Label(N_("Terminated"), "bad"),
}
STAGES: Final[Mapping[StageState, Label]] = {
    StageState.WAITING: Label(N_("Not begun")),
    StageState.RUNNING: Label(N_("Running"), "info"),
    StageState.COMPLETED: Label(N_("Done"), "good"),
    StageState.SKIPPED: Label(N_("Nothing to do")),
    StageState.FAILED: Label(N_("Failed"), "bad"),
    StageState.CANCELLED: Label(N_("Cancelled")),
}
TASKS: Final[Mapping[TaskStatus, Label]] = {
    TaskStatus.QUEUED: Label(N_("Queued")),
    TaskStatus.PROCESSING: Label(N_("Running"), "info"),
    TaskStatus.COMPLETED: Label(N_("Completed"), "good"),
    TaskStatus.FAILED: Label(N_("Failed"), "bad"),
    TaskStatus.CANCELLED: Label(N_("Cancelled")),
}


def pace(stage: StageView, now: datetime | None = None) -> str:
    """How fast a stage is, and how long it is still going to take."""
    if stage.state is not StageState.RUNNING:
        return ""
    parts: list[str] = []
    if stage.rate is not None:
        parts.append(gettext("%(rate)s a second", rate=_short(stage.rate)))
    if stage.estimated_end is not None:
        left = (stage.estimated_end - (now or datetime.now(UTC))).total_seconds()
        parts.append(gettext("about %(time)s left", time=duration(round(max(left, 0)))))
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """How long something took, in the largest suitable unit: 5 min."""
    if 0 < seconds < 0.05:
        return f"< {_short(0.1)} s"
    if seconds < 10:
        return f"{_short(seconds)} s"
    if seconds < 90:
        return f"{round(seconds)} s"
    if seconds < 5_400:
        return f"{round(seconds / 60)} min"
    return f"{_short(seconds / 3_600)} h"


def _short(value: float) -> str:
    return format_decimal(value, "#,##0.#", locale=language().locale)


def receivers(deliveries: Sequence[WebhookDelivery]) -> Sequence[tuple[int, WebhookDelivery]]:
    """Each receiver once, by its place."""
    newest = {each.number: each for each in reversed(deliveries)}
    return sorted(newest.items())


_LONGEST: Final = 1_000
"""Characters of a value that are shown."""


def value(given: object) -> str:
    """A parameter or a property: texts as they are, all else as JSON; a long one is cut."""
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
