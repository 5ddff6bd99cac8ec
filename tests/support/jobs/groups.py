"""Groups of tasks, without Temporal: a planned stage, and the order of a group of it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.jobs.api import JobPorts, TaskContext
from activities.jobs.planning import StagePlanning
from adapters.database.engine import open_database
from tests.support.fresh_database import fresh_url
from tests.support.jobs.installation import order_of, ports_of
from tests.support.jobs.types import Pieces, pieces
from tests.support.memory.blobs import MemoryBlobs
from workflows.jobs.runs import (
    BatchRecording,
    FinishedTask,
    GroupResult,
    JobInput,
    StageInput,
    StageRef,
    TaskBatchInput,
    TaskGroupInput,
)

REF = StageRef(stage=1, attempt=1)


class Rows:
    """The table of tasks, in memory."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    async def put_tasks(self, tasks: list[Any]) -> None:
        """Keep rows."""
        self.tasks += tasks


Build = Callable[..., Any]


def planning(folder: Path) -> Build:
    """Plans a stage of pieces that act as the test says; it gives their type, ports and job."""

    async def planned(
        act: Callable[[TaskContext[Any], int], Any], **stage: Any
    ) -> tuple[type[Pieces], JobPorts, JobInput]:
        kind = pieces(**stage)
        kind.act = staticmethod(act)
        database = open_database(fresh_url())
        ports = ports_of(folder, MemoryBlobs(), database, [kind])
        ports = dataclasses.replace(ports, store=Rows())  # type: ignore[arg-type]
        job = order_of(kind, {"pieces": 5})
        await ActivityEnvironment().run(
            StagePlanning(ports).plan_stage, StageInput(job=job, stage=1)
        )
        return kind, ports, job

    return planned


def group_of(job: JobInput, *positions: int, **fields: Any) -> TaskGroupInput:
    """The order of a group of tasks of the stage, all where none is named."""
    given = {"timeout_seconds": 30, **fields}
    return TaskGroupInput(
        job_id=job.job_id, ref=REF, batch=0, positions=positions or tuple(range(5)), **given
    )


def recording_of(job: JobInput, *lines: str) -> BatchRecording:
    """The end of a batch of all tasks, with lines of results."""
    definition = job.definition.stage(1)
    batch = TaskBatchInput(
        job_id=job.job_id, ref=REF, definition=definition, batch=0, tasks=5, window=5
    )
    return BatchRecording(order=batch, lines=lines)


def environment(**info: Any) -> ActivityEnvironment:
    """Where an activity runs, with other facts about its attempt."""
    found = ActivityEnvironment()
    found.info = dataclasses.replace(found.info, **info)
    return found


def finished(result: GroupResult) -> list[FinishedTask]:
    """Tasks that a result lists."""
    return [FinishedTask.model_validate_json(line) for line in result.lines.splitlines()]
