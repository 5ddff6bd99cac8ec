"""A thousand small events, from message to `Succeeded`.

What they are measured against is as many bare workflows of the same shape with as many activities,
which do nothing.
"""

import asyncio
import json
import os
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.receipt import JobClosing
from activities.transfers.reception import Planning, Receiving
from activities.transfers.store import SqlRouteStore, SqlTransferStore
from adapters.database.schema import upgrade
from benchmarks.report import Table, at_least, middle, spread
from benchmarks.transfers.bare import EVENTS, JOBS, Bare, BareEvent, BareJob, step
from stack.postgres import postgres_server
from stack.temporal import temporal_server
from workers.shared.connect import connect
from workers.shared.machine import tune_collector
from workers.shared.register import Context, Lane, Pipeline
from workers.shared.resources import Resources, open_resources
from workers.shared.services.bodies import Settle
from workers.shared.worker_factory import build_lanes, build_worker
from workers.transfers.register import TRANSFERS
from workers.transfers.starts import TransferIntake
from workflows.transfers.events import FILE_JOB, TransferStatus
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import ActionInput, ActionResult, Manifest
from workflows.transfers.settings import Actions, JobSettings, ReadFile, SettingsJob, WriteFile

SHARE: Final = 0.7
_ABREAST: Final = 50
"""Starts in flight, as a bridge has them."""
_QUEUE: Final = "orders"
_QUEUES: Final = f"queues:\n- name: {_QUEUE}\n  handler: FileJobHandler\n  slots: 100\n"
_FILE: Final = "orders.csv"


class NoActions:
    """Endpoints that are there at once: what is measured is docflow around them."""

    @activity.defn(name="transfers.read_file")
    async def read_file(self, order: ActionInput) -> ActionResult:
        """One file of ten bytes."""
        return ActionResult(files=Manifest(files=1, bytes=10))

    @activity.defn(name="transfers.write_file")
    async def write_file(self, order: ActionInput) -> ActionResult:
        """It is written."""
        return ActionResult(files=order.files)


@dataclass(frozen=True)
class Installation:
    """Workers of events and of one queue, and those of bare workflows."""

    client: Client
    intake: TransferIntake
    store: SqlTransferStore
    workers: Sequence[Worker]

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Let the workers work for the length of the block."""
        async with AsyncExitStack() as stack:
            for worker in self.workers:
                await stack.enter_async_context(worker)
            tune_collector()
            yield

    async def transfer(self, account: str) -> str:
        """Have an event taken in; the id of its transfer."""
        event = an_event(account)
        while True:
            verdict = await self.intake.accept(event, 0, None)
            if isinstance(verdict, Settle):
                return verdict.workflow_id.split("/")[1]

    async def transfers(self, number: int) -> float:
        """Seconds until so many events are carried out."""
        before = await self._completed(FILE_JOB)
        began = time.perf_counter()
        await abreast(number, lambda _: self.transfer("A"))
        await self._until(FILE_JOB, before + number)
        return time.perf_counter() - began

    async def single(self, account: str) -> float:
        """Seconds until one event is carried out."""
        began = time.perf_counter()
        await self.job_of(await self.transfer(account))
        return time.perf_counter() - began

    async def job_of(self, transfer_id: str) -> None:
        """Wait for the end of the job, which may not have begun."""
        while True:
            row = await self.store.get(transfer_id)
            if row is not None and row.status is TransferStatus.SUCCEEDED:
                return
            await asyncio.sleep(0.05)

    async def bare(self, number: int, remote: int) -> float:
        """Seconds that as many bare workflows take, each with so many remote activities."""
        before, run = await self._completed("BareJob"), uuid.uuid4().hex

        async def start(n: int) -> None:
            await self.client.start_workflow(
                BareEvent.run,
                Bare(number=n, remote=remote),
                id=f"bare/{run}/{n}",
                task_queue=EVENTS,
            )

        began = time.perf_counter()
        await abreast(number, start)
        await self._until("BareJob", before + number)
        return time.perf_counter() - began

    async def _completed(self, workflow: str) -> int:
        query = f"WorkflowType = '{workflow}' AND ExecutionStatus = 'Completed'"
        return (await self.client.count_workflows(query)).count

    async def _until(self, workflow: str, number: int) -> None:
        while await self._completed(workflow) < number:
            await asyncio.sleep(0.1)


def an_event(account: str, file: str = _FILE) -> bytes:
    """An event that never came, about a file."""
    return json.dumps(
        {
            "specversion": "1.0",
            "id": uuid.uuid4().hex,
            "source": "bench",
            "type": "Succeeded",
            "subject": "File Upload",
            "data": {"accountId": account, "fileName": file},
        }
    ).encode()


async def abreast(
    number: int, do: Callable[[int], Awaitable[Any]], at_once: int = _ABREAST
) -> list[Any]:
    """Do it so often, as many at once as a bridge does, or so many."""
    slots = asyncio.Semaphore(at_once)

    async def one(n: int) -> Any:
        async with slots:
            return await do(n)

    return await asyncio.gather(*(one(n) for n in range(number)))


def _register(environment: Mapping[str, str]) -> Pipeline:
    """That of transfers, with actions that take no time."""

    def activities(common: Resources, own: Any) -> Sequence[object]:
        control = (Receiving(own.receiving), Planning(own.planning), JobClosing(own.closing))
        return (*control, NoActions())

    def lanes(environment: Mapping[str, str]) -> Sequence[Lane]:
        return [replace(each, activities=activities) for each in TRANSFERS.lanes_in(environment)]

    return replace(TRANSFERS, activities=activities, lanes_of_settings=lanes)


def _settings() -> str:
    """One job with two actions."""
    actions = (
        ReadFile(partner="acme", path="in/{data.fileName}"),
        WriteFile(partner="acme", path="out/{id}-{name}"),
    )
    job = SettingsJob(job="bench", queue=_QUEUE, actions=Actions(list=actions))
    return JobSettings(jobs=(job,)).model_dump_json(by_alias=True)


@asynccontextmanager
async def opened(folder: Path, *, real: bool) -> AsyncGenerator[Installation]:
    """Temporal in memory, PostgreSQL, one process of intake and of workers, which do not work yet.

    Args:
        folder: Takes everything.
        real: A small file is read from a folder and written to another one.
    """
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres_server(durable=True))
        await upgrade(url)
        server = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        environment = {
            "DATABASE_URL": url,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_TRANSFERS_SETTINGS": str(folder / "jobsettings.json"),
            "DOCFLOW_TRANSFERS_QUEUES": str(folder / "queues.yaml"),
            "DOCFLOW_TRANSFERS_FOLDERS": str(folder),
        }
        (folder / "queues.yaml").write_text(_QUEUES)
        (folder / "jobsettings.json").write_text(_settings())
        common = await stack.enter_async_context(open_resources(environment))
        client = await connect(server.address)
        register = TRANSFERS if real else _register(environment)
        context = Context(environment, client, common)
        settings = register.settings(environment)
        own = await stack.enter_async_context(register.open(context, settings))
        (folder / "acme" / "in").mkdir(parents=True)
        (folder / "acme" / "in" / _FILE).write_bytes(b"ten bytes\n")
        await SqlPartnerStore(common.database).put(
            Partner(
                name="acme",
                kind=PlaceKind.FOLDER,
                container=str(folder / "acme"),
            )
        )
        await SqlRouteStore(common.database).put(RouteRule(queue=_QUEUE, rule="1"))
        workers = [
            build_worker(client, register, common, own),
            *build_lanes(client, register, common, own, environment=environment),
            Worker(client, task_queue=EVENTS, workflows=[BareEvent], activities=[step]),
            Worker(client, task_queue=JOBS, workflows=[BareJob], activities=[step]),
        ]
        intake = TransferIntake(client, common.rejected, way_in="bench")
        yield Installation(client, intake, own.store, workers)


async def events(folder: Path, number: int, rounds: int) -> Table:
    """Small events against bare workflows of the same shape and as many activities."""
    table = Table(
        f"{number:,} small events, rows in PostgreSQL",
        (
            *("actions", "bare workflows s", "docflow s", "events/s"),
            *("share of the engine's limit", "CPU ms an event: bare", "docflow", "share"),
        ),
    )
    # A receipt is one activity more, which docflow does as a local one; where nothing is done there
    # is none.
    for title, real, remote in (("that do nothing", False, 2), ("read and write a file", True, 3)):
        own = folder / title.split()[-1]
        own.mkdir()
        async with opened(own, real=real) as installation, installation.working():
            await installation.transfers(number // 20)
            bare, ours = list[float](), list[float]()
            # Of this process: intake and workers, without Temporal and PostgreSQL.
            bare_cpu, our_cpu = list[float](), list[float]()
            for _ in range(rounds):
                began = time.process_time()
                bare.append(await installation.bare(number, remote))
                bare_cpu.append((time.process_time() - began) / number * 1_000)
                began = time.process_time()
                ours.append(await installation.transfers(number))
                our_cpu.append((time.process_time() - began) / number * 1_000)
        share, rate = middle(bare) / middle(ours), number / middle(ours)
        table.add(
            *(title, spread(bare, 1), spread(ours, 1), f"{rate:.0f}", f"{share:.2f}"),
            *(spread(bare_cpu, 1), spread(our_cpu, 1)),
            f"{middle(bare_cpu) / middle(our_cpu):.2f}",
        )
        table.notes.append(f"actions {title}: {at_least(share, SHARE)}")
    table.notes.append(f"load at the end: {os.getloadavg()[0]:.1f}")
    return table
