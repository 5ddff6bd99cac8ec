"""`jobs.remove_superseded` and `jobs.remove_expired`: what is no longer kept of jobs."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.jobs.api import JobResources
from activities.jobs.contexts import JobPorts
from activities.jobs.superseded import delete, due_notes, files_of, remove
from activities.scratch import scratch_folder
from adapters.ports import Blobs, Denied
from adapters.ports.catalogue import CatalogueQuery
from adapters.ports.jobs import JobLeftovers
from contracts.jobs import NAMED_REMOVED, JobRetentionOrder, JobRetentionResult

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
    leftovers: JobLeftovers
    keep: timedelta

    @property
    def resources(self) -> JobResources:
        """Containers and catalogue."""
        return self.ports.resources

    @activity.defn(name="jobs.remove_superseded")
    @translate_failures
    async def remove_superseded(self, order: JobRetentionOrder) -> JobRetentionResult:
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
    async def remove_expired(self, order: JobRetentionOrder) -> JobRetentionResult:
        """Remove tasks, plans, results, webhooks and leftover files of jobs that ended long ago.

        The record of a job stays as long as the catalogue has items of it: the same request is
        still answered from it, and a new attempt gets a new number. Rows go last.
        """
        before, result = datetime.now(UTC) - self.keep, JobRetentionResult()
        async with Heartbeater() as heart:
            for job_id in await self.leftovers.expired(before, order.most):
                used = await self._used(job_id)
                files = [] if used is None else await self._files(job_id, used)
                is_kept = used is None or bool(used)
                if not order.dry_run:
                    await self._remove(job_id, files, keep_record=is_kept)
                done = JobRetentionResult(jobs=1, kept=int(is_kept), named=(f"job/{job_id}",))
                result = _with_files(result.plus(done), files)
                heart.beat(result)
            if not order.dry_run:
                await self.leftovers.remove_webhooks(before)
        return result

    async def _used(self, job_id: str) -> Collection[str] | None:
        """Files of items that a job has catalogued; None: there is no catalogue to ask."""
        same = {"op": "=", "args": [{"property": "docflow:job_id"}, job_id]}
        used: set[str] = set()
        token: str | None = None
        while True:
            query = CatalogueQuery(filter=same, limit=_ITEMS, token=token)
            try:
                page = await self.resources.catalogue.search(query)
            except Denied:
                return None
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
