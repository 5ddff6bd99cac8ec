"""What imports the same documents: how each is started, and how it is sent documents."""

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from benchmarks.imports import workload
from benchmarks.peers import bare_temporal, dbos_flow
from benchmarks.stack import Servers
from stack.children import child, free_port, wait_for_port
from stack.embedded import QUEUE, worker_process
from workers.shared.connect import connect

_READY_SECONDS = 60
_STARTS = 16
"""Workflows that a sender starts at once."""
Send = Callable[[Process, Sequence[bytes]], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Contender:
    """One way to import documents."""

    name: str
    worker: Callable[[str], AbstractAsyncContextManager[Process]]
    """Starts its worker; the argument names its log."""
    send: Send
    files: Sequence[str]
    """What a team writes for it, beside the three steps."""
    servers: Mapping[str, psutil.Process]
    """What it needs beside its worker, and is charged for."""
    is_docflow: bool = False


@dataclass(frozen=True)
class Absent:
    """One that cannot run here."""

    name: str
    why: str


def kill(process: Process) -> None:
    """SIGKILL to a worker and all processes below it, at one moment."""
    root = psutil.Process(process.pid)
    for each in (*root.children(recursive=True), root):
        with suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGKILL)


@asynccontextmanager
async def contenders(
    servers: Servers,
) -> AsyncGenerator[tuple[Sequence[Contender], Sequence[Absent]]]:
    """All that can run here, over the same servers; and those that cannot."""
    environment = servers.environment
    database = {"PostgreSQL": servers.processes["PostgreSQL"]}
    temporal = {**database, "Temporal server": servers.processes["Temporal server"]}
    client = await connect(servers.temporal)
    clients: list[Any] = []

    def program(module: str) -> Callable[[str], AbstractAsyncContextManager[Process]]:
        command = (sys.executable, "-m", f"benchmarks.peers.{module}")
        return lambda name: _piped(command, servers.folder / f"{name}.log", environment)

    async def start(_: Process, bodies: Sequence[bytes]) -> None:
        for first in range(0, len(bodies), _STARTS):
            some = bodies[first : first + _STARTS]
            await asyncio.gather(*(_start(client, body.decode()) for body in some))

    async def enqueue(_: Process, bodies: Sequence[bytes]) -> None:
        if not clients:
            # Its worker has made the database by now.
            clients.append(await asyncio.to_thread(_dbos_client, environment))
        for body in bodies:
            await clients[0].enqueue_async(
                {"queue_name": dbos_flow.QUEUE, "workflow_name": dbos_flow.WORKFLOW}, body.decode()
            )

    async def submit(_: Process, bodies: Sequence[bytes]) -> None:
        await send_all(bodies)

    found = [
        Contender("asyncio, no durability", program("plain"), _write, ("plain",), database),
        Contender("DBOS, three steps", program("dbos_flow"), enqueue, ("dbos_flow",), database),
        Contender(
            "bare Temporal, three activities",
            program("bare_temporal"),
            start,
            ("bare_temporal",),
            temporal,
        ),
        Contender(
            "docflow",
            lambda name: worker_process(servers.folder, environment, free_port()),
            submit,
            (),
            {**temporal, "emulator": servers.processes["emulator"]},
            is_docflow=True,
        ),
    ]
    try:
        async with (
            workload.open_sender(servers.queue, QUEUE) as send_all,
            _celery(servers, database) as celery,
        ):
            absent = [each for each in celery if isinstance(each, Absent)]
            found[1:1] = [each for each in celery if isinstance(each, Contender)]
            yield found, absent
    finally:
        for each in clients:
            each.destroy()


@asynccontextmanager
async def _piped(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> AsyncGenerator[Process]:
    """A program that reads standard input, once it has said `ready`."""
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=errors, env=dict(environment)
        )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while (line := await process.stdout.readline()) != b"ready\n":
                if not line:
                    raise RuntimeError(f"{command[-1]} ended; see {log}")
        yield process
    finally:
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            kill(process)
        await process.wait()


async def _write(process: Process, bodies: Sequence[bytes]) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError):
        process.stdin.write(b"".join(body + b"\n" for body in bodies))
        await process.stdin.drain()


async def _start(client: Any, body: str) -> None:
    id = json.loads(body)["task_id"]
    await client.start_workflow("PeerImport", body, id=id, task_queue=bare_temporal.QUEUE)


def _dbos_client(environment: Mapping[str, str]) -> Any:
    os.environ["DATABASE_URL"] = environment["DATABASE_URL"]
    return import_module("dbos").DBOSClient(system_database_url=dbos_flow.system_database())


@asynccontextmanager
async def _celery(
    servers: Servers, database: Mapping[str, psutil.Process]
) -> AsyncGenerator[Sequence[Contender | Absent]]:
    """Celery over a Redis of its own, in both ways to acknowledge."""
    name = "Celery + Redis"
    program = shutil.which("redis-server")
    if program is None:
        yield [Absent(name, "redis-server is not installed (Debian's package of that name)")]
        return
    if find_spec("celery") is None:
        yield [Absent(name, "the dependency group `peers` is not installed")]
        return
    port, folder = free_port(), servers.folder / "redis"
    folder.mkdir()
    # Every command is written to the disk within a second: what it knows outlives its end.
    durable = ("--appendonly", "yes", "--save", "")
    command = (program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *durable)
    log = servers.folder / "redis.log"
    async with child(command, log) as redis:
        await wait_for_port(redis, port, "redis-server", log)
        charged = {**database, "Redis": psutil.Process(redis.pid)}
        yield [
            _celery_over(servers, charged, f"redis://127.0.0.1:{port}/{number}", late, ways)
            for number, (late, ways) in enumerate(
                ((False, f"{name}, as installed"), (True, f"{name}, `acks_late`"))
            )
        ]


def _celery_over(
    servers: Servers, charged: Mapping[str, psutil.Process], url: str, late: bool, name: str
) -> Contender:
    environment = {
        **servers.environment,
        "PEERS_REDIS": url,
        "PEERS_ACKS_LATE": str(late).lower(),
    }
    app = import_module("celery").Celery("peers", broker=url)
    command = (
        *(sys.executable, "-m", "celery", "-A", "benchmarks.peers.celery_tasks", "worker"),
        *("--concurrency", str(os.cpu_count()), "--loglevel", "WARNING", "--without-mingle"),
    )

    @asynccontextmanager
    async def worker(log: str) -> AsyncGenerator[Process]:
        async with child(command, servers.folder / f"{log}.log", environment) as process:
            try:
                async with asyncio.timeout(_READY_SECONDS):
                    while not await asyncio.to_thread(app.control.ping, timeout=0.5):
                        if process.returncode is not None:
                            raise RuntimeError(f"celery ended; see {log}.log")
                yield process
            finally:
                with suppress(ProcessLookupError, psutil.NoSuchProcess):
                    kill(process)

    async def send(_: Process, bodies: Sequence[bytes]) -> None:
        def put() -> None:
            for body in bodies:
                task = "benchmarks.peers.celery_tasks.import_document"
                app.send_task(task, (body.decode(),), ignore_result=True)

        await asyncio.to_thread(put)

    return Contender(name, worker, send, ("celery_tasks",), charged)
