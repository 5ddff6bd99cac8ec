"""The stack that a developer keeps running."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
import pytest_asyncio

from docflow.client.contexts import Context, Contexts
from tests.support.gateway import sign_in
from tests.support.waiting import eventually
from workers.jobs.register import JOBS
from workers.shared.connect import connect
from workers.shared.services.runs import TemporalRuns
from workflows.jobs.records import JobStatus

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Stack:
    """`docflow dev`, and what it has said so far."""

    process: Process
    folder: Path
    said: dict[str, str]
    ports: Mapping[str, int]
    """Those that an earlier start in the folder has chosen."""

    async def hear(self) -> str:
        """The next line."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            return (await self.process.stdout.readline()).decode()

    async def heard_until(self, *lines: str) -> list[str]:
        """All lines up to the last of these."""
        said: list[str] = []
        while not set(lines) <= set(said):
            said.append((await self.hear()).rstrip())
            assert said[-1], f"it has ended after {said}"
        return said

    def child(self, name: str) -> psutil.Process:
        """The process with this word in its command."""
        (found,) = _children(self.process.pid, name)
        return found

    async def killed_again(self, name: str, killed: psutil.Process) -> psutil.Process:
        """Kill the process that takes the place of one as soon as there is one."""
        found: list[psutil.Process] = []

        async def started() -> bool:
            found[:] = [each for each in _children(self.process.pid, name) if each != killed]
            return bool(found)

        await eventually(started, pause=0.002)
        found[0].kill()
        return found[0]

    @property
    def settings(self) -> dict[str, str]:
        return dict(
            line.removeprefix("export ").replace("'", "").split("=", 1)
            for line in (self.folder / "env").read_text().splitlines()
        )


def _children(pid: int, name: str) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if name in child.cmdline():
                found.append(child)
    return found


def _contexts(folder: Path) -> Path:
    """The file of the developer's contexts."""
    return folder.parent / "contexts.json"


async def _start(folder: Path) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.shared.cli", "dev", "--folder", str(folder)),
        cwd=ROOT,
        stdout=PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "DOCFLOW_CONTEXTS": str(_contexts(folder))},
    )


async def _stop(process: Process, signal_: signal.Signals) -> int:
    """End a stack with all of its processes; its exit code."""
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal_)
    await process.communicate()
    _, alive = await asyncio.to_thread(psutil.wait_procs, started, timeout=10)
    assert alive == []
    assert process.returncode is not None
    return process.returncode


async def _interrupted_start(folder: Path) -> Mapping[str, int]:
    """Press Ctrl-C as soon as the first part runs; the ports that were chosen."""
    process = await _start(folder)

    async def starts() -> bool:
        return bool(_children(process.pid, "start-dev"))

    await eventually(starts)
    assert await _stop(process, signal.SIGINT) == 130
    return json.loads((folder / "ports.json").read_text())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(open_folder: Path) -> AsyncIterator[Stack]:
    folder = open_folder / "dev"
    contexts = Contexts({"DOCFLOW_CONTEXTS": str(_contexts(folder))})
    contexts.keep("production", Context("https://docflow.example.org", "secret"))
    ports = await _interrupted_start(folder)
    process = await _start(folder)
    running = Stack(process, folder, {}, ports)
    try:
        while "running until" not in (line := await running.hear()):
            assert line, f"ended with {await process.wait()}"
            name, _, value = line.partition("  ")
            running.said[name] = value.strip()
        yield running
    finally:
        exit_code = await _stop(process, signal.SIGTERM)
    assert exit_code == 143
    assert not (folder / "env").exists()
    assert (contexts.current, list(contexts.all())) == ("production", ["production"])


async def _submit(stack: Stack, task: str) -> None:
    submit = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.shared.cli", "import", "submit", "samples/equipment.csv"),
        *("--type", "equipment", "--project", task, "--task", task),
        cwd=ROOT,
        stdout=PIPE,
        env={**os.environ, **stack.settings},
    )
    output, _ = await asyncio.wait_for(submit.communicate(), 120)
    assert (submit.returncode, b"created 15" in output) == (0, True), output.decode()


async def test_the_next_start_has_the_same_ports(stack: Stack) -> None:
    def url(name: str) -> str:
        return f"http://127.0.0.1:{stack.ports[name]}"

    assert json.loads((stack.folder / "ports.json").read_text()) == stack.ports
    assert (stack.said["gateway"], stack.said["Web UI"]) == (url("gateway"), url("ui"))
    assert stack.said["health"] == f"{url('health')}/health/ready"
    assert stack.settings["TEMPORAL_ADDRESS"] == f"127.0.0.1:{stack.ports['temporal']}"
    assert stack.settings["AWS_ENDPOINT_URL"] == url("ministack")
    queue = stack.settings["AZURE_SERVICE_BUS_CONNECTION_STRING"]
    assert f"//127.0.0.1:{stack.ports['service-bus']};" in queue


async def test_commands_are_logged_in_while_it_runs(stack: Stack) -> None:
    assert stack.said["commands"] == "logged in as context dev"
    unset = ("DOCFLOW_ADDRESS", "DOCFLOW_TOKEN")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    listing = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "workers.shared.cli", "schedule", "list", "-o", "name"),
        stdout=PIPE,
        env={**environment, "DOCFLOW_CONTEXTS": str(_contexts(stack.folder))},
    )
    output, _ = await asyncio.wait_for(listing.communicate(), 120)
    assert (listing.returncode, b"batch-sweeper" in output) == (0, True)


async def test_temporal_may_be_killed_while_it_is_started_again(stack: Stack) -> None:
    server = stack.child("start-dev")
    server.kill()
    server = await stack.killed_again("start-dev", server)
    await stack.killed_again("start-dev", server)
    said = await stack.heard_until("the Temporal dev server is up again")
    assert len([line for line in said if "the Temporal dev server ended with -9" in line]) == 3
    await _submit(stack, "temporal")


async def test_every_part_may_be_killed(stack: Stack) -> None:
    names = {
        "emulators.service_bus": "the Service Bus emulator",
        "ministack": "MiniStack",
        "worker": "the worker",
        "start-dev": "the Temporal dev server",
        "-D": "PostgreSQL",
    }
    killed = {name: stack.child(name) for name in names}
    for process in killed.values():
        process.kill()
    said = await stack.heard_until(*(f"{name} is up again" for name in names.values()))
    for name in names.values():
        assert f"{name} ended with -9; starting it again" in said
    await _submit(stack, "all")
    headers = {"Authorization": f"Bearer {stack.said['token']}"}
    async with httpx.AsyncClient(base_url=stack.said["gateway"], headers=headers) as api:
        first = await api.get("/api/imports")
        # A session of the gateway that was lost with the server costs one request.
        assert (first.status_code, (await api.get("/api/imports")).status_code) in (
            (503, 200),
            (200, 200),
        )


async def test_the_token_it_prints_opens_the_gateway(stack: Stack) -> None:
    assert stack.said["sign in"] == f"{stack.said['gateway']}/sign-in#token={stack.said['token']}"
    async with httpx.AsyncClient(base_url=stack.said["gateway"]) as api:
        assert (await api.get("/api/imports")).status_code == 401
        headers = {"Authorization": f"Bearer {stack.said['token']}"}
        answer = await api.get("/api/imports", headers=headers)
        assert (answer.status_code, answer.json()) == (200, [])
        assert (await api.get("/sign-in")).status_code == 200


async def test_jobs_are_served_in_all_lanes_and_shown(stack: Stack) -> None:
    runs = TemporalRuns(await connect(stack.settings["TEMPORAL_ADDRESS"]), {})
    assert stack.settings["DOCFLOW_BRONZE_CONTAINER"] == "bronze"

    async def are_polled() -> bool:
        view = await runs.pipeline(JOBS)
        return view.workers == 1 and set(view.lanes.values()) == {1}

    await eventually(are_polled)
    headers = {"Authorization": f"Bearer {stack.said['token']}"}
    async with httpx.AsyncClient(base_url=stack.said["gateway"]) as browser:
        await sign_in(browser, stack.said["token"])
        asked = {"job_type": "hello_world", "parameters": {"n": 2}}
        answer = await browser.post("/api/jobs", json=asked, headers=headers)
        assert answer.status_code == 201, answer.text
        job = answer.json()["job_id"]

        async def has_completed() -> bool:
            shown = await browser.get(f"/api/jobs/{job}", headers=headers)
            return shown.json()["status"] == JobStatus.COMPLETED

        await eventually(has_completed)
        page = await browser.get("/runs?pipeline=jobs")
        assert (page.status_code, f"/jobs/{job}" in page.text) == (200, True)


async def test_a_killed_gateway_is_started_again_and_accepts_the_same_token(stack: Stack) -> None:
    stack.child("gateway").kill()
    assert "the gateway ended with -9" in await stack.hear()
    assert "the gateway is up again" in await stack.hear()
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
