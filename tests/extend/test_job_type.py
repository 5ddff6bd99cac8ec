"""A job type of a package: installed, listed, run, and restarted from the stage that failed."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

import pytest

from adapters.database.schema import upgrade
from stack.temporal import temporal_server
from tests.support.fresh_database import fresh_url
from tests.support.gateway import logged_in
from tests.support.processes import ROOT, says


@dataclass(frozen=True)
class Docflow:
    """`docflow` where the package is installed."""

    settings: Mapping[str, str]

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workers.shared.cli", *arguments),
            cwd=ROOT,
            env=self.settings,
            stdout=PIPE,
            stderr=PIPE,
        )

    async def json(self, *arguments: str) -> tuple[Any, str]:
        """What a command prints for programs, and what it says beside."""
        process = await self.start(*arguments, "-o", "json")
        out, errors = await process.communicate()
        # Not by exit code: a thread of the SDK can abort an interpreter that is ending.
        return json.loads(out) if out else pytest.fail(errors.decode()), errors.decode()


def installed_at(*sites: Path, **settings: str) -> Docflow:
    kept = {name: environ[name] for name in ("PATH", "HOME") if name in environ}
    return Docflow({**kept, "PYTHONPATH": ":".join(map(str, (ROOT, *sites))), **settings})


@asynccontextmanager
async def running(folder: Path, site: Path) -> AsyncGenerator[Docflow]:
    async with temporal_server(folder / "temporal", ui=False, in_memory=True) as temporal:
        docflow = installed_at(
            site,
            TEMPORAL_ADDRESS=temporal.address,
            DATABASE_URL=fresh_url(),
            DOCFLOW_BLOB_FOLDER=str(folder / "blobs"),
            DOCFLOW_SCRATCH=str(folder / "scratch"),
            DOCFLOW_BRONZE_CONTAINER="bronze",
        )
        await upgrade(docflow.settings["DATABASE_URL"])
        for container in ("documents", "bronze", "silver", "gold"):
            (folder / "blobs" / container).mkdir(parents=True)
        worker = await docflow.start("worker", "jobs")
        settings = dict(docflow.settings)
        try:
            await says(worker, b"working on jobs")
            async with logged_in(folder, settings):
                yield Docflow(settings)
        finally:
            worker.terminate()
            await worker.communicate()


async def test_types_of_a_package_are_planned(tmp_path: Path, site: Path) -> None:
    process = await installed_at(site, DATABASE_URL=fresh_url()).start("type", "plan")
    out, errors = await process.communicate()
    assert b"CREATE TABLE docflow_types.spare_parts" in out, errors.decode()
    folder = tmp_path / "types"
    folder.mkdir()
    text = "name: spare_parts\ntitle: Mine\nkey: [no]\nfields:\n  no: {required: true}\n"
    (folder / "mine.yaml").write_text(text)
    given = {"DATABASE_URL": fresh_url(), "DOCFLOW_TYPES": str(folder)}
    process = await installed_at(site, **given).start("type", "plan")
    out, errors = await process.communicate()
    said = b"mine.yaml: spare_parts.yaml of parts_extension.types declares the type spare_parts"
    assert said in b" ".join((out + errors).split()), errors.decode()


async def test_a_restart_keeps_good_tasks_and_redoes_others(tmp_path: Path, site: Path) -> None:
    prices = tmp_path / "prices"
    prices.write_text("bolts=2\n")
    async with running(tmp_path, site) as docflow:
        [listed] = [
            each for each in (await docflow.json("job", "types"))[0] if each["package"] != "docflow"
        ]
        assert listed["job_type"] == "count_parts" and listed["package"] == "parts-extension"
        given = ("--param", 'lists=["bolts", "nuts"]', "--param", f"prices={prices}")
        failed, _ = await docflow.json("job", "submit", "count_parts", *given)
        job = failed["job_id"]
        assert (failed["status"], failed["stage"]) == ("FAILED", 2)
        prices.write_text("bolts=200\nnuts=3\n")
        await docflow.json("job", "restart", job)
        done, _ = await docflow.json("job", "watch", job)
        tasks, _ = await docflow.json("job", "tasks", job)
    # Bolts keep their price of before.
    assert (done["status"], done["result_data"]) == ("COMPLETED", {"price": 5 * 2 + 4 * 3})
    assert {each["task_id"].partition("-")[2]: each["kept"] for each in tasks} == {
        "1-bolts": True,
        "1-nuts": True,
        "2-bolts": True,
        "2-nuts": False,
    }


BROKEN = {
    "does not load": (
        "import nowhere\n",
        "the package broken is not used: its entry point 'broken' of docflow.jobs (broken:Broken) "
        "fails with ModuleNotFoundError: No module named 'nowhere'; repair or uninstall it",
    ),
    "is no job type": (
        "class Broken: ...\n",
        "broken:Broken is no class that derives from JobType and has @job_type",
    ),
    "takes a built-in name": (
        "from activities.jobs.types.hello_world import HelloWorld as Broken\n",
        "the package broken brings 'hello_world' of docflow.jobs, which docflow has already; "
        "rename one of them",
    ),
}


INSTALLED = """
import json
from activities.jobs.api import JobTypes
found = JobTypes.installed()
print(json.dumps([list(found), list(found.problems)]))
"""


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_package_is_named_and_others_work(
    tmp_path: Path, site: Path, case: str
) -> None:
    source, said = BROKEN[case]
    (tmp_path / "broken.py").write_text(source)
    metadata = tmp_path / "broken-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[docflow.jobs]\nbroken = broken:Broken\n")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", INSTALLED),
        cwd=ROOT,
        env=installed_at(site, tmp_path).settings,
        stdout=PIPE,
    )
    listed, problems = json.loads((await process.communicate())[0])
    assert {"hello_world", "count_parts"} <= set(listed)
    assert any(said in each for each in problems)
