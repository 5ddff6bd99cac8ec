"""One large file from SFTP through decrypt and scan to a blob, beside the same tools in a shell.

The shell does what a person would chain by hand: `sftp` fetches, `gpg` decrypts and verifies, clamd
scans the file where it lies, `curl` uploads in blocks. docflow is a worker of its own process, and
its time is that from the event to the row that says how the transfer has ended.
"""

import asyncio
import base64
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.records import Transfer
from activities.transfers.store import SqlRouteStore, SqlTransferStore
from adapters.azure.blobs import AzureBlobs
from adapters.azure.storage_account import StorageAccount
from adapters.database.engine import Database, open_database
from adapters.database.records import SqlRejectedMessages
from benchmarks.memory import peak_bytes
from benchmarks.report import Table, at_most, middle
from benchmarks.stack import children_cpu
from benchmarks.transfers.by_hand import by_hand, in_one_request
from benchmarks.transfers.endpoints import CONTAINER, Endpoints, endpoints, make_message
from benchmarks.transfers.events import an_event
from stack.azurite import azurite
from stack.children import free_port
from stack.clamd import PLANTED_NAME
from stack.embedded import docflow_part
from stack.postgres import migrated_database
from stack.sftp import USER
from stack.temporal import temporal_server
from workers.shared.connect import connect
from workers.shared.services.bodies import Settle
from workers.transfers.starts import TransferIntake
from workflows.transfers.events import TransferStatus
from workflows.transfers.partners import HostKey, Limits, OpenPgpKey, Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import file_job_id
from workflows.transfers.settings import (
    Actions,
    Decrypt,
    JobSettings,
    ReadFile,
    Scan,
    SettingsJob,
    WriteFile,
)

RATIO: Final = 1.3
MEGABYTES_OF_MEMORY: Final = 200
_QUEUE: Final = "large"
_QUEUES: Final = f"queues:\n- name: {_QUEUE}\n  handler: FileJobHandler\n"
_LIMITS: Final = Limits(sessions=20, connections_per_second=100)
_FILE: Final = "file.pgp"
_WARM: Final = "warm.pgp"
_LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Carried:
    """What became of a file."""

    seconds: float
    cpu: float
    """Seconds of processors, of everything that took part."""
    steps: Sequence[float]
    """Seconds of each activity."""
    megabytes: float
    """Of the worker's memory, at most."""
    reason: str | None


@dataclass(frozen=True)
class Installation:
    """Temporal and a database; a worker is started for each file."""

    at: Endpoints
    client: Client
    database: Database
    environment: Mapping[str, str]

    async def carry(self, name: str, storage: str, *, sealed: bool) -> Carried:
        """Carry one file, by a worker that has carried a small one before.

        Args:
            name: Of the message.
            storage: Connection string of the account that it goes to.
            sealed: Bytes between actions are encrypted.
        """
        await self._enrol(storage)
        async with self._worker(storage, sealed=sealed) as pid:
            # A worker asks its scanner what it can do before the first file.
            await self._carried(_WARM)
            before = children_cpu()
            row, seconds = await self._carried(name)
            cpu = children_cpu() - before
            steps = await self._steps(row.transfer_id)
            return Carried(seconds, cpu, steps, peak_bytes(pid) / 1e6, row.reason)

    async def _carried(self, name: str) -> tuple[Transfer, float]:
        intake = TransferIntake(self.client, SqlRejectedMessages(self.database), way_in="bench")
        store = SqlTransferStore(self.database)
        began = perf_counter()
        verdict = await intake.accept(an_event("A", name), 0, None)
        assert isinstance(verdict, Settle), "Temporal is there"
        transfer_id = verdict.workflow_id.split("/")[1]
        while True:
            row = await store.get(transfer_id)
            if row is not None and row.status in (TransferStatus.SUCCEEDED, TransferStatus.FAILED):
                return row, perf_counter() - began
            await asyncio.sleep(_LOOK_SECONDS)

    async def _steps(self, transfer_id: str) -> list[float]:
        begun: dict[int, float] = {}
        found: list[float] = []
        handle = self.client.get_workflow_handle(file_job_id(transfer_id))
        async for event in handle.fetch_history_events():
            at = event.event_time.ToMicroseconds() / 1e6
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                begun[event.event_id] = at
            elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                done = event.activity_task_completed_event_attributes
                found.append(at - begun[done.scheduled_event_id])
        return found

    async def _enrol(self, storage: str) -> None:
        at = self.at
        key = OpenPgpKey(fingerprint=at.key.fingerprint, private="env:BENCH_KEY", own=True)
        source = Partner(
            name="source",
            kind=PlaceKind.SFTP,
            host="127.0.0.1",
            port=at.sftp.port,
            user=USER,
            private_key="env:BENCH_LOGIN",
            host_keys=(HostKey(key=at.sftp.host_key),),
            keys=(key, OpenPgpKey(fingerprint=at.key.fingerprint, public=at.key.public)),
            limits=_LIMITS,
        )
        target = Partner(
            name="target",
            kind=PlaceKind.AZURE_BLOB,
            host=StorageAccount.from_connection_string(storage).endpoint,
            container=CONTAINER,
            token="env:BENCH_STORAGE",
            limits=_LIMITS,
        )
        for partner in (source, target):
            await SqlPartnerStore(self.database).put(partner)

    @asynccontextmanager
    async def _worker(self, storage: str, *, sealed: bool) -> AsyncGenerator[int]:
        """Its process id."""
        environment = {**self.environment, "BENCH_STORAGE": storage}
        if sealed:
            environment["BENCH_STAGING_KEY"] = base64.b64encode(os.urandom(32)).decode()
            environment["DOCFLOW_TRANSFERS_STAGING_KEY"] = "env:BENCH_STAGING_KEY"
        port = free_port()
        arguments = ["worker", "transfers", "--health-port", str(port)]
        part = docflow_part("worker", arguments, port, self.at.folder, environment)
        async with part.ready() as process:
            yield process.pid


def _settings() -> str:
    actions = (
        ReadFile(partner="source", path="{data.fileName}"),
        Decrypt(partner="source"),
        Scan(),
        WriteFile(partner="target", path="{id}-{name}"),
    )
    job = SettingsJob(job="large", queue=_QUEUE, actions=Actions(list=actions))
    return JobSettings(jobs=(job,)).model_dump_json(by_alias=True)


@asynccontextmanager
async def _opened(folder: Path, megabytes: int) -> AsyncGenerator[Installation]:
    """Endpoints, Temporal in memory, PostgreSQL, blobs in a folder; such files are scanned."""
    async with AsyncExitStack() as stack:
        at = await stack.enter_async_context(endpoints(folder))
        server = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        url = await stack.enter_async_context(migrated_database())
        database = await stack.enter_async_context(open_database(url))
        (folder / "jobsettings.json").write_text(_settings())
        (folder / "queues.yaml").write_text(_QUEUES)
        await SqlRouteStore(database).put(RouteRule(queue=_QUEUE, rule="1"))
        environment = {
            **os.environ,
            "TEMPORAL_ADDRESS": server.address,
            "DATABASE_URL": url,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_TRANSFERS_SETTINGS": str(folder / "jobsettings.json"),
            "DOCFLOW_TRANSFERS_QUEUES": str(folder / "queues.yaml"),
            "DOCFLOW_TRANSFERS_LOCAL": "true",
            "CLAMD_ADDRESS": at.clamd,
            "CLAMD_MAX_BYTES": str((megabytes * 3 // 2) << 20),
            "CLAMD_UNDATED": "true",
            "BENCH_KEY": at.key.private,
            "BENCH_LOGIN": at.sftp.login.read_text(),
        }
        yield Installation(at, await connect(server.address), database, environment)


@asynccontextmanager
async def _storage(folder: Path) -> AsyncGenerator[str]:
    """A storage account that holds nothing yet: the emulator frees no memory while it runs."""
    async with azurite(folder) as storage:
        await AzureBlobs(storage, CONTAINER).create_container()
        yield storage


@dataclass(frozen=True)
class Findings:
    """What was measured, round by round."""

    shell: list[tuple[float, Sequence[float]]]
    """Seconds of processors, and of each step."""
    plain: list[Carried]
    sealed: list[Carried]
    """With bytes between actions encrypted."""
    in_one_request: float
    """Seconds that the shell's upload takes without blocks."""
    planted: Carried
    written: Sequence[str]
    """Blobs of the infected file."""


async def large(folder: Path, megabytes: int, rounds: int) -> Table:
    """Both ways in turn, and a file with a signature in its last megabyte."""
    table = Table(
        f"{megabytes:,} MB: SFTP, decrypt and verify, scan, blob",
        ("by", "s", "to the shell", "CPU s", "peak MB", "read", "decrypt", "scan", "write"),
    )
    found = await _measured(folder, megabytes, rounds)
    base = middle([sum(steps) for _, steps in found.shell])
    used = middle([cpu for cpu, _ in found.shell])
    steps = _middles([steps for _, steps in found.shell])
    table.add("shell", f"{base:.1f}", "1", f"{used:.1f}", "", *steps)
    for title, carried in (("docflow", found.plain), ("docflow, sealed", found.sealed)):
        seconds = middle([each.seconds for each in carried])
        used = middle([each.cpu for each in carried])
        most = max(each.megabytes for each in carried)
        figures = (f"{seconds:.1f}", f"{seconds / base:.2f}", f"{used:.1f}", f"{most:.0f}")
        table.add(title, *figures, *_middles([each.steps[:4] for each in carried]))
    ratio = middle([each.seconds for each in found.plain]) / base
    memory = max(each.megabytes for each in (*found.plain, *found.sealed))
    is_found = PLANTED_NAME in (found.planted.reason or "")
    table.notes += [
        "sealed: bytes between actions are encrypted; peak: of the worker's memory",
        "CPU: of all processes, servers included",
        f"docflow to the shell: {at_most(ratio, RATIO)}",
        f"upload of the shell in one request instead of blocks: {found.in_one_request:.1f} s",
        f"memory: {at_most(memory, MEGABYTES_OF_MEMORY, ' MB')}",
        f"a signature in the last megabyte: {'found' if is_found else '**not found**'}; "
        f"written on: {', '.join(found.written) or 'nothing'}",
        f"load at the end: {os.getloadavg()[0]:.1f}",
    ]
    return table


async def _measured(folder: Path, megabytes: int, rounds: int) -> Findings:
    shell, plain, sealed = list[tuple[float, Sequence[float]]](), list[Carried](), list[Carried]()
    async with _opened(folder, megabytes) as installation:
        at = installation.at
        await asyncio.to_thread(make_message, at, _WARM, 1)
        await asyncio.to_thread(make_message, at, _FILE, megabytes)
        for _ in range(rounds):
            async with _storage(folder) as storage:
                before = children_cpu()
                steps = await asyncio.to_thread(by_hand, at, _FILE, storage)
                shell.append((children_cpu() - before, steps))
                plain.append(await installation.carry(_FILE, storage, sealed=False))
                sealed.append(await installation.carry(_FILE, storage, sealed=True))
        async with _storage(folder) as storage:
            whole = await asyncio.to_thread(in_one_request, at, megabytes, storage)
        await asyncio.to_thread(make_message, at, _FILE, megabytes, planted=True)
        async with _storage(folder) as storage:
            planted = await installation.carry(_FILE, storage, sealed=False)
            blobs = await AzureBlobs(storage, CONTAINER).list("", 10)
    written = [blob.name for blob in blobs if blob.name.endswith(Path(_FILE).stem)]
    return Findings(shell, plain, sealed, whole, planted, written)


def _middles(rows: Sequence[Sequence[float]]) -> list[str]:
    return [f"{middle(each):.1f}" for each in zip(*rows, strict=True)]
