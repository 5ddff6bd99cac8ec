"""What the pages call states."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from activities.jobs.ports import WebhookDelivery
from workers.shared.text import Label
from workflows.jobs.records import JobStatus, TaskStatus
from workflows.jobs.runs import StageState, StageView

JOBS: Final[Mapping[JobStatus, Label]] = {
    JobStatus.QUEUED: Label("Queued"),
    JobStatus.PROCESSING: Label("Running", "info"),
    JobStatus.PARKED: Label("Waits", "warn"),
    JobStatus.COMPLETED: Label("Completed", "good"),
    JobStatus.FAILED: Label("Failed", "bad"),
    JobStatus.CANCELLED: Label("Cancelled"),
    JobStatus.TERMINATED: Label("Terminated", "bad"),
}
STAGES: Final[Mapping[StageState, Label]] = {
    StageState.WAITING: Label("Not begun"),
    StageState.RUNNING: Label("Running", "info"),
    StageState.COMPLETED: Label("Done", "good"),
    StageState.SKIPPED: Label("Nothing to do"),
    StageState.FAILED: Label("Failed", "bad"),
    StageState.CANCELLED: Label("Cancelled"),
}
TASKS: Final[Mapping[TaskStatus, Label]] = {
    TaskStatus.QUEUED: Label("Queued"),
    TaskStatus.PROCESSING: Label("Running", "info"),
    TaskStatus.COMPLETED: Label("Completed", "good"),
    TaskStatus.FAILED: Label("Failed", "bad"),
    TaskStatus.CANCELLED: Label("Cancelled"),
}


def pace(stage: StageView, now: datetime | None = None) -> str:
    """How fast a stage is, and how long it is still going to take."""
    if stage.state is not StageState.RUNNING:
        return ""
    parts: list[str] = []
    if stage.rate is not None:
        parts.append(f"{stage.rate:,.1f} a second")
    if stage.estimated_end is not None:
        left = (stage.estimated_end - (now or datetime.now(UTC))).total_seconds()
        parts.append(f"about {_duration(max(left, 0))} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{round(seconds)} s"
    if seconds < 5_400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3_600:,.1f} h"


def receivers(deliveries: Sequence[WebhookDelivery]) -> Sequence[tuple[int, WebhookDelivery]]:
    """Each receiver once, by its place."""
    newest = {each.number: each for each in reversed(deliveries)}
    return sorted(newest.items())
