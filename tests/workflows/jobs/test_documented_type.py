"""The job type of `docs/jobs.md`, written down as it stands there, found and run."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.jobs.api import JobTypes
from tests.support.jobs.installation import job_installation, order_of
from workflows.jobs.records import JobStatus

DOCS = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()


def block(language: str, holding: str) -> str:
    """A block of code of the document."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
    [found] = [each for each in blocks if holding in each]
    return found


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobTypes]:
    """The types of a process in which the package is installed."""
    site = tmp_path / "site"
    (site / "my_package").mkdir(parents=True)
    (site / "my_package" / "__init__.py").touch()
    (site / "my_package" / "count_words.py").write_text(block("python", "class CountWords"))
    project = tomllib.loads(block("toml", "docflow.jobs"))["project"]
    metadata = site / f"my_package-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {project['name']}\nVersion: 1.0\n")
    points = project["entry-points"]["docflow.jobs"].items()
    lines = "".join(f"{name} = {target}\n" for name, target in points)
    (metadata / "entry_points.txt").write_text(f"[docflow.jobs]\n{lines}")
    monkeypatch.syspath_prepend(str(site))
    yield JobTypes.installed()
    for name in [name for name in sys.modules if name.startswith("my_package")]:
        del sys.modules[name]


@pytest.mark.cached(alone=True)
async def test_the_documented_type_is_found_and_runs(
    server: Any, run_worker: Any, tmp_path: Path, installed: JobTypes
) -> None:
    kind = type(installed["count_words"])
    order = order_of(kind, {"files": ["a.txt", "b.txt", "gone.txt"]})
    async with job_installation(server.client, tmp_path, run_worker, kind) as jobs:
        for name, text in (("a.txt", "one two"), ("b.txt", "three")):
            path = tmp_path / name
            path.write_text(text)
            await jobs.opened.ports.resources.bronze.upload(path, name)
        result = await jobs.run(order)
        record = await jobs.record(order)
    assert (result.status, result.failed_count) == (JobStatus.COMPLETED, 1)
    assert record.result_data == {"words": 3}
