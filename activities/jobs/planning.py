"""`jobs.plan_stage`: the tasks of a stage, written as one blob for each batch."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.jobs.api import InputNeeded, JobType, NotReady, StageContext
from activities.jobs.contexts import JobPorts, depended_on
from activities.jobs.rows import task_record
from activities.scratch import scratch_folder
from adapters.ports import NotYet
from contracts.jobs import (
    TASKS_PER_BATCH,
    TASKS_PER_STAGE,
    FinishedTask,
    PlanLine,
    PlannedTask,
    Question,
    StageOrder,
    StagePlan,
    StageRef,
    TaskPlace,
    TaskStatus,
)
from domain.errors import RuleViolation

INLINE_BYTES: Final = 4_096
"""A predecessor that is longer is read when its task begins."""


class StagePlanning:
    """Plans stages.

    Args:
        ports: What activities of jobs share.
    """

    def __init__(self, ports: JobPorts) -> None:
        self._ports = ports

    @activity.defn(name="jobs.plan_stage")
    @translate_failures
    async def plan_stage(self, order: StageOrder) -> StagePlan:
        """Write the plan of a stage; a repeated attempt replaces it.

        Raises:
            ApplicationError: The job type refuses, names a task twice or has too many.
        """
        job_type = self._ports.job_type(order.job)
        ref = depended_on(order)
        job_id = order.job.job_id

        async def previous() -> AsyncIterator[FinishedTask]:
            if ref is not None:
                async for each in self._ports.folders.results(job_id, ref):
                    yield each

        async with Heartbeater():
            context = await self._ports.stage_context(order, previous)
            try:
                return await self._write(order, job_type, context, ref)
            except InputNeeded as needed:
                return StagePlan(question=question_of(needed))
            except NotReady as error:
                raise NotYet(str(error), error.seconds) from error

    async def _write(
        self,
        order: StageOrder,
        job_type: JobType[object],  # pyright: ignore[reportInvalidTypeArguments]
        context: StageContext[object],  # pyright: ignore[reportInvalidTypeArguments]
        ref: StageRef | None,
    ) -> StagePlan:
        folders, job_id = self._ports.folders, order.job.job_id
        predecessors = _Finished(self._placed(order, ref))
        kept = _Finished(self._placed(order, order.redo))
        await folders.put_order(order)
        lines: list[PlanLine] = []
        tasks = done = 0
        seen: set[str] = set()
        with scratch_folder(self._ports.resources.scratch) as folder:
            async with aclosing(_limited(job_type, context, order)) as planned:
                async for task in planned:
                    _refuse(order, task, seen)
                    line = await _line(tasks, task, predecessors, kept)
                    lines.append(line)
                    tasks += 1
                    done += line.done is not None
                    if len(lines) == TASKS_PER_BATCH:
                        await self._put(order, folder, tasks, lines)
                        lines = []
            if lines:
                await self._put(order, folder, tasks, lines)
        await folders.put_size(job_id, order.ref, tasks)
        return StagePlan(tasks=tasks, kept=done)

    def _placed(
        self, order: StageOrder, ref: StageRef | None
    ) -> AsyncIterator[tuple[TaskPlace, FinishedTask]] | None:
        if ref is None:
            return None
        return self._ports.folders.placed_results(order.job.job_id, ref)

    async def _put(
        self, order: StageOrder, folder: Path, tasks: int, lines: list[PlanLine]
    ) -> None:
        """Keep a batch, and show its tasks in the table."""
        path = folder / "plan"
        path.write_bytes(b"".join(line.model_dump_json().encode() + b"\n" for line in lines))
        job = order.job
        await self._ports.folders.put_plan(
            job.job_id, order.ref, (tasks - 1) // TASKS_PER_BATCH, path
        )
        now = datetime.now(UTC)
        await self._ports.store.put_tasks(
            [
                task_record(job.job_id, order.ref, order.definition, line, TaskStatus.QUEUED, now)
                for line in lines
                if line.done is None
            ]
        )


async def _limited(
    job_type: JobType[object],  # pyright: ignore[reportInvalidTypeArguments]
    context: StageContext[object],  # pyright: ignore[reportInvalidTypeArguments]
    order: StageOrder,
) -> AsyncIterator[PlannedTask]:
    """The plan of a job type, as far as a trial run takes it."""
    begun = 0
    async for task in job_type.plan(order.definition, context):
        if begun == order.job.limit:
            return
        begun += 1
        yield task


def _refuse(order: StageOrder, task: PlannedTask, seen: set[str]) -> None:
    """Refuse what a stage cannot have."""
    stage = order.definition
    name = f"stage {stage.stage_number} ({stage.stage_name})"
    if task.index in seen:
        raise RuleViolation(
            f"{name} plans two tasks with the index {task.index!r}; give each an index of its own"
        )
    seen.add(task.index)
    if len(seen) > TASKS_PER_STAGE:
        raise RuleViolation(
            f"{name} plans more than {TASKS_PER_STAGE:,} tasks, which is the most of one stage; "
            "give each task more to do, or divide the input into several jobs"
        )


async def _line(
    ordinal: int, task: PlannedTask, predecessors: "_Finished", kept: "_Finished"
) -> PlanLine:
    before = await predecessors.take(task.index)
    earlier = await kept.take(task.index)
    done = None
    if earlier is not None:
        _, finished, _ = earlier
        is_good = finished.status is TaskStatus.COMPLETED
        if is_good and finished.parameters == task.parameters:
            done = finished.model_copy(update={"ordinal": ordinal})
    if before is None:
        return PlanLine(ordinal=ordinal, task=task, done=done)
    place, finished, is_long = before
    return PlanLine(
        ordinal=ordinal,
        task=task,
        predecessor=None if is_long else finished,
        predecessor_at=place if is_long else None,
        done=done,
    )


_Found = tuple[TaskPlace, FinishedTask, bool]


class _Finished:
    """Finished tasks by index, read as far as they are asked for: plans keep their order."""

    def __init__(self, tasks: AsyncIterator[tuple[TaskPlace, FinishedTask]] | None) -> None:
        self._tasks = tasks
        self._passed: dict[str, _Found] = {}

    async def take(self, index: str) -> _Found | None:
        """The task of an index, its place, and whether it is long; None: there is none."""
        if (found := self._passed.pop(index, None)) is not None:
            return found
        while self._tasks is not None:
            pair = await anext(self._tasks, None)
            if pair is None:
                self._tasks = None
                return None
            place, task = pair
            is_long = len(task.model_dump_json()) > INLINE_BYTES
            if task.index == index:
                return place, task, is_long
            self._passed[task.index] = (place, task, is_long)
        return None


def question_of(needed: InputNeeded) -> Question:
    """What a person is asked."""
    return Question(parameter=needed.parameter[:100], question=str(needed)[:300])
