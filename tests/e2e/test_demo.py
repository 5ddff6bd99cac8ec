"""What a new user does first: the demo, to its end and interrupted."""

import asyncio
import contextlib
import json
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import psutil
import pytest
import rasterio
from rasterio.errors import NotGeoreferencedWarning

from activities.jobs.catalogue import Catalogue
from activities.jobs.ports import CatalogueQuery
from activities.jobs.store import SqlJobStore
from adapters.database.engine import open_database
from stack.children import free_port
from stack.clamd import PLANTED_NAME
from stack.demo.transfers.site import missing_parts
from stack.postgres import postgres_at, postgres_part
from workflows.jobs.records import JobStatus
from workflows.shared.runs import Visible

ROOT = Path(__file__).parents[2]


async def _start(folder: Path) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.shared.cli", "demo", "--folder", str(folder)),
        cwd=ROOT,
        stdout=PIPE,
        stderr=PIPE,
    )


async def _left(started: list[psutil.Process]) -> list[psutil.Process]:
    _, alive = await asyncio.to_thread(psutil.wait_procs, started, timeout=30)
    return alive


def _linked(output: str, what: str, document: str = "scene.tif") -> Path:
    """The file that a line below the table links to."""
    [url] = re.findall(rf"^{what} of {re.escape(document)}: (\S+)$", output, re.MULTILINE)
    assert urlsplit(url).scheme == "file"
    return Path(unquote(urlsplit(url).path))


async def _scene_is_processed(folder: Path, output: str) -> None:
    """By what the demo has said, and by what it has left behind."""
    cells = _row(output, "scene.tif", "process_raster")
    assert cells[2:4] == ["completed", "1 created"]
    assert float(cells[-1]) > 0
    # Its Web UI is gone by now.
    assert "/namespaces/" not in output
    port, password = free_port(), (folder / "postgres.key").read_text()
    async with postgres_part(folder, port, password).ready():
        url = postgres_at(port, password)
        item = json.loads(_linked(output, "STAC item").read_text())
        search = CatalogueQuery(
            bbox=tuple(item["bbox"]), datetime="2024-06-21T00:00:00Z/2024-06-22T00:00:00Z"
        )
        async with open_database(url) as database:
            [job] = await SqlJobStore(database).jobs(Visible((), others=True), limit=2)
            found = await Catalogue(database).search(search)
        assert (job.job_type, job.status) == ("process_raster", JobStatus.COMPLETED)
    assert [each["id"] for each in found.items] == [item["id"]]
    opening = pytest.warns(NotGeoreferencedWarning)
    with opening, rasterio.open(_linked(output, "preview")) as preview:
        pixels = preview.read()
        assert preview.driver == "PNG"
    assert np.ptp(pixels[:3]) > 0


def _row(output: str, document: str, kind: str) -> list[str]:
    """Cells of the table."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in output.splitlines()]
    [found] = [cells for cells in rows if cells[:2] == [document, kind]]
    return found


def _files_are_carried(output: str) -> None:
    """Or left out with what is missing for it, where this machine has not all that it takes."""
    if lacking := missing_parts():
        assert f"; {'; '.join(lacking)}" in output
        return
    assert _row(output, "materials_de.csv", "transfer")[2] == "succeeded"
    assert _row(output, "infected-crew_trades.tsv", "transfer")[2] == "quarantined"
    [said] = re.findall(r"^infected-crew_trades\.tsv is in quarantine: (.+)$", output, re.MULTILINE)
    assert PLANTED_NAME in said
    receipt = json.loads(_linked(output, "receipt", "materials_de.csv").read_text())
    actions = ["ReadFile", "Decrypt", "Scan", "WriteFile", "FireEvent"]
    assert [step["action"] for step in receipt["steps"]] == actions


async def test_the_demo_ends_as_expected_and_leaves_nothing_behind(open_folder: Path) -> None:
    demo = await _start(open_folder / "demo")
    seen: dict[int, psutil.Process] = {}
    ended = asyncio.create_task(demo.communicate())
    async with asyncio.timeout(300):
        while not ended.done():
            # It may end between the two looks.
            with contextlib.suppress(psutil.NoSuchProcess):
                children = psutil.Process(demo.pid).children(recursive=True)
                seen |= {child.pid: child for child in children}
            await asyncio.sleep(0.1)
        output, errors = await ended
    assert demo.returncode == 0, (output + errors).decode()[-3000:]
    assert "documents ended as expected" in output.decode()
    for poison in ("cut-off.pdf", "locked.docx"):
        assert f"{poison} was not loaded: " in output.decode()
    await _scene_is_processed(open_folder / "demo", output.decode())
    _files_are_carried(output.decode())
    assert not (open_folder / "demo" / "ministack").exists()
    assert len(seen) >= 3
    assert await _left(list(seen.values())) == []


async def test_an_interrupted_demo_leaves_nothing_behind(open_folder: Path) -> None:
    demo = await _start(open_folder / "interrupted")
    ended = asyncio.create_task(demo.communicate())
    started: list[psutil.Process] = []
    try:
        async with asyncio.timeout(120):
            while not (open_folder / "interrupted" / "gateway.log").exists():
                assert not ended.done(), "it ended before its gateway began"
                await asyncio.sleep(0.05)
        started = psutil.Process(demo.pid).children(recursive=True)
        assert len(started) >= 3
        demo.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(asyncio.shield(ended), 60)
    finally:
        if demo.returncode is None:
            # Its children die with it; the next demo needs its ports.
            demo.kill()
        await ended
    assert demo.returncode == 130
    assert b"Traceback" not in errors
    assert await _left(started) == []
