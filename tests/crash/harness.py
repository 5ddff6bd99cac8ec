"""The parts of docflow as processes that can be killed and started again, and ways to wait."""

import asyncio
import contextlib
import os
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from temporalio.client import Client

from adapters.database.models.imports import FINAL, import_progress, import_tasks
from adapters.ports.errors import Unavailable
from stack.children import (
    StackError,
    free_port,
    start_child,
    stop_child,
    wait_for_port,
    wait_until,
)
from stack.embedded import DOCFLOW, QUEUE, is_ready, service_bus
from stack.temporal import dev_server_arguments, temporal_binary
from tests.crash.documents import PROJECT, SMALL_BYTES, Document
from tests.support.forks import Docflow
from tests.support.fresh_database import fresh_url
from workers.imports.settings import QueueSettings
from workers.shared.connect import connect
from workers.shared.resources import Resources, open_resources
from workers.shared.services.service_bus import ServiceBusQueue, open_queue

WORKER = ("worker", "imports")
WORKER_WITH_BRIDGE = (*WORKER, "--with-bridge")
BRIDGE = ("bridge", "service-bus")
LOCK_SECONDS = 5
"""How long a message of a killed bridge stays away."""
PATIENCE = 180
"""Seconds. What takes one on a quiet machine takes a minute where it shares two processors with the
kills of two other files; a wait ends as soon as it may, so that only a failure takes as long."""


Footprint = tuple[tuple[Any, ...], ...]


async def until(
    condition: Callable[[], Awaitable[bool]],
    what: str,
    within: float = PATIENCE,
    every: float = 0.02,
    steps: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Wait for a condition; an unavailable database proves nothing about it.

    Args:
        condition: What has to come true.
        what: The same, for a message.
        within: Seconds; where there are `steps`, from the last one on.
        every: Seconds between two looks.
        steps: A value that changes while there is progress: slow is not stuck.

    Raises:
        AssertionError: It does not come true in time.
    """
    deadline, seen = time.monotonic() + within, None
    while True:
        with contextlib.suppress(Unavailable):
            if await condition():
                return
            if steps is not None and (now := await steps()) != seen:
                deadline, seen = time.monotonic() + within, now
        assert time.monotonic() < deadline, f"not within {within:.0f} s: {what}"
        await asyncio.sleep(every)


@dataclass
class Part:
    """A process that can be killed at any moment and started again.

    Attributes:
        name: For messages and its log.
        command: What starts it, the same every time.
        log: Where its output goes.
        environment: Its environment; ours when None.
        port: What it listens on once it is up; None: it is up when it runs.
        has_health: It serves its readiness there, and listens before it is ready.
        kills: How often it was killed.
    """

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] | None = None
    port: int | None = None
    has_health: bool = False
    kills: int = 0
    _process: Process | Docflow | None = field(default=None, repr=False)

    async def start(self) -> None:
        """Start it, and wait until it is ready, or listens, if it ever does."""
        command = tuple(self.command)
        if command[: len(DOCFLOW)] == DOCFLOW:
            environment = self.environment or os.environ
            process = Docflow(command[len(DOCFLOW) :], environment, (self.log, self.log))
        else:
            process = await start_child(command, self.log, self.environment)
        self._process = process
        if self.port is None:
            return
        if not self.has_health:
            await wait_for_port(process, self.port, self.name, self.log)
            return
        url = f"http://127.0.0.1:{self.port}/health/ready"
        await wait_until(lambda: asyncio.to_thread(is_ready, url), process, self.name, self.log)

    async def kill(self) -> None:
        """SIGKILL.

        Raises:
            StackError: It had ended by itself, which it must not.
        """
        process = self.running()
        process.kill()
        await process.wait()
        self._process = None
        self.kills += 1

    async def stop(self) -> None:
        """End it in an orderly way, if it runs."""
        if self._process is not None:
            await stop_child(self._process)

    def running(self) -> Process | Docflow:
        """Its process.

        Raises:
            StackError: There is none.
        """
        if self._process is None or self._process.returncode is not None:
            raise StackError(f"{self.name} does not run any more; see {self.log}")
        return self._process


@dataclass(frozen=True)
class System:
    """Temporal, Service Bus and docflow's own processes at work on one database.

    Attributes:
        folder: Where everything durable and the logs are.
        settings: What points docflow at it all.
        temporal: Keeps its state in a file, so that a restart continues with it.
        docflow: Docflow's own processes, by the name of their log.
        resources: The same adapters, for looking at the outcome.
        queue: For sending.
    """

    folder: Path
    settings: Mapping[str, str]
    temporal: Part
    docflow: Sequence[Part]
    resources: Resources
    queue: ServiceBusQueue

    async def submit(self, documents: Sequence[Document]) -> None:
        """Upload documents and send their messages."""
        for document in documents:
            file = self.folder / "document.csv"
            document.write(file)
            await self.resources.blobs.upload(file, document.blob_name)
            await self.queue.send(
                document.message.model_dump_json().encode(), document.message.workflow_id
            )

    async def import_all(self, documents: Sequence[Document]) -> None:
        """Submit documents and wait until each has ended."""
        await self.submit(documents)
        await self.ended(documents)

    async def ended(self, documents: Sequence[Document], within: float = PATIENCE) -> None:
        """Wait until every one of these imports has ended, whichever way.

        Raises:
            AssertionError: None of all imports took a step for so many seconds.
        """
        tasks = {document.task_id for document in documents}

        async def all_are() -> bool:
            return tasks <= await self.finished_tasks()

        try:
            what = f"{len(tasks)} documents are done"
            await until(all_are, what, within, every=0.1, steps=self._footprint)
        except AssertionError as error:
            left = tasks - await self.finished_tasks()
            error.add_note(f"{len(left)} are not: {await self._unfinished(left)}")
            raise

    async def finished_tasks(self) -> set[str]:
        """Tasks whose import has ended."""
        query = select(import_tasks.c.task_id).where(
            import_tasks.c.project_id == PROJECT,
            import_tasks.c.state.in_([state.value for state in FINAL]),
        )
        async with self.resources.database.reading() as connection:
            return set((await connection.execute(query)).scalars())

    async def _unfinished(self, tasks: set[str]) -> Mapping[str, Sequence[str]]:
        """Some of these tasks by the state that they are in."""
        query = select(import_tasks.c.state, import_tasks.c.task_id).where(
            import_tasks.c.task_id.in_(sorted(tasks)[:500])
        )
        found: dict[str, list[str]] = {}
        async with self.resources.database.reading() as connection:
            for state, task in await connection.execute(query):
                found.setdefault(state, []).append(task)
        return {state: names[:5] for state, names in found.items()}

    async def footprint(self) -> Footprint:
        """Numbers that change with every step that an import takes in the database."""
        found: Footprint = ()

        async def look() -> bool:
            nonlocal found
            found = await self._footprint()
            return True

        await until(look, "the database answers")
        return found

    async def _footprint(self) -> Footprint:
        states = select(import_tasks.c.state, func.count()).group_by(import_tasks.c.state)
        marks = select(func.count(), func.coalesce(func.sum(import_progress.c.cursor), 0))
        async with self.resources.database.reading() as connection:
            return (
                *(tuple(row) for row in await connection.execute(states.order_by("state"))),
                *(tuple(row) for row in await connection.execute(marks)),
            )

    async def work_resumes(self, since: Footprint) -> None:
        """Wait until an import takes its next step."""

        async def moved() -> bool:
            for part in self.docflow:
                part.running()
            return await self.footprint() != since

        await until(moved, "an import takes a step", every=0.01)

    async def loads(self, document: Document) -> None:
        """Wait until the first rows of an import are written."""
        mark = select(import_progress.c.cursor).where(import_progress.c.task_id == document.task_id)

        async def begun() -> bool:
            async with self.resources.database.reading() as connection:
                if (await connection.execute(mark)).scalar():
                    return True
            return document.task_id in await self.finished_tasks()

        await until(begun, f"rows of {document.name} are written")

    async def client(self) -> Client:
        """A client of its Temporal."""
        return await connect(self.settings["TEMPORAL_ADDRESS"])


@asynccontextmanager
async def running_system(
    folder: Path,
    *commands: Sequence[str],
    database_url: str | None = None,
    lock_seconds: int = LOCK_SECONDS,
    settings: Mapping[str, str] | None = None,
) -> AsyncGenerator[System]:
    """Start everything on free ports in a folder, and stop it at the end.

    Args:
        folder: For all that is durable, and logs.
        commands: Docflow's own processes.
        database_url: Another database than a SQLite file in the folder.
        lock_seconds: How long the queue locks a message.
        settings: Others than the usual ones.
    """
    async with AsyncExitStack() as stack:
        temporal = _temporal(folder, free_port())
        stack.push_async_callback(temporal.stop)
        await temporal.start()
        connection_string = await stack.enter_async_context(
            service_bus(folder, [f"{QUEUE}:lock={lock_seconds},max=10"])
        )
        settings = {
            "TEMPORAL_ADDRESS": f"127.0.0.1:{temporal.port}",
            "AZURE_SERVICE_BUS_CONNECTION_STRING": connection_string,
            "AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DATABASE_URL": database_url or fresh_url(),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_SMALL_DOCUMENT_BYTES": str(SMALL_BYTES),
            **(settings or {}),
        }
        docflow = [
            Part(
                " ".join(command),
                [*DOCFLOW, *command],
                folder / f"{command[0]}.log",
                {**os.environ, **settings},
            )
            for command in commands
        ]
        for part in docflow:
            stack.push_async_callback(part.stop)
            await part.start()
        resources = await stack.enter_async_context(open_resources(settings))
        queue = await stack.enter_async_context(open_queue(QueueSettings.read(settings)))
        yield System(folder, settings, temporal, docflow, resources, queue)


def _temporal(folder: Path, port: int) -> Part:
    command = [temporal_binary(), "server", "start-dev", "--headless", "--port", str(port)]
    command += dev_server_arguments(folder / "temporal.db")
    return Part("the Temporal dev server", command, folder / "temporal.log", port=port)
