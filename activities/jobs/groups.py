"""`jobs.run_tasks`: some tasks of a batch, one after another, and the rows of their results."""

import asyncio
import fcntl
import hashlib
import json
import os
import tempfile
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.jobs.api import (
    InputNeeded,
    JobPorts,
    JobType,
    NotReady,
    TaskContext,
    TaskDone,
    parameters_of,
)
from activities.jobs.folders import ReadOnce, folder_of, task_record
from activities.jobs.planning import LONGEST_PAUSE, question_of
from activities.shared.failures import (
    CANCELLATIONS,
    LOST_WORKERS,
    BoundedHeartbeater,
    Heartbeater,
    as_application_error,
    sendable,
    text_of,
    translate_failures,
)
from activities.shared.scratch import HELD, scratch_folder
from adapters.ports.blobs import Blobs
from adapters.ports.errors import ProcessLost, Unavailable
from workflows.jobs.records import JsonObject, TaskRecord, TaskStatus
from workflows.jobs.runs import (
    LINE_BYTES,
    LINES_CHARACTERS,
    BatchEnd,
    BatchRecording,
    FinishedTask,
    GroupCursor,
    GroupResult,
    PlanLine,
    Question,
    StageInput,
    TaskAgain,
    TaskCounts,
    TaskGroupInput,
)
from workflows.shared.contracts import BlobRef, Contract
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import THROTTLING, TRANSIENT, UNAVAILABLE, RuleViolation

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
    async def run_tasks(self, order: TaskGroupInput) -> GroupResult:
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

    async def _read(self, order: TaskGroupInput) -> "_Basics":
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

    stage: StageInput
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
    order: TaskGroupInput
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
            resources=self.ports.resources_of(job),
            make_folder=lambda: stack.enter_context(scratch_folder(self.ports.resources.scratch)),
            progress=self._progress,
            organisation_id=job.organisation_id,
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


KEPT_BYTES: Final = 20 << 30
"""Of files that are not being read."""


class SourceFiles:
    """Files of this process, by blob and version; those unread for longest are removed first.

    Its folder is locked for as long as the process lives, so that a sweep removes what a killed
    worker left.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._folder: Path | None = None
        self._locks: dict[str, asyncio.Lock] = {}
        self._readers: dict[str, int] = {}
        self._idle: OrderedDict[str, int] = OrderedDict()

    @asynccontextmanager
    async def file(
        self, blobs: Blobs, name: str, etag: str | None, scratch: Path
    ) -> AsyncGenerator[Path]:
        """A blob as a local file, which is only read.

        Args:
            blobs: Where it is.
            name: Of the blob.
            etag: The version that the job was submitted with; None: any.
            scratch: Folder for temporary files.

        Raises:
            BlobNotFound: There is no such blob.
            RuleViolation: It was replaced meanwhile.
        """
        key = hashlib.sha256(f"{id(blobs)} {name} {etag}".encode()).hexdigest()
        self._readers[key] = self._readers.get(key, 0) + 1
        self._idle.pop(key, None)
        try:
            path = self._made(scratch) / key
            async with self._locks.setdefault(key, asyncio.Lock()):
                if not path.exists():
                    await _fetch(blobs, name, etag, path)
            yield path
        finally:
            self._readers[key] -= 1
            if not self._readers[key]:
                self._release(key)

    def _release(self, key: str) -> None:
        del self._readers[key]
        self._locks.pop(key, None)
        if self._folder is None:
            return
        path = self._folder / key
        if path.exists():
            self._idle[key] = path.stat().st_size
        while sum(self._idle.values()) > self._kept_bytes:
            oldest, _ = self._idle.popitem(last=False)
            (self._folder / oldest).unlink(missing_ok=True)

    def _made(self, scratch: Path) -> Path:
        if self._folder is None or not self._folder.exists():
            scratch.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=HELD, dir=scratch))
            fcntl.flock(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
        return self._folder


async def _fetch(blobs: Blobs, name: str, etag: str | None, path: Path) -> BlobRef:
    part = path.with_suffix(".part")
    try:
        found = await blobs.download(name, part)
        if etag and found.etag and found.etag != etag:
            raise RuleViolation(f"{name} was replaced while its job was running; submit it again")
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
    return found


class BatchRecords:
    """Writes what became of the tasks of a batch, all at once.

    Args:
        ports: What activities of jobs share.
    """

    def __init__(self, ports: JobPorts) -> None:
        self._ports = ports

    @activity.defn(name="jobs.record_tasks")
    @translate_failures
    async def record_tasks(self, recording: BatchRecording) -> None:
        """Show in the table how far a batch is; nothing depends on it."""
        plan = await _plan(self._ports, recording)
        finished = await _finished(self._ports, recording)
        now = datetime.now(UTC)
        rows = [
            _row(recording, line, now, finished.get(line.ordinal), TaskStatus.PROCESSING)
            for position, line in enumerate(plan)
            if line.ordinal in finished or position in recording.processing
        ]
        await self._ports.store.put_tasks(rows)

    @activity.defn(name="jobs.close_batch")
    @translate_failures
    async def close_batch(self, recording: BatchRecording) -> BatchEnd:
        """Write the results of a batch, in the order of its plan, and its rows."""
        async with BoundedHeartbeater("put the results of a batch together"):
            return BatchEnd(counts=counts_of(await write_batch(self._ports, recording)))


async def write_batch(ports: JobPorts, recording: BatchRecording) -> Sequence[FinishedTask]:
    """Write the results of a batch, in the order of its plan, and its rows."""
    order = recording.order
    plan = await _plan(ports, recording)
    finished = await _finished(ports, recording)
    ended = [_end_of(line, finished) for line in plan]
    await ports.folders.put_results(order.job_id, order.ref, order.batch, ended)
    now = datetime.now(UTC)
    await ports.store.put_tasks(
        [_row(recording, line, now, end, end.status) for line, end in zip(plan, ended, strict=True)]
    )
    return ended


async def _plan(ports: JobPorts, recording: BatchRecording) -> Sequence[PlanLine]:
    order = recording.order
    return await ports.folders.plan(order.job_id, order.ref, order.batch)


async def _finished(ports: JobPorts, recording: BatchRecording) -> Mapping[int, FinishedTask]:
    """Finished tasks by ordinal."""
    # A line ends with a line feed alone: JSON may hold what else `splitlines` takes for an end.
    lines = [line for text in recording.lines for line in text.split("\n") if line]
    lines += [line async for line in ports.folders.lines(recording.blobs)]
    tasks = map(FinishedTask.model_validate_json, lines)
    return {task.ordinal: task for task in tasks}


def _row(
    recording: BatchRecording,
    line: PlanLine,
    now: datetime,
    finished: FinishedTask | None,
    status: TaskStatus,
) -> TaskRecord:
    order = recording.order
    status = finished.status if finished else status
    return task_record(order.job_id, order.ref, order.definition, line, status, now, finished)


def _end_of(line: PlanLine, finished: Mapping[int, FinishedTask]) -> FinishedTask:
    """How a task has ended; one without a result was never begun, or stopped."""
    found = finished.get(line.ordinal)
    if found is None:
        found = FinishedTask(
            index=line.task.index,
            ordinal=line.ordinal,
            status=TaskStatus.CANCELLED,
            error="it was cancelled before it had ended",
        )
    return found.model_copy(update={"parameters": line.task.parameters})


def counts_of(tasks: Sequence[FinishedTask]) -> TaskCounts:
    """How many tasks ended in which way."""
    states = [task.status for task in tasks]
    return TaskCounts(
        total=len(states),
        completed=states.count(TaskStatus.COMPLETED),
        failed=states.count(TaskStatus.FAILED),
        cancelled=states.count(TaskStatus.CANCELLED),
    )
