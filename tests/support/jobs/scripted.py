"""Activities of jobs that answer as a test says, for every workflow of theirs."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from activities.jobs.completion import StageClosing
from activities.jobs.groups import BatchRecords, TaskGroups
from activities.jobs.planning import StagePlanning
from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from tests.support.scripted import ScriptedActivities
from workflows.jobs.records import JobRecorded
from workflows.jobs.runs import (
    BatchEnd,
    BatchRecording,
    FailedName,
    GroupResult,
    Question,
    StageClosed,
    StageInput,
    StagePlan,
    StageTally,
    TaskAgain,
    TaskCounts,
    TaskGroupInput,
)

Acts = Mapping[tuple[int, int], Any]
"""Stage and ordinal to what its task does the first time: `failed`, a `Question`, or seconds after
which it is to be asked again."""


class ScriptedJob(ScriptedActivities):
    """Stages of so many tasks, which complete unless it is said otherwise.

    Args:
        tasks: Of each stage, by its number.
        acts: What some tasks do when they are begun for the first time.
    """

    def __init__(self, tasks: Mapping[int, int], acts: Acts | None = None, **script: Any) -> None:
        results: dict[str, Callable[[Any], Any]] = {
            "plan_stage": self._plan,
            "run_tasks": self._run,
            "close_batch": self._close_batch,
            "close_stage": self._close_stage,
            "close_small_stage": self._close_stage,
            "record": lambda recording: JobRecorded(),
        }
        results |= script.pop("results", {})
        super().__init__(
            StagePlanning,
            TaskGroups,
            BatchRecords,
            StageClosing,
            Dependencies,
            NotificationSending,
            results=results,
            **script,
        )
        self._tasks, self._acts = tasks, dict(acts or {})
        self._left = dict(tasks)
        self._counts: dict[tuple[Any, int], TaskCounts] = defaultdict(TaskCounts)

    def _plan(self, order: StageInput) -> StagePlan:
        kept = 0 if order.redo is None else self._tasks[order.stage] - self._left[order.stage]
        left = self._tasks[order.stage] - kept
        self._left[order.stage] = 0
        return StagePlan(tasks=left, kept=kept)

    def _run(self, order: TaskGroupInput) -> GroupResult:
        result = GroupResult()
        for position in order.positions:
            act = self._acts.pop((order.ref.stage, order.batch * 500 + position), None)
            result = _with(result, position, act)
        key = (order.ref, order.batch)
        self._left[order.ref.stage] += result.failed
        self._counts[key] = self._counts[key].plus(
            TaskCounts(completed=result.completed, failed=result.failed)
        )
        return result

    def _close_batch(self, recording: BatchRecording) -> BatchEnd:
        order = recording.order
        counts = self._counts[order.ref, order.batch]
        left = order.tasks - counts.done
        return BatchEnd(counts=counts.plus(TaskCounts(total=order.tasks, cancelled=left)))

    def _close_stage(self, tally: StageTally) -> StageClosed:
        ref = tally.order.ref
        counts = TaskCounts()
        for (of, _), each in self._counts.items():
            if of == ref:
                counts = counts.plus(each)
        failed = [FailedName(task_id="task", reason="crooked")] * min(counts.failed, 1)
        left = tally.tasks - counts.done
        return StageClosed(
            counts=counts.plus(TaskCounts(total=tally.tasks, cancelled=left)), failed=tuple(failed)
        )


def _with(result: GroupResult, position: int, act: Any) -> GroupResult:
    """A result with one task more."""
    match act:
        case None:
            return result.model_copy(update={"completed": result.completed + 1})
        case Question():
            questions = (*result.questions, act)
            return result.model_copy(update={"failed": result.failed + 1, "questions": questions})
        case float():
            again = (*result.again, TaskAgain(position=position, seconds=act))
            return result.model_copy(update={"again": again})
        case _:
            return result.model_copy(update={"failed": result.failed + 1})
