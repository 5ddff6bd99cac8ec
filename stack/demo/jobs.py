"""The demo's scene: made from a seed, put into bronze, processed by a job, found by a search."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from adapters.ports.blobs import Blobs
from stack.demo.api import ask
from workers.jobs.runs import ENDED
from workers.jobs.settings import TierSettings
from workers.shared.settings.common import BlobSettings
from workers.shared.tables import open_blobs
from workflows.jobs.records import JobOutputs, JobStatus
from workflows.shared.contracts import Contract

JOB_TYPE: Final = "process_raster"
FILE: Final = "scene.tif"
_LOOK_SECONDS: Final = 0.1
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class Scene(Contract):
    """What the script of the samples makes."""

    size: int
    """Pixels of a side."""
    seed: int


@dataclass(frozen=True)
class SceneResult:
    """How the job has ended, and what it has left for a person to open."""

    datasets: int
    preview: Path
    """A PNG."""
    item: Path
    """The STAC item, as the gateway serves it."""


class SceneFailed(Exception):
    """The scene did not become what it should; the message says how."""


class SceneJob:
    """Processes one scene.

    Args:
        api: Client of the gateway, with a token.
        environment: Settings of the stack.
        folder: Takes the scene, its preview and its item.
        show: Called with each status.
    """

    def __init__(
        self,
        api: httpx.AsyncClient,
        environment: Mapping[str, str],
        folder: Path,
        show: Callable[[str], None],
    ) -> None:
        self._api = api
        self._folder = folder
        self._show = show
        self._bronze, self._silver = _tiers(environment)
        self.job_id: str | None = None
        """Once it is submitted."""

    async def make(self, script: Path, scene: Scene) -> None:
        """Make the scene and put it into bronze.

        Raises:
            SceneFailed: The script fails.
        """
        path = self._folder / FILE
        # GDAL stays out of this process.
        making = await asyncio.create_subprocess_exec(
            *(sys.executable, script, path, "--size", str(scene.size), "--seed", str(scene.seed)),
            stderr=PIPE,
        )
        try:
            _, errors = await making.communicate()
        finally:
            if making.returncode is None:
                making.kill()
                await making.wait()
        if making.returncode:
            raise SceneFailed(f"{script} failed: {errors.decode(errors='replace')[-500:]}")
        await self._bronze.upload(path, FILE)

    async def submit(self, project: str) -> None:
        """Ask for the job.

        Raises:
            ApiError: It is refused.
        """
        asked = {"job_type": JOB_TYPE, "parameters": {"source": FILE}, "project": project}
        self.job_id = str((await ask(self._api, "POST", "/api/jobs", json=asked))["job_id"])

    async def finish(self) -> SceneResult:
        """Follow the job to its end, and fetch what it has made.

        Raises:
            ApiError: The gateway refuses a look.
            SceneFailed: It has not completed, its item is not found, or its preview is not a PNG.
        """
        job = await self._ended()
        if job["status"] != JobStatus.COMPLETED:
            raise SceneFailed(f"the job ended {job['status'].lower()}: {job['error_details']}")
        result = job["result_data"]
        return SceneResult(
            datasets=result["datasets"],
            preview=await self._preview(result),
            item=await self._item(result["items"]),
        )

    async def _ended(self) -> Any:
        while True:
            job = await ask(self._api, "GET", f"/api/jobs/{self.job_id}")
            self._show(job["status"].lower())
            if job["status"] in ENDED:
                return job
            await asyncio.sleep(_LOOK_SECONDS)

    async def _preview(self, result: dict[str, Any]) -> Path:
        uri, path = JobOutputs.of(result).preview, self._folder / "scene.png"
        if uri is None:
            raise SceneFailed("the job has made no preview")
        await self._silver.download(uri.partition("://")[2], path)
        if not path.read_bytes().startswith(_PNG):
            raise SceneFailed(f"the preview {uri} is not a PNG")
        return path

    async def _item(self, made: Sequence[Mapping[str, Any]]) -> Path:
        """Search for what the job says that it has catalogued."""
        wanted = {"collections": made[0]["collection"], "ids": made[0]["item"]} if made else {}
        found = await ask(self._api, "GET", "/api/stac/search", params=wanted)
        if not made or len(found["features"]) != 1:
            raise SceneFailed("a search does not find the STAC item of the scene")
        path = self._folder / "scene.json"
        path.write_text(json.dumps(found["features"][0], indent=1))
        return path


def _tiers(environment: Mapping[str, str]) -> tuple[Blobs, Blobs]:
    """Bronze and silver."""
    bronze, silver, _ = TierSettings.read(environment).of(BlobSettings.read(environment))
    return open_blobs(bronze), open_blobs(silver)
