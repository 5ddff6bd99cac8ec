"""Where the plans and results of stages lie, and the rows of their tasks."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from activities.shared.scratch import scratch_folder
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from workflows.jobs.definitions import StageDefinition
from workflows.jobs.records import FailedTask, JobId, JsonObject, TaskRecord, TaskStatus, task_id
from workflows.jobs.runs import FinishedTask, PlanLine, StageInput, StageRef, TaskPlace
from workflows.shared.contracts import BlobName

T = TypeVar("T")
CACHED: Final = 64
"""Plans and orders kept in memory: those of the batches that are worked on."""
READ_TOGETHER: Final = 8
"""Batches whose results are fetched side by side; a batch has some hundred kilobytes."""
FIRST_KEPT: Final = 10_000
"""Number of the first batch of tasks that were done before: they are not done in this run."""
_ROOT: Final = "jobs"
_Placed = tuple[TaskPlace, FinishedTask, int]
"""The last is the length of its line, in bytes."""


def folder_of(job_id: str, ref: StageRef) -> str:
    """Beginning of the names of all blobs of a stage; no other stage writes there."""
    return f"{_ROOT}/{job_id}/{ref.attempt}/{ref.stage}.{ref.round}"


class StageFolders:
    """Reads and writes what stages keep; writing the same again replaces it.

    Args:
        blobs: The container.
        scratch: Folder for temporary files, on their way to a blob.
    """

    def __init__(self, blobs: Blobs, scratch: Path) -> None:
        self._blobs = blobs
        self._scratch = scratch
        self._plans = ReadOnce[list[PlanLine]]()
        self._orders = ReadOnce[StageInput]()

    async def put_order(self, order: StageInput) -> None:
        """Keep the order of a stage, which its tasks read."""
        name = f"{folder_of(order.job.job_id, order.ref)}/order.json"
        await self._write(name, order.model_dump_json().encode())

    async def order(self, job_id: JobId, ref: StageRef) -> StageInput:
        """The order of a stage."""
        name = f"{folder_of(job_id, ref)}/order.json"

        async def read() -> StageInput:
            return StageInput.model_validate_json(await self._read(name))

        return await self._orders.get(name, read)

    async def put_plan(self, job_id: JobId, ref: StageRef, batch: int, lines: Path) -> None:
        """Keep the plan of a batch."""
        await self._blobs.upload(lines, f"{folder_of(job_id, ref)}/plan-{batch:05}.jsonl")

    async def plan(self, job_id: JobId, ref: StageRef, batch: int) -> list[PlanLine]:
        """The plan of a batch, by position."""
        name = f"{folder_of(job_id, ref)}/plan-{batch:05}.jsonl"

        async def read() -> list[PlanLine]:
            text = await self._read(name)
            return [PlanLine.model_validate_json(line) for line in text.splitlines()]

        return await self._plans.get(name, read)

    async def put_size(self, job_id: JobId, ref: StageRef, batches: int, kept: int) -> None:
        """Keep how many batches are to be done, and how many hold tasks that were done before.

        Written when the plan is whole.
        """
        content = {"planned": batches, "kept": kept}
        await self._write_json(f"{folder_of(job_id, ref)}/size.json", content)

    async def put_results(
        self, job_id: JobId, ref: StageRef, batch: int, tasks: Iterable[FinishedTask]
    ) -> None:
        """Keep the finished tasks of a batch, by position."""
        name = f"{folder_of(job_id, ref)}/results-{batch:05}.jsonl"
        await self._write(name, b"".join(each.model_dump_json().encode() + b"\n" for each in tasks))

    async def results(self, job_id: JobId, ref: StageRef) -> AsyncIterator[FinishedTask]:
        """The finished tasks of a stage, by ordinal; none of batches that never ended."""
        async for _, each, _ in self.placed_results(job_id, ref):
            yield each

    async def whole_results(self, job_id: JobId, ref: StageRef) -> AsyncIterator[FinishedTask]:
        """The same with the content of long results, as job types are given it."""
        async for each in self.results(job_id, ref):
            yield await self.whole(each)

    async def whole(self, task: FinishedTask) -> FinishedTask:
        """A task with the content of its result, which has a blob of its own when it is long."""
        if task.large_result is None or task.result:
            return task
        return task.model_copy(update={"result": json.loads(await self._read(task.large_result))})

    async def placed_results(self, job_id: JobId, ref: StageRef) -> AsyncIterator[_Placed]:
        """Finished tasks without the content of long results, each with its place and length."""
        size = await self._read_json(f"{folder_of(job_id, ref)}/size.json")
        done = self._placed(job_id, ref, range(size.get("planned", 0)))
        before = self._placed(job_id, ref, range(FIRST_KEPT, FIRST_KEPT + size.get("kept", 0)))
        async for found in _by_ordinal(done, before):
            yield found

    async def _placed(self, job_id: JobId, ref: StageRef, batches: range) -> AsyncIterator[_Placed]:
        folder = folder_of(job_id, ref)
        for start in range(0, len(batches), READ_TOGETHER):
            some = batches[start : start + READ_TOGETHER]
            texts = await self._read_all([f"{folder}/results-{each:05}.jsonl" for each in some])
            for batch, text in zip(some, texts, strict=True):
                for position, line in enumerate((text or b"").splitlines()):
                    place = TaskPlace(ref=ref, batch=batch, position=position)
                    yield place, FinishedTask.model_validate_json(line), len(line)

    async def result_at(self, job_id: JobId, place: TaskPlace) -> FinishedTask:
        """One finished task."""
        name = f"{folder_of(job_id, place.ref)}/results-{place.batch:05}.jsonl"
        lines = (await self._read(name)).splitlines()
        return FinishedTask.model_validate_json(lines[place.position])

    async def put_lines(self, job_id: JobId, ref: StageRef, name: str, lines: str) -> BlobName:
        """Keep finished tasks that are too long to travel; the blob."""
        blob = f"{folder_of(job_id, ref)}/group-{name}.jsonl"
        await self._write(blob, lines.encode())
        return blob

    async def lines(self, blobs: Sequence[BlobName]) -> AsyncIterator[str]:
        """The lines of such blobs."""
        for blob in blobs:
            for line in (await self._read(blob)).splitlines():
                yield line.decode()

    async def put_large(self, job_id: JobId, ref: StageRef, ordinal: int, result: bytes) -> str:
        """Keep a result that is too long for its record; the blob."""
        blob = f"{folder_of(job_id, ref)}/large/{ordinal}.json"
        await self._write(blob, result)
        return blob

    async def put_stage_result(
        self, job_id: JobId, ref: StageRef, result: JsonObject, failed: Sequence[FailedTask]
    ) -> None:
        """Keep what a stage as a whole has found, and its failed tasks by name."""
        folder = folder_of(job_id, ref)
        content = {"result": result, "failed": [each.model_dump(mode="json") for each in failed]}
        await self._write_json(f"{folder}/result.json", content)

    async def stage_result(self, job_id: JobId, ref: StageRef) -> JsonObject:
        """What a stage as a whole has found; empty where it found nothing."""
        result, _ = await self.stage_end(job_id, ref)
        return result

    async def stage_end(
        self, job_id: JobId, ref: StageRef
    ) -> tuple[JsonObject, Sequence[FailedTask]]:
        """The same, with the failed tasks of the stage, the first of them."""
        found = await self._read_json(f"{folder_of(job_id, ref)}/result.json")
        failed = [FailedTask.model_validate(each) for each in found.get("failed", ())]
        return found.get("result", {}), failed

    async def put_job_result(self, job_id: JobId, attempt: int, result: JsonObject) -> None:
        """Keep what a job type made of all stages."""
        await self._write_json(f"{_ROOT}/{job_id}/{attempt}/result.json", {"result": result})

    async def job_result(self, job_id: JobId, attempt: int) -> JsonObject | None:
        """What a job type made of all stages; None: it has not."""
        found = await self._read_json(f"{_ROOT}/{job_id}/{attempt}/result.json")
        return found.get("result")

    async def _read_json(self, name: str) -> dict[str, Any]:
        try:
            return json.loads(await self._read(name))
        except BlobNotFound:
            return {}

    async def _write_json(self, name: str, content: object) -> None:
        await self._write(name, json.dumps(content, allow_nan=False).encode())

    async def _read(self, name: str) -> bytes:
        async with aclosing(self._blobs.read(name)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def _read_all(self, names: Sequence[str]) -> Sequence[bytes | None]:
        """Some blobs side by side; None: there is none."""

        async def read(name: str) -> bytes | None:
            try:
                return await self._read(name)
            except BlobNotFound:
                return None

        return await asyncio.gather(*map(read, names))

    async def _write(self, name: str, content: bytes) -> None:
        with scratch_folder(self._scratch) as folder:
            path = folder / "content"
            await asyncio.to_thread(path.write_bytes, content)
            await self._blobs.upload(path, name)


class ReadOnce(Generic[T]):
    """What was read last, read once for all that ask at a time."""

    def __init__(self) -> None:
        self._reads: OrderedDict[str, asyncio.Task[T]] = OrderedDict()

    async def get(self, name: str, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What is kept under a name; a failure is not kept."""
        reading = self._reads.get(name)
        if reading is None:
            reading = self._reads[name] = asyncio.create_task(read())
            while len(self._reads) > CACHED:
                self._reads.popitem(last=False)
        self._reads.move_to_end(name)
        try:
            # A cancelled caller does not end the reading for the others.
            return await asyncio.shield(reading)
        finally:
            if _has_failed(reading) and self._reads.get(name) is reading:
                del self._reads[name]


def _has_failed(reading: asyncio.Task[Any]) -> bool:
    return reading.done() and (reading.cancelled() or reading.exception() is not None)


async def _by_ordinal(
    one: AsyncIterator[_Placed], other: AsyncIterator[_Placed]
) -> AsyncIterator[_Placed]:
    """Two streams, each by ordinal, as one."""
    first, second = await anext(one, None), await anext(other, None)
    while first is not None or second is not None:
        if second is None or (first is not None and first[1].ordinal < second[1].ordinal):
            assert first is not None
            yield first
            first = await anext(one, None)
        else:
            yield second
            second = await anext(other, None)


def task_record(
    job_id: str,
    ref: StageRef,
    stage: StageDefinition,
    line: PlanLine,
    status: TaskStatus,
    now: datetime,
    finished: FinishedTask | None = None,
    *,
    kept: bool = False,
) -> TaskRecord:
    """The row of a task.

    Args:
        job_id: Of its job.
        ref: Of its stage.
        stage: Its definition.
        line: Of the plan.
        status: Where it stands.
        now: When it was seen to stand there.
        finished: Its end, when it has ended.
        kept: It ended so before, and is not done again.
    """
    return TaskRecord(
        task_id=task_id(job_id, ref.stage, line.task.index),
        parent_job_id=job_id,
        attempt=ref.attempt,
        stage=ref.stage,
        task_index=line.task.index,
        ordinal=line.ordinal,
        task_type=stage.task_type,
        status=status,
        parameters=line.task.parameters,
        result_data=finished.result if finished else {},
        next_stage_params=finished.next_stage_params if finished else {},
        large_metadata_path=finished.large_result if finished else None,
        error_details=finished.error if finished else None,
        heartbeat=now if status is TaskStatus.PROCESSING else None,
        retry_count=finished.attempts - 1 if finished else 0,
        created_at=now,
        updated_at=now,
        kept=kept,
    )
