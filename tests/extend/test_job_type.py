"""Packages that add types: installed, listed, and named if they are broken."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from os import environ
from pathlib import Path

import pytest

from tests.support.fresh_database import fresh_url
from tests.support.processes import ROOT


def installed_at(*sites: Path, **settings: str) -> Mapping[str, str]:
    """The environment of a process that finds packages there."""
    kept = {name: environ[name] for name in ("PATH", "HOME") if name in environ}
    return {**kept, "PYTHONPATH": ":".join(map(str, (ROOT, *sites))), **settings}


async def planned(environment: Mapping[str, str]) -> bytes:
    """What `docflow type apply --dry-run` says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.shared.cli", "type", "apply", "--dry-run"),
        cwd=ROOT,
        env=environment,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, errors = await process.communicate()
    return out + errors


async def test_types_of_a_package_are_planned(tmp_path: Path, site: Path) -> None:
    said = await planned(installed_at(site, DATABASE_URL=fresh_url()))
    assert b"CREATE TABLE docflow_types.spare_parts" in said, said.decode()
    folder = tmp_path / "types"
    folder.mkdir()
    text = "name: spare_parts\ntitle: Mine\nkey: [no]\nfields:\n  no: {required: true}\n"
    (folder / "mine.yaml").write_text(text)
    given = {"DATABASE_URL": fresh_url(), "DOCFLOW_TYPES": str(folder)}
    said = await planned(installed_at(site, **given))
    taken = b"mine.yaml: spare_parts.yaml of parts_extension.types declares the type spare_parts"
    assert taken in b" ".join(said.split()), said.decode()


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
print(json.dumps([dict(found.packages), list(found.problems)]))
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
        env=installed_at(site, tmp_path),
        stdout=PIPE,
    )
    listed, problems = json.loads((await process.communicate())[0])
    assert listed["hello_world"] == "docflow" and listed["count_parts"] == "parts-extension"
    assert any(said in each for each in problems)
