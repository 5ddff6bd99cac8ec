"""What a stage and a job have found, and what is no longer kept of them."""

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field
from temporalio import activity

from activities.jobs.api import JobPorts, JobResources
from activities.jobs.groups import write_batch
from activities.jobs.ports import CatalogueQuery
from activities.jobs.store import SqlJobLeftovers
from activities.shared.failures import BoundedHeartbeater, Heartbeater, translate_failures
from activities.shared.scratch import scratch_folder
from adapters.ports.blobs import Blobs
from workflows.jobs.records import (
    FAILED_TASKS_LISTED,
    FailedTask,
    JobRecord,
    JobRecorded,
    JobStatus,
    JsonObject,
    TaskStatus,
    task_id,
)
from workflows.jobs.runs import (
    NAMED,
    NAMED_REMOVED,
    FailedName,
    FinishedTask,
    JobInput,
    JobRecording,
    JobRetentionInput,
    JobRetentionResult,
    SmallStageTally,
    StageClosed,
    StageInput,
    StageTally,
    TaskCounts,
)
from workflows.shared.contracts import Contract
from workflows.shared.errors import RuleViolation

if TYPE_CHECKING:
    from activities.jobs.catalogue import Catalogue

RESULT_BYTES: Final = 100_000
"""Of the aggregated result of a stage, as JSON."""
JOB_RESULT_BYTES: Final = 1_000_000
"""Of the result that a job type makes of a whole job, as JSON."""


class StageClosing:
    """Aggregates stages and writes the rows of jobs.

    Args:
        ports: What activities of jobs share.
    """

    def __init__(self, ports: JobPorts) -> None:
        self._ports = ports

    @activity.defn(name="jobs.close_small_stage")
    @translate_failures
    async def close_small_stage(self, work: SmallStageTally) -> StageClosed:
        """Put the results of the only batch of a stage together, then close the stage.

        Raises:
            ApplicationError: As `jobs.close_stage`.
        """
        async with BoundedHeartbeater("aggregated the results of the stage"):
            await write_batch(self._ports, work.batch)
            return await self._closed(work)

    @activity.defn(name="jobs.close_stage")
    @translate_failures
    async def close_stage(self, work: StageTally) -> StageClosed:
        """Count the tasks of a stage, name those that failed, and aggregate its results.

        Tasks that were never begun are cancelled.

        Raises:
            ApplicationError: The job type refuses, finds more than a stage may, or its aggregation
                lost too many workers.
        """
        async with BoundedHeartbeater("aggregated the results of the stage"):
            return await self._closed(work)

    async def _closed(self, work: StageTally) -> StageClosed:
        order = work.order
        job_id, ref = order.job.job_id, order.ref
        tally = _Tally(order)

        async def own() -> AsyncIterator[FinishedTask]:
            async for each in self._ports.folders.whole_results(job_id, ref):
                yield each

        async for each in self._ports.folders.results(job_id, ref):
            tally.add(each)
        left = work.tasks - tally.counts.total
        if left:
            await self._ports.store.cancel_tasks(job_id, order.job.attempt, order.stage)
        result: JsonObject = {}
        if work.aggregate:
            job_type = self._ports.job_type(order.job)
            context = await self._ports.stage_context(order, own)
            result = await job_type.aggregate(order.definition, context)
            _refuse_long(f"the aggregated result of stage {order.stage}", result)
        await self._ports.folders.put_stage_result(job_id, ref, result, tally.failed)
        names = [_name(each) for each in tally.failed[:NAMED]]
        counts = tally.counts.plus(TaskCounts(total=left, cancelled=left))
        return StageClosed(counts=counts, failed=tuple(names))

    @activity.defn(name="jobs.make_result")
    @translate_failures
    async def make_result(self, recording: JobRecording) -> None:
        """Have the job type make the result of a job, which `jobs.record` reads.

        Apart from that, because the server repeats a local activity for ever whose worker crashes.

        Raises:
            ApplicationError: The job type refuses, finds more than a job may, or lost too many
                workers.
        """
        job = recording.job
        async with BoundedHeartbeater("made the result of the job"):
            result = await self._made(recording)
            _refuse_long("the result of the job", result, JOB_RESULT_BYTES)
            await self._ports.folders.put_job_result(job.job_id, job.attempt, result)

    @activity.defn(name="jobs.record")
    @translate_failures
    async def record(self, recording: JobRecording) -> JobRecorded | None:
        """Write the row of a job; one of an older attempt changes nothing.

        Returns:
            None in histories of earlier releases.
        """
        job, folders = recording.job, self._ports.folders
        results: dict[str, JsonObject] = {}
        failed: list[FailedTask] = []
        for ref in recording.stages:
            results[str(ref.stage)], of_stage = await folders.stage_end(job.job_id, ref)
            failed += of_stage
        await self._ports.store.put_job(
            JobRecord(
                job_id=job.job_id,
                job_type=job.definition.job_type,
                status=recording.status,
                stage=recording.stage,
                total_stages=job.definition.total_stages,
                parameters=job.parameters,
                stage_results=results,
                result_data=await self._result(recording, results),
                error_details=recording.reason and recording.reason[:1_500],
                created_at=recording.began_at,
                updated_at=datetime.now(UTC),
                attempt=job.attempt,
                version=job.definition.version,
                project=job.project,
                organisation_id=job.organisation_id,
                alias=job.alias,
                failed_tasks=tuple(failed[:FAILED_TASKS_LISTED]),
                failed_count=recording.failed_count,
            )
        )
        return JobRecorded(makes_result=self._makes_result(job))

    async def _result(
        self, recording: JobRecording, results: Mapping[str, JsonObject]
    ) -> JsonObject:
        job = recording.job
        if recording.status is not JobStatus.COMPLETED:
            return {}
        if not self._ports.job_type(job).has_own_result():
            return results.get(str(job.definition.total_stages), {})
        found = await self._ports.folders.job_result(job.job_id, job.attempt)
        # The end of a job that an earlier release began makes its result here.
        return await self._made(recording) if found is None else found

    async def _made(self, recording: JobRecording) -> JsonObject:
        job, folders = recording.job, self._ports.folders
        order = StageInput(job=job, stage=job.definition.total_stages, done=recording.stages)
        last = next((ref for ref in recording.stages if ref.stage == order.stage), None)

        async def previous() -> AsyncIterator[FinishedTask]:
            if last is not None:
                async for each in folders.whole_results(job.job_id, last):
                    yield each

        context = await self._ports.stage_context(order, previous)
        return await self._ports.job_type(job).result(context)

    def _makes_result(self, job: JobInput) -> bool:
        found = self._ports.types.get(job.definition.job_type)
        return found is not None and found.has_own_result()


class _Tally:
    """Counts the tasks of a stage."""

    def __init__(self, order: StageInput) -> None:
        self._order = order
        self._statuses = Counter[TaskStatus]()
        self.failed: list[FailedTask] = []

    @property
    def counts(self) -> TaskCounts:
        """What has become of them."""
        return TaskCounts(
            total=self._statuses.total(),
            completed=self._statuses[TaskStatus.COMPLETED],
            failed=self._statuses[TaskStatus.FAILED],
            cancelled=self._statuses[TaskStatus.CANCELLED],
        )

    def add(self, task: FinishedTask) -> None:
        """Count one more."""
        self._statuses[task.status] += 1
        if task.status is TaskStatus.FAILED and len(self.failed) < FAILED_TASKS_LISTED:
            stage = self._order.stage
            self.failed.append(
                FailedTask(
                    task_id=task_id(self._order.job.job_id, stage, task.index),
                    stage=stage,
                    task_index=task.index,
                    reason=task.error or "no reason given",
                )
            )


def _refuse_long(what: str, result: JsonObject, most: int = RESULT_BYTES) -> None:
    try:
        size = len(json.dumps(result, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise RuleViolation(f"{what} is not JSON: {error}") from error
    if size > most:
        raise RuleViolation(
            f"{what} has {size:,} bytes; {most:,} "
            "are the most: keep what is long in a blob, and its name in the result"
        )


def _name(failed: FailedTask) -> FailedName:
    return FailedName(task_id=failed.task_id[:120], reason=failed.reason[:300])


FOLDER: Final = "superseded"
KEEP_HOURS: Final = 168.0
"""That they stay, where a job does not say otherwise."""
_MOST: Final = 100_000


class SupersededFiles(Contract):
    """A note: files of a dataset that are of no further use from some moment on."""

    collection: str
    item: str
    """Of the dataset: a file that it uses again by then stays."""
    due: datetime
    uris: tuple[str, ...] = Field(max_length=_MOST)
    """`silver://name` or `gold://name`."""


async def supersede(
    resources: JobResources, collection: str, item: str, uris: Sequence[str], hours: float
) -> None:
    """Note files that are no longer of use; without a time of grace they are removed at once.

    Args:
        resources: Containers and catalogue.
        collection: Of the dataset.
        item: Its id.
        uris: The files.
        hours: That they stay.
    """
    if not uris:
        return
    due = datetime.now(UTC) + timedelta(hours=hours)
    note = SupersededFiles(collection=collection, item=item, due=due, uris=tuple(uris))
    if hours == 0:
        await remove(resources, note)
        return
    text = note.model_dump_json()
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    with scratch_folder(resources.scratch) as folder:
        path = folder / "note.json"
        path.write_text(text, encoding="utf-8")
        # The earliest come first in a list.
        await resources.silver.upload(path, f"{FOLDER}/{due:%Y-%m-%dT%H%M%S}-{digest}.json")


async def due_notes(
    silver: Blobs, folder: Path, now: datetime, most: int
) -> AsyncIterator[tuple[str, SupersededFiles]]:
    """Notes whose time has come, each with the name of its blob; the earliest first."""
    path = folder / "note.json"
    for blob in await silver.list(f"{FOLDER}/", most):
        if blob.name.count("/") > 1:
            # Of a folder that is not ours.
            continue
        await silver.download(blob.name, path)
        note = SupersededFiles.model_validate_json(path.read_bytes())
        path.unlink()
        if note.due > now:
            return
        yield blob.name, note


async def remove(
    resources: JobResources, note: SupersededFiles, *, dry_run: bool = False
) -> Sequence[str]:
    """Remove the files of a note that the dataset does not use; those that were removed."""
    used = await used_by(resources.catalogue, note.collection, note.item)
    old = [uri for uri in note.uris if uri not in used]
    for uri in () if dry_run else old:
        await delete(resources, uri)
    return old


async def delete(resources: JobResources, uri: str) -> None:
    """Remove a file; one that is gone already is not an error."""
    tier, _, name = uri.partition("://")
    container = {"silver": resources.silver, "gold": resources.gold}[tier]
    await container.delete(name)


async def used_by(catalogue: "Catalogue", collection: str, item: str) -> Collection[str]:
    """Files of a dataset as it is catalogued now, and of the items that it links to."""
    whole = await catalogue.item(collection, item)
    if whole is None:
        return ()
    items = [whole]
    for link in whole.get("links", ()):
        if link.get("rel") == "item":
            found = await catalogue.item(collection, str(link["href"]).removeprefix("./"))
            items += [] if found is None else [found]
    return {uri for each in items for uri in files_of(each)}


def files_of(item: Mapping[str, Any]) -> Sequence[str]:
    """Files of an item in silver and gold."""
    hrefs = [str(each["href"]) for each in item.get("assets", {}).values()]
    return [href for href in hrefs if href.startswith(("silver://", "gold://"))]


_PAGE: Final = 1_000
_ITEMS: Final = 500


@dataclass(frozen=True)
class JobRetentionSteps:
    """Removes what is no longer kept.

    Args:
        ports: With containers and catalogue.
        blobs: The container with plans and results of stages.
        leftovers: Rows of jobs that have ended.
        keep: How long, from the last change of a job.
    """

    ports: JobPorts
    blobs: Blobs
    leftovers: SqlJobLeftovers
    keep: timedelta

    @property
    def resources(self) -> JobResources:
        """Containers and catalogue."""
        return self.ports.resources

    @activity.defn(name="jobs.remove_superseded")
    @translate_failures
    async def remove_superseded(self, order: JobRetentionInput) -> JobRetentionResult:
        """Remove files that newer datasets have replaced, after their time of grace.

        The note of each file goes last: a second run continues with the rest.
        """
        silver, result = self.resources.silver, JobRetentionResult()
        async with Heartbeater() as heart:
            with scratch_folder(self.resources.scratch) as folder:
                now = datetime.now(UTC)
                async for name, note in due_notes(silver, folder, now, order.most):
                    old = await remove(self.resources, note, dry_run=order.dry_run)
                    if not order.dry_run:
                        await silver.delete(name)
                    result = _with_files(result, old)
                    heart.beat(result)
        return result

    @activity.defn(name="jobs.remove_expired")
    @translate_failures
    async def remove_expired(self, order: JobRetentionInput) -> JobRetentionResult:
        """Remove tasks, plans, results, webhooks and leftover files of jobs that ended long ago.

        The record of a job stays as long as the catalogue has items of it: the same request is
        still answered from it, and a new attempt gets a new number. Rows go last.
        """
        before, result = datetime.now(UTC) - self.keep, JobRetentionResult()
        async with Heartbeater() as heart:
            for job_id in await self.leftovers.expired(before, order.most):
                used = await self._used(job_id)
                files = await self._files(job_id, used)
                if not order.dry_run:
                    await self._remove(job_id, files, keep_record=bool(used))
                done = JobRetentionResult(jobs=1, kept=int(bool(used)), named=(f"job/{job_id}",))
                result = _with_files(result.plus(done), files)
                heart.beat(result)
            if not order.dry_run:
                await self.leftovers.remove_webhooks(before)
        return result

    async def _used(self, job_id: str) -> Collection[str]:
        """Files of items that a job has catalogued."""
        same = {"op": "=", "args": [{"property": "docflow:job_id"}, job_id]}
        used: set[str] = set()
        token: str | None = None
        while True:
            query = CatalogueQuery(filter=same, limit=_ITEMS, token=token)
            page = await self.resources.catalogue.search(query)
            for item in page.items:
                used.update((f"item:{item['id']}", *files_of(item)))
            if page.next is None:
                return used
            token = page.next

    async def _files(self, job_id: str, used: Collection[str]) -> list[str]:
        """Files in silver that the tasks of a job have left and no item of it uses."""
        names = [
            name
            for folder in (f"{job_id}/", f"vectors/{job_id}/")
            async for name in _names(self.resources.silver, folder)
        ]
        return [uri for uri in (f"silver://{name}" for name in names) if uri not in used]

    async def _remove(self, job_id: str, files: list[str], *, keep_record: bool) -> None:
        for uri in files:
            await delete(self.resources, uri)
        async for name in _names(self.blobs, f"jobs/{job_id}/"):
            await self.blobs.delete(name)
        await self.leftovers.remove(job_id, keep_record=keep_record)


async def _names(blobs: Blobs, folder: str) -> AsyncIterator[str]:
    """All blobs of a folder; they may be deleted meanwhile."""
    most = _PAGE
    while len(found := await blobs.list(folder, most)) == most:
        most *= 10
    for each in found:
        yield each.name


def _with_files(result: JobRetentionResult, uris: Sequence[str]) -> JobRetentionResult:
    return result.plus(
        JobRetentionResult(files=len(uris), named=tuple(uri[:400] for uri in uris[:NAMED_REMOVED]))
    )
