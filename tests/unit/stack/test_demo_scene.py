"""What the demo says of a scene that does not become what it should."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from stack.demo.api import ApiError
from stack.demo.jobs import Scene, SceneFailed, SceneJob

ITEMS = [{"collection": "rasters", "item": "scene"}]
SILVER = {"outputs": {"preview": "silver://scene.png"}}


def a_job(folder: Path, **job: Any) -> SceneJob:
    """A job over a gateway that has ended it like this, and whose catalogue is empty."""
    answers: Mapping[str, Any] = {
        "/api/jobs/None": {"error_details": None, "result_data": {}, **job},
        "/api/stac/search": {"features": []},
    }

    def answer(request: httpx.Request) -> httpx.Response:
        found = answers.get(request.url.path)
        return httpx.Response(404 if found is None else 200, json=found)

    gateway = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://gateway")
    environment = {"DOCFLOW_BLOB_FOLDER": str(folder), "AZURE_STORAGE_CONTAINER_NAME": "documents"}
    (folder / "silver").mkdir()
    (folder / "bronze").mkdir()
    return SceneJob(gateway, environment, folder, lambda state: None)


@pytest.mark.parametrize(
    ("preview", "job", "says"),
    [
        (b"", {"status": "FAILED", "error_details": "no time"}, "the job ended failed: no time"),
        (b"", {"status": "COMPLETED", "result_data": {"datasets": 0}}, "has made no preview"),
        (
            b"GIF89a",
            {"status": "COMPLETED", "result_data": {"datasets": 1, **SILVER}},
            "the preview silver://scene.png is not a PNG",
        ),
        (
            b"\x89PNG\r\n\x1a\n",
            {"status": "COMPLETED", "result_data": {"datasets": 1, "items": ITEMS, **SILVER}},
            "a search does not find the STAC item",
        ),
    ],
)
async def test_a_job_that_went_wrong(
    tmp_path: Path, preview: bytes, job: Mapping[str, Any], says: str
) -> None:
    scene = a_job(tmp_path, **job)
    (tmp_path / "silver" / "scene.png").write_bytes(preview)
    with pytest.raises(SceneFailed, match=says):
        await scene.finish()


async def test_a_job_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="POST /api/jobs answered 404"):
        await a_job(tmp_path, status="FAILED").submit("demo")


async def test_a_script_that_fails(tmp_path: Path) -> None:
    script = tmp_path / "make.py"
    script.write_text("raise SystemExit('no numbers here')")
    with pytest.raises(SceneFailed, match=r"make\.py failed: no numbers here"):
        await a_job(tmp_path, status="FAILED").make(script, Scene(size=8, seed=1))
