"""`jobs.plan_stage`: the tasks of a stage, written as one blob for each batch."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from temporalio import activity

from activities.jobs.api import InputNeeded, JobPorts, JobType, NotReady, StageContext, depended_on
from activities.jobs.folders import FIRST_KEPT, task_record
from activities.shared.failures import BoundedHeartbeater, text_of, translate_failures
from activities.shared.scratch import scratch_folder
from adapters.ports.errors import NotYet
from workflows.jobs.definitions import TASKS_PER_BATCH, TASKS_PER_STAGE
from workflows.jobs.records import TaskStatus
from workflows.jobs.runs import (
    FinishedTask,
    PlanLine,
    PlannedTask,
    Question,
    StageInput,
    StagePlan,
    StageRef,
    TaskPlace,
)
from workflows.shared.errors import RuleViolation

LONGEST_PAUSE: Final = 86_400.0
"""Seconds until what was not ready is asked for again, at most."""
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
    async def plan_stage(self, order: StageInput) -> StagePlan:
        """Write the plan of a stage; a repeated attempt replaces it.

        Raises:
            ApplicationError: The job type refuses, names a task twice or has too many, or its plan
                lost too many workers.
        """
        job_type = self._ports.job_type(order.job)
        ref = depended_on(order)
        job_id = order.job.job_id

        async def previous() -> AsyncIterator[FinishedTask]:
            if ref is not None:
                async for each in self._ports.folders.whole_results(job_id, ref):
                    yield each

        async with BoundedHeartbeater("planned the stage"):
            context = await self._ports.stage_context(order, previous)
            try:
                return await self._write(order, job_type, context, ref)
            except InputNeeded as needed:
                return StagePlan(question=question_of(needed))
            except NotReady as error:
                seconds = min(max(0.0, error.seconds), LONGEST_PAUSE)
                raise NotYet(text_of(error), seconds) from error

    async def _write(
        self,
        order: StageInput,
        job_type: JobType[Any],
        context: StageContext[Any],
        ref: StageRef | None,
    ) -> StagePlan:
        folders, job_id = self._ports.folders, order.job.job_id
        predecessors = _Finished(self._placed(order, ref))
        kept = _Finished(self._placed(order, order.redo))
        await folders.put_order(order)
        seen: set[str] = set()
        with scratch_folder(self._ports.resources.scratch) as folder:
            written = _Written(self._ports, order, folder)
            async with aclosing(_limited(job_type, context, order)) as planned:
                async for task in planned:
                    _refuse(order, task, seen)
                    await written.add(task, await kept.take(task), await predecessors.take(task))
            await written.flush()
        await folders.put_size(job_id, order.ref, written.batches, written.kept_batches)
        return StagePlan(tasks=written.tasks, kept=written.kept)

    def _placed(
        self, order: StageInput, ref: StageRef | None
    ) -> AsyncIterator[tuple[TaskPlace, FinishedTask, int]] | None:
        if ref is None:
            return None
        return self._ports.folders.placed_results(order.job.job_id, ref)


class _Written:
    """The plan as it is written: tasks to be done, and results that are kept, in batches."""

    def __init__(self, ports: JobPorts, order: StageInput, folder: Path) -> None:
        self._ports, self._order, self._folder = ports, order, folder
        self._lines: list[PlanLine] = []
        self._done: list[tuple[PlanLine, FinishedTask]] = []
        self.tasks = self.kept = self.batches = self.kept_batches = 0

    async def add(
        self, task: PlannedTask, earlier: "_Found | None", before: "_Found | None"
    ) -> None:
        """One more task, with its end in an earlier run and its predecessor."""
        ordinal = self.tasks + self.kept
        done = earlier and _kept(task, earlier.task, ordinal)
        if done is not None:
            self.kept += 1
            self._done.append((PlanLine(ordinal=ordinal, task=task), done))
            if len(self._done) == TASKS_PER_BATCH:
                await self._put_kept()
            return
        self.tasks += 1
        is_long = before is not None and before.is_long
        self._lines.append(
            PlanLine(
                ordinal=ordinal,
                task=task,
                predecessor=None if before is None or is_long else before.task,
                predecessor_at=before.place if before is not None and is_long else None,
            )
        )
        if len(self._lines) == TASKS_PER_BATCH:
            await self._put_plan()

    async def flush(self) -> None:
        """Write what does not fill a batch."""
        if self._lines:
            await self._put_plan()
        if self._done:
            await self._put_kept()

    async def _put_plan(self) -> None:
        lines, self._lines = self._lines, []
        path = self._folder / "plan"
        path.write_bytes(b"".join(line.model_dump_json().encode() + b"\n" for line in lines))
        job_id, ref = self._order.job.job_id, self._order.ref
        await self._ports.folders.put_plan(job_id, ref, self.batches, path)
        self.batches += 1
        now = datetime.now(UTC)
        stage = self._order.definition
        await self._ports.store.put_tasks(
            [task_record(job_id, ref, stage, line, TaskStatus.QUEUED, now) for line in lines]
        )

    async def _put_kept(self) -> None:
        done, self._done = self._done, []
        job_id, ref = self._order.job.job_id, self._order.ref
        batch = FIRST_KEPT + self.kept_batches
        await self._ports.folders.put_results(job_id, ref, batch, [end for _, end in done])
        self.kept_batches += 1
        now = datetime.now(UTC)
        stage = self._order.definition
        await self._ports.store.put_tasks(
            [
                task_record(job_id, ref, stage, line, end.status, now, end, kept=True)
                for line, end in done
            ]
        )


def _kept(task: PlannedTask, earlier: FinishedTask, ordinal: int) -> FinishedTask | None:
    """The result of an earlier run, where it is good and was for the same; None: do it again."""
    is_good = earlier.status is TaskStatus.COMPLETED and earlier.parameters == task.parameters
    return earlier.model_copy(update={"ordinal": ordinal}) if is_good else None


async def _limited(
    job_type: JobType[Any],
    context: StageContext[Any],
    order: StageInput,
) -> AsyncGenerator[PlannedTask]:
    """The plan of a job type, as far as a trial run takes it."""
    begun = 0
    async for task in job_type.plan(order.definition, context):
        if begun == order.job.limit:
            return
        begun += 1
        yield task


def _refuse(order: StageInput, task: PlannedTask, seen: set[str]) -> None:
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


@dataclass(frozen=True, slots=True)
class _Found:
    """A finished task, and where it stands."""

    place: TaskPlace
    task: FinishedTask
    is_long: bool


class _Finished:
    """Finished tasks by index, read as far as they are asked for: plans keep their order."""

    def __init__(self, tasks: AsyncIterator[tuple[TaskPlace, FinishedTask, int]] | None) -> None:
        self._tasks = tasks
        self._passed: dict[str, _Found] = {}

    async def take(self, planned: PlannedTask) -> _Found | None:
        """The task of the same index; None: there is none."""
        if (passed := self._passed.pop(planned.index, None)) is not None:
            return passed
        while self._tasks is not None:
            placed = await anext(self._tasks, None)
            if placed is None:
                self._tasks = None
                return None
            place, task, size = placed
            found = _Found(place, task, size > INLINE_BYTES)
            if task.index == planned.index:
                return found
            self._passed[task.index] = found
        return None


def question_of(needed: InputNeeded) -> Question:
    """What a person is asked."""
    return Question(parameter=needed.parameter[:100], question=text_of(needed)[:300])
