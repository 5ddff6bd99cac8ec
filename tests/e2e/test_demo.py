"""What a new user does first: the demo, to its end and interrupted."""

import asyncio
import contextlib
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]


async def _start(folder: Path) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.cli", "demo", "--folder", str(folder)),
        cwd=ROOT,
        stdout=PIPE,
        stderr=PIPE,
    )


async def _left(started: list[psutil.Process]) -> list[psutil.Process]:
    _, alive = await asyncio.to_thread(psutil.wait_procs, started, timeout=30)
    return alive


async def test_the_demo_ends_as_expected_and_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = await _start(tmp_path / "demo")
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
    assert not (tmp_path / "demo" / "ministack").exists()
    assert len(seen) >= 3
    assert await _left(list(seen.values())) == []


async def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = await _start(tmp_path / "demo")
    ended = asyncio.create_task(demo.communicate())
    started: list[psutil.Process] = []
    try:
        async with asyncio.timeout(120):
            while not (tmp_path / "demo" / "gateway.log").exists():
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
