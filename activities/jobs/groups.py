"""`jobs.run_tasks`: some tasks of a batch, one after another."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import (
    CANCELLATIONS,
    as_application_error,
    sendable,
    text_of,
    translate_failures,
)
from activities.heartbeat import LOST_WORKERS, Heartbeater
from activities.jobs.api import InputNeeded, JobType, NotReady, TaskContext, TaskDone
from activities.jobs.contexts import JobPorts, parameters_of
from activities.jobs.folders import ReadOnce, folder_of
from activities.jobs.planning import LONGEST_PAUSE, question_of
from activities.scratch import scratch_folder
from adapters.ports import ProcessLost, Unavailable
from contracts.base import Contract
from contracts.dependencies import Dependency
from contracts.errors import THROTTLING, TRANSIENT, UNAVAILABLE
from contracts.jobs import (
    LINE_BYTES,
    LINES_CHARACTERS,
    FinishedTask,
    GroupCursor,
    GroupOrder,
    GroupResult,
    JsonObject,
    PlanLine,
    Question,
    StageOrder,
    TaskAgain,
    TaskStatus,
)

TRANSIENT_RETRIES: Final = 3
THROTTLING_RETRIES: Final = 5
PAUSES: Final = (2.0, 8.0, 10.0)
"""Seconds before a transient failure is tried again; the last one repeats."""


class TaskGroups:
    """Does tasks.

    Args:
        ports: What activities of jobs share.
    """

    def __init__(self, ports: JobPorts) -> None:
        self._ports = ports
        self._basics = ReadOnce[_Basics]()

    @activity.defn(name="jobs.run_tasks")
    @translate_failures
    async def run_tasks(self, order: GroupOrder) -> GroupResult:
        """Do the tasks of an order; each ends by itself, whatever becomes of the others.

        A worker that follows a killed one continues at the task that was in progress. A request
        to cancel ends the task in progress; those that have ended keep their results.

        Raises:
            ApplicationError: Something that docflow needs does not answer, at the first task.
        """
        basics = await self._basics.get(
            folder_of(order.job_id, order.ref), lambda: self._read(order)
        )
        plan = await self._ports.folders.plan(order.job_id, order.ref, order.batch)
        async with Heartbeater() as heart:
            return await _Group(self._ports, order, basics, plan, heart).run()

    async def _read(self, order: GroupOrder) -> "_Basics":
        stage = await self._ports.folders.order(order.job_id, order.ref)
        job_type = self._ports.job_type(stage.job)
        return _Basics(
            stage,
            job_type,
            parameters_of(job_type, stage.job),
            await self._ports.stage_results(stage),
        )


@dataclass(frozen=True)
class _Basics:
    """What all tasks of a stage have in common."""

    stage: StageOrder
    job_type: JobType[Any]
    parameters: Contract
    stage_results: Mapping[int, JsonObject]


@dataclass(frozen=True)
class _Ended:
    """What became of one task."""

    result: GroupResult
    line: str = ""
    """The task as JSON, of any length."""


@dataclass
class _Group:
    """One run of the activity."""

    ports: JobPorts
    order: GroupOrder
    basics: _Basics
    plan: list[PlanLine]
    heart: Heartbeater
    cursor: GroupCursor = field(default_factory=GroupCursor)

    async def run(self) -> GroupResult:
        """Every task, from the one at which an earlier attempt stopped."""
        self.cursor = _cursor()
        positions = self.order.positions
        while self.cursor.done < len(positions):
            position = positions[self.cursor.done]
            try:
                ended = await self._ended(position)
            except asyncio.CancelledError:
                if not _is_requested():
                    raise
                left = len(positions) - self.cursor.done
                return _plus(self.cursor.result, GroupResult(cancelled=left))
            if ended is None:
                rest = positions[self.cursor.done :]
                return self.cursor.result.model_copy(update={"rest": rest})
            self.cursor = GroupCursor(
                done=self.cursor.done + 1,
                attempt=activity.info().attempt,
                result=await self._bounded(ended),
            )
            self.heart.beat(self.cursor)
        return self.cursor.result

    async def _ended(self, position: int) -> _Ended | None:
        """What became of a task; None: what it needs does not answer, and others have ended.

        Raises:
            Unavailable: It does not answer, and this is the first task.
        """
        line = self.plan[position]
        tries = self.order.tries.get(position, 0)
        if activity.info().attempt - self.cursor.attempt >= LOST_WORKERS:
            text = f"{LOST_WORKERS} workers in a row were lost while they did it"
            return self._failed(line, tries, text)
        try:
            done = await self._do(line)
            content = _json(done.result)
            _json(done.next_stage_params)
        except NotReady as error:
            # In this order a number that is none counts as 0.
            seconds = min(max(0.0, error.seconds), LONGEST_PAUSE)
            again = TaskAgain(position=position, seconds=seconds, tries=tries)
            return _Ended(GroupResult(again=(again,), again_why=text_of(error)[:300]))
        except InputNeeded as needed:
            question = question_of(needed)
            failed = self._failed(line, tries, f"{needed.parameter}: {text_of(needed)}")
            return _Ended(failed.result.model_copy(update={"questions": (question,)}), failed.line)
        except CANCELLATIONS:
            raise
        except BaseException as error:
            return self._judged(position, line, tries, error)
        return await self._completed(line, tries, done, content)

    def _judged(
        self, position: int, line: PlanLine, tries: int, error: BaseException
    ) -> _Ended | None:
        """What becomes of a task that has raised: its class decides whether it is tried again."""
        failure = error if isinstance(error, ApplicationError) else as_application_error(error, 1)
        text = sendable(failure.message)
        retries = {TRANSIENT: TRANSIENT_RETRIES, THROTTLING: THROTTLING_RETRIES}
        most = retries.get(failure.type or "", 0)
        if tries < (LOST_WORKERS if isinstance(error, ProcessLost) else most):
            hint = failure.next_retry_delay
            seconds = PAUSES[min(tries, len(PAUSES) - 1)]
            if hint is not None:
                seconds = min(hint.total_seconds(), LONGEST_PAUSE)
            activity.logger.info("%s: %s; again in %.0f s", line.task.index, text, seconds)
            again = TaskAgain(position=position, seconds=seconds, tries=tries + 1)
            return _Ended(GroupResult(again=(again,), again_why=text[:300]))
        if self._is_outage(failure, error):
            if self.cursor.done:
                return None
            raise error
        activity.logger.warning("%s failed: %s", line.task.index, text)
        return self._failed(line, tries, text)

    def _is_outage(self, failure: ApplicationError, error: BaseException) -> bool:
        """Whether the task is to wait; no failure of its own."""
        if self.order.give_up and self.cursor.done == 0:
            return False
        is_dependency = isinstance(error, Unavailable) and isinstance(error.dependency, Dependency)
        return failure.type == UNAVAILABLE or is_dependency

    async def _do(self, line: PlanLine) -> TaskDone:
        seconds = self.order.timeout_seconds
        limit = asyncio.timeout(seconds)
        job_type = self.basics.job_type
        name = job_type.task_functions[self.basics.stage.definition.task_type]
        try:
            with ExitStack() as stack:
                async with limit:
                    context = await self._context(line, stack)
                    return await getattr(job_type, name)(context)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Unavailable(f"it did not end within {timedelta(seconds=seconds)}") from error

    async def _context(self, line: PlanLine, stack: ExitStack) -> TaskContext[Any]:
        predecessor = line.predecessor
        if line.predecessor_at is not None:
            predecessor = await self.ports.folders.result_at(self.order.job_id, line.predecessor_at)
        if predecessor is not None:
            predecessor = await self.ports.folders.whole(predecessor)
        job = self.basics.stage.job
        return TaskContext(
            job_id=job.job_id,
            attempt=job.attempt,
            stage=self.basics.stage.stage,
            index=line.task.index,
            parameters=self.basics.parameters,
            task=line.task.parameters,
            inputs=job.inputs,
            predecessor=predecessor,
            stage_results=self.basics.stage_results,
            resources=self.ports.resources,
            make_folder=lambda: stack.enter_context(scratch_folder(self.ports.resources.scratch)),
            progress=self._progress,
        )

    def _progress(self, share: float, message: str) -> None:
        self.cursor = self.cursor.model_copy(
            update={"progress": min(max(share, 0.0), 1.0), "message": message[:300]}
        )
        self.heart.beat(self.cursor)

    async def _completed(
        self, line: PlanLine, tries: int, done: TaskDone, content: bytes
    ) -> _Ended:
        result: JsonObject = done.result
        large = None
        if len(content) > self.ports.result_bytes:
            large = await self.ports.folders.put_large(
                self.order.job_id, self.order.ref, line.ordinal, content
            )
            result = {}
        finished = FinishedTask(
            index=line.task.index,
            ordinal=line.ordinal,
            status=TaskStatus.COMPLETED,
            result=result,
            next_stage_params=done.next_stage_params,
            large_result=large,
            attempts=tries + 1,
        )
        return _Ended(GroupResult(completed=1), _text(finished))

    def _failed(self, line: PlanLine, tries: int, reason: str) -> _Ended:
        finished = FinishedTask(
            index=line.task.index,
            ordinal=line.ordinal,
            status=TaskStatus.FAILED,
            error=sendable(reason[:1_500]),
            attempts=tries + 1,
        )
        return _Ended(GroupResult(failed=1), _text(finished))

    async def _bounded(self, ended: _Ended) -> GroupResult:
        """The result so far with one more; lines that are too long to travel go to a blob."""
        both = _plus(self.cursor.result, ended.result)
        lines = both.lines + ended.line
        most = min(LINES_CHARACTERS, LINE_BYTES * len(self.order.positions))
        if len(lines.encode()) <= most:
            return both.model_copy(update={"lines": lines})
        order, id = self.order, activity.info().activity_id
        blob = await self.ports.folders.put_lines(
            order.job_id, order.ref, f"{order.batch}-{id}-{both.blobs}", lines
        )
        first = both.blob or blob.removesuffix("-0.jsonl")
        return both.model_copy(update={"lines": "", "blob": first, "blobs": both.blobs + 1})


def _cursor() -> GroupCursor:
    """Where an earlier attempt stopped."""
    details = activity.info().heartbeat_details
    found = GroupCursor.model_validate(details[0]) if details else GroupCursor()
    return found.model_copy(update={"progress": 0.0, "message": ""})


def _is_requested() -> bool:
    """Whether a cancellation was asked for; else the worker is being stopped."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def _json(content: JsonObject) -> bytes:
    """What a task returns.

    Raises:
        ValueError: It holds what JSON or UTF-8 does not have.
        TypeError: The same.
    """
    return json.dumps(content, allow_nan=False, ensure_ascii=False).encode()


def _text(finished: FinishedTask) -> str:
    return finished.model_dump_json(exclude={"parameters"}, exclude_defaults=True) + "\n"


def _plus(result: GroupResult, more: GroupResult) -> GroupResult:
    questions: tuple[Question, ...] = (*result.questions, *more.questions)
    return GroupResult(
        completed=result.completed + more.completed,
        failed=result.failed + more.failed,
        cancelled=result.cancelled + more.cancelled,
        lines=result.lines,
        blob=result.blob,
        blobs=result.blobs,
        again=(*result.again, *more.again),
        again_why=result.again_why or more.again_why,
        questions=questions[:3],
    )
