"""The stack that a developer keeps running."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
import pytest_asyncio

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Stack:
    """`docflow stack up`, and what it has said so far."""

    process: Process
    folder: Path
    said: dict[str, str]

    async def hear(self) -> str:
        """The next line."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            return (await self.process.stdout.readline()).decode()

    def child(self, name: str) -> psutil.Process:
        """The process that runs `docflow NAME`."""
        (found,) = (
            child
            for child in psutil.Process(self.process.pid).children()
            if name in child.cmdline()
        )
        return found

    @property
    def settings(self) -> dict[str, str]:
        return dict(
            line.removeprefix("export ").replace("'", "").split("=", 1)
            for line in (self.folder / "env").read_text().splitlines()
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("stack") / "dev"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.cli", "stack", "up", "--folder", str(folder)),
        cwd=ROOT,
        stdout=PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    running = Stack(process, folder, {})
    try:
        while "running until" not in (line := await running.hear()):
            assert line, f"ended with {await process.wait()}"
            name, _, value = line.partition("  ")
            running.said[name] = value.strip()
        yield running
    finally:
        started = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        await process.communicate()
        _, alive = await asyncio.to_thread(psutil.wait_procs, started, timeout=10)
    assert alive == []
    assert process.returncode == 143
    assert not (folder / "env").exists()


async def test_a_killed_worker_is_restarted_and_continues(stack: Stack) -> None:
    stack.child("worker").kill()
    assert "the worker ended with -9" in await stack.hear()
    submit = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.cli", "submit", "imports", "samples/equipment.csv"),
        *("--type", "equipment", "--project", "P1"),
        cwd=ROOT,
        stdout=PIPE,
        env={**os.environ, **stack.settings},
    )
    output, _ = await asyncio.wait_for(submit.communicate(), 60)
    assert (submit.returncode, b"15 created" in output) == (0, True), output.decode()


async def test_the_token_it_prints_opens_the_gateway(stack: Stack) -> None:
    assert stack.said["sign in"] == f"{stack.said['gateway']}/sign-in#token={stack.said['token']}"
    async with httpx.AsyncClient(base_url=stack.said["gateway"]) as api:
        assert (await api.get("/api/imports")).status_code == 401
        headers = {"Authorization": f"Bearer {stack.said['token']}"}
        answer = await api.get("/api/imports", headers=headers)
        assert (answer.status_code, answer.json()) == (200, [])
        assert (await api.get("/sign-in")).status_code == 200


async def test_a_killed_gateway_is_started_again_and_accepts_the_same_token(stack: Stack) -> None:
    stack.child("gateway").kill()
    assert "the gateway ended with -9" in await stack.hear()
    headers = {"Authorization": f"Bearer {stack.said['token']}"}
    async with (
        asyncio.timeout(60),
        httpx.AsyncClient(base_url=stack.said["gateway"], headers=headers) as api,
    ):
        while True:
            try:
                answer = await api.get("/api/imports")
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            # It listens before it is ready.
            if answer.status_code != 503:
                break
            await asyncio.sleep(0.05)
    assert answer.status_code == 200


async def test_no_other_user_may_read_its_secrets(stack: Stack) -> None:
    for name in ("env", "jwt.key"):
        assert (stack.folder / name).stat().st_mode & 0o777 == 0o600
    assert stack.settings["DOCFLOW_JWT_KEY"] == (stack.folder / "jwt.key").read_text()
