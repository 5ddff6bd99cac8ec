"""The stack that a developer keeps running."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]


async def test_a_killed_worker_is_started_again_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    stack = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.cli", "stack", "up", "--folder", str(folder)),
        cwd=ROOT,
        stdout=PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert stack.stdout is not None
    try:
        async with asyncio.timeout(60):
            while b"running until" not in await stack.stdout.readline():
                pass
        (worker,) = (
            child for child in psutil.Process(stack.pid).children() if "worker" in child.cmdline()
        )
        worker.kill()
        async with asyncio.timeout(60):
            assert b"the worker ended with -9" in await stack.stdout.readline()
        settings = dict(
            line.removeprefix("export ").replace("'", "").split("=", 1)
            for line in (folder / "env").read_text().splitlines()
        )
        submit = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workers.cli", "submit", "imports", "samples/equipment.csv"),
            *("--type", "equipment", "--project", "P1"),
            cwd=ROOT,
            stdout=PIPE,
            env={**os.environ, **settings},
        )
        output, _ = await asyncio.wait_for(submit.communicate(), 60)
        assert (submit.returncode, b"15 created" in output) == (0, True), output.decode()
    finally:
        started = psutil.Process(stack.pid).children(recursive=True)
        stack.terminate()
        await stack.communicate()
        _, alive = await asyncio.to_thread(psutil.wait_procs, started, timeout=10)
    assert alive == []
