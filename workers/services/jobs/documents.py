"""A job as people and programs see it: its record, and how far each stage is."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import Field

from contracts.jobs import (
    JobRecord,
    JobStatus,
    JobView,
    JobWait,
    Question,
    StageState,
    StageView,
    TaskCounts,
    TaskStatus,
    WorkflowDefinition,
)

ENDED: Final = frozenset(
    {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.TERMINATED}
)
"""Nothing more happens by itself."""
_AT_THE_END: Final[Mapping[JobStatus, StageState]] = {
    JobStatus.COMPLETED: StageState.COMPLETED,
    JobStatus.FAILED: StageState.FAILED,
    JobStatus.CANCELLED: StageState.CANCELLED,
    JobStatus.TERMINATED: StageState.CANCELLED,
}


class JobDocument(JobRecord):
    """The record of a job, with its stages."""

    stages: tuple[StageView, ...] = ()
    questions: tuple[Question, ...] = ()
    """Parameters that a person has to give."""
    next_steps: str | None = Field(default=None)
    """What a person can do while it is parked."""
    waiting_since: datetime | None = None
    awaits: JobWait | None = None
    """What it waits for without a person, as its run says."""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.status in ENDED


def from_run(record: JobRecord, view: JobView) -> JobDocument:
    """As its run says: it knows more, and earlier, than the table.

    It has not ended before the table says so too, since the result stands there.
    """
    return _document(
        record,
        {
            "status": record.status if view.status in ENDED else view.status,
            "stage": view.stage,
            "stages": view.stages,
            "questions": view.questions,
            "next_steps": view.next_steps,
            "waiting_since": view.waiting_since,
            "awaits": view.awaits,
            "error_details": view.reason or record.error_details,
        },
    )


def from_table(
    record: JobRecord,
    counts: Mapping[int, Mapping[TaskStatus, int]],
    definition: WorkflowDefinition | None,
) -> JobDocument:
    """As the table says: when the job has ended, or no worker answers."""
    stages = tuple(
        _stage(record, number, _name(definition, number), counts.get(number, {}))
        for number in range(1, record.total_stages + 1)
    )
    return _document(record, {"stages": stages})


def _stage(
    record: JobRecord, number: int, name: str, by_status: Mapping[TaskStatus, int]
) -> StageView:
    state = _state(record, number, by_status)
    # What an earlier attempt has done of it does not count.
    counts = TaskCounts() if state is StageState.WAITING else _counts(by_status)
    return StageView(stage=number, name=name, state=state, counts=counts)


def _document(record: JobRecord, more: Mapping[str, Any]) -> JobDocument:
    fields = {name: getattr(record, name) for name in JobRecord.model_fields}
    return JobDocument.model_validate({**fields, **more})


def _name(definition: WorkflowDefinition | None, number: int) -> str:
    named: Sequence[str] = [] if definition is None else [s.stage_name for s in definition.stages]
    return named[number - 1] if number <= len(named) else f"stage-{number}"


def _counts(by_status: Mapping[TaskStatus, int]) -> TaskCounts:
    return TaskCounts(
        total=sum(by_status.values()),
        completed=by_status.get(TaskStatus.COMPLETED, 0),
        failed=by_status.get(TaskStatus.FAILED, 0),
        cancelled=by_status.get(TaskStatus.CANCELLED, 0),
    )


def _state(record: JobRecord, number: int, by_status: Mapping[TaskStatus, int]) -> StageState:
    if number < record.stage or record.status is JobStatus.COMPLETED:
        return StageState.COMPLETED if by_status else StageState.SKIPPED
    if number > record.stage:
        return StageState.WAITING
    return _AT_THE_END.get(record.status, StageState.RUNNING)
