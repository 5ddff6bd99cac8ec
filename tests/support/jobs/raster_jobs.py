"""`process_raster` from stage to stage, without Temporal: real files, blobs in memory."""

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from activities.jobs.api import JobResources, StageContext, TaskContext, TaskDone
from activities.jobs.catalogue import Catalogue
from activities.jobs.types.process_raster import ProcessRaster
from adapters.database.engine import open_database
from adapters.files.rasters.pool import FileRasters
from adapters.ports.errors import PortError, Unavailable
from adapters.ports.spatial import Rasters
from tests.support.memory.blobs import MemoryBlobs
from workflows.jobs.rasters import RasterParameters
from workflows.jobs.records import InputIdentity, JsonObject, TaskStatus
from workflows.jobs.runs import FinishedTask, PlannedTask, job_id
from workflows.shared.errors import InvalidDocument, RuleViolation

DAY = {"datetime": "2024-05-31"}
"""The parameters of most jobs."""


@dataclass
class RasterJobs:
    """Runs jobs; one object for several of them."""

    folder: Path
    resources: JobResources
    kind: ProcessRaster = field(default_factory=ProcessRaster)
    finished: dict[int, list[FinishedTask]] = field(default_factory=dict)
    results: dict[int, JsonObject] = field(default_factory=dict)
    job_id: str = ""
    retries: int = 0
    """Of a task whose process was lost."""

    async def put(self, path: Path, name: str | None = None) -> str:
        """Place a file in the bronze container."""
        name = name or path.name
        await self.resources.bronze.upload(path, name)
        return name

    async def run(self, *names: str, attempt: int = 1, **parameters: Any) -> JsonObject:
        """Run a job to its end; the result of its last stage.

        `limit` makes it a trial run. A task that fails ends the job only when no other is left, as
        the stages say.
        """
        listed = parameters.pop("listed", names)
        limit = parameters.pop("limit", None)
        given = RasterParameters.model_validate(
            {"source": names[0] if len(names) == 1 else names, **parameters}
        )
        inputs = [await self._identity(name) for name in listed]
        self.finished, self.results = {}, {}
        self.job_id = job_id(self.kind.definition, given.model_dump(mode="json"), inputs)
        for stage in self.kind.definition.stages:
            number = stage.stage_number
            context = StageContext(
                self.job_id,
                attempt,
                given,
                inputs,
                self._previous(number - 1),
                self.results,
                self.resources,
            )
            planned = [each async for each in self.kind.plan(stage, context)][:limit]
            before = {each.index: each for each in self.finished.get(number - 1, [])}
            self.finished[number] = [
                await self._task(stage, given, inputs, each, at, before, attempt)
                for at, each in enumerate(planned)
            ]
            own = StageContext(
                self.job_id,
                attempt,
                given,
                inputs,
                self._previous(number),
                self.results,
                self.resources,
            )
            self.results[number] = await self.kind.aggregate(stage, own)
        return self.results[4]

    def errors(self) -> list[str]:
        """Of all tasks that failed."""
        return [
            each.error
            for stage in self.finished.values()
            for each in stage
            if each.error is not None
        ]

    def _previous(self, number: int) -> Any:
        async def previous() -> AsyncIterator[FinishedTask]:
            for each in self.finished.get(number, []):
                yield each

        return previous

    async def _identity(self, name: str) -> InputIdentity:
        blob = await self.resources.bronze.stat(name)
        return InputIdentity(uri=f"bronze://{name}", size=blob.size, etag=blob.etag)

    async def _task(
        self,
        stage: Any,
        given: RasterParameters,
        inputs: Sequence[InputIdentity],
        planned: PlannedTask,
        ordinal: int,
        before: dict[str, FinishedTask],
        attempt: int,
    ) -> FinishedTask:
        folder = self.folder / f"{attempt}-{stage.stage_number}-{planned.index}"
        folder.mkdir(parents=True, exist_ok=True)
        context = TaskContext(
            job_id=self.job_id,
            attempt=attempt,
            stage=stage.stage_number,
            index=planned.index,
            parameters=given,
            task=planned.parameters,
            inputs=inputs,
            predecessor=before.get(planned.index),
            stage_results=self.results,
            resources=self.resources,
            make_folder=lambda: folder,
            progress=lambda share, said: None,
        )
        function = getattr(self.kind, self.kind.task_functions[stage.task_type])
        known = {"index": planned.index, "ordinal": ordinal, "parameters": planned.parameters}
        try:
            done = await self._retried(function, context)
        except (PortError, RuleViolation, InvalidDocument) as error:
            return FinishedTask(**known, status=TaskStatus.FAILED, error=str(error)[:1_500])
        return FinishedTask(
            **known,
            status=TaskStatus.COMPLETED,
            result=done.result,
            next_stage_params=done.next_stage_params,
        )

    async def _retried(self, function: Any, context: TaskContext[Any]) -> TaskDone:
        """As often as a stage does it, and more: a lost process is not the task's doing."""
        for _ in range(self.retries):
            try:
                return await function(context)
            except Unavailable:
                shutil.rmtree(context.folder)
                context.folder.mkdir()
        return await function(context)

    async def file(self, uri: str) -> Path:
        """A published file."""
        name = uri.removeprefix("silver://")
        path = self.folder / name.replace("/", "_")[-150:]
        await self.resources.silver.download(name, path)
        return path


@asynccontextmanager
async def raster_jobs(folder: Path, rasters: FileRasters, url: str) -> AsyncIterator[RasterJobs]:
    """Jobs over an empty catalogue.

    Args:
        folder: For everything.
        rasters: The real reader.
        url: Of an empty database.
    """
    async with open_database(url) as database:
        resources = JobResources(
            bronze=MemoryBlobs(),
            silver=MemoryBlobs(),
            gold=MemoryBlobs(),
            catalogue=Catalogue(database),
            scratch=folder / "scratch",
            more={Rasters: rasters},
        )
        yield RasterJobs(folder, resources)


async def processed(jobs: RasterJobs, path: Path, **parameters: Any) -> tuple[Any, Path]:
    """The item of a raster, and its file."""
    name = await jobs.put(path)
    result = await jobs.run(name, **{**DAY, **parameters})
    item = await jobs.resources.catalogue.item("rasters", result["items"][0]["item"])
    assert item is not None
    return item, await jobs.file(item["assets"]["data"]["href"])


async def refused(jobs: RasterJobs, path: Path, **parameters: Any) -> str:
    """Why a raster is refused for good."""
    name = await jobs.put(path)
    with pytest.raises(InvalidDocument) as failed:
        await jobs.run(name, **{**DAY, **parameters})
    assert await jobs.resources.catalogue.item("rasters", path.stem) is None
    return str(failed.value)
