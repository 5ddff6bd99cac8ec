"""A worker that is killed within any action: files are written whole and once, or not at all.

Each round has a worker, a queue and folders of its own. Its worker is killed at a random moment
after one of the activities has begun; another one brings the transfer to its end.
"""

import asyncio
import hashlib
import json
import random
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.client import Client

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import open_database
from stack.clamd import clamd
from stack.temporal import temporal_server
from tests.crash.transfers import lane_worker
from tests.crash.transfers.lane_worker import Death
from tests.crash.transfers.rounds import killed_once, moment, result_of
from tests.support.fresh_database import fresh_url
from tests.support.transfers.events import a_job_order, an_event
from tests.support.transfers.http_files import HttpFiles, http_files
from tests.support.transfers.openpgp import Forge
from tests.support.transfers.secrets import PlantedSecrets
from tests.support.transfers.sftp_server import PASSWORD, SftpSite, sftp_site
from workers.shared.connect import connect
from workflows.transfers.events import queue_task_queue
from workflows.transfers.partners import OpenPgpKey, Partner, PlaceKind
from workflows.transfers.receipts import verify
from workflows.transfers.runs import TransferView

pytestmark = [pytest.mark.chaos(alone=True), pytest.mark.gnupg]

AT_ONCE: Final = 4
BYTES: Final = 4 << 20
"""A database at the newest schema: every round has a copy."""
ACTIVITIES: Final = (
    *("read_file", "checksum", "compress", "extract", "encrypt", "decrypt", "sign", "verify"),
    *("scan", "write_file", "fire_event", "call_http", "receipt", "keep", "settle_source", "close"),
)


@dataclass(frozen=True)
class Keys:
    """Ours and those of the partner, and where the private ones are found."""

    ours: tuple[OpenPgpKey, ...]
    """For what we send to the partner."""
    theirs: tuple[OpenPgpKey, ...]
    """For what the partner would do with it."""
    own: str
    environment: Mapping[str, str]


@dataclass
class World:
    """What all rounds use."""

    folder: Path
    address: str
    scanner: str | None
    keys: Keys
    site: SftpSite
    hook: HttpFiles
    client: Client
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


def keys_of(folder: Path) -> Keys:
    """A key of ours and one of the partner, each as it stands in the record of the other."""
    forge, secrets = Forge(folder), PlantedSecrets()
    us, acme = forge.party("us"), forge.party("acme")
    forge.close()
    ours, theirs = (us.own(secrets), acme.partner()), (acme.own(secrets), us.partner())
    environment = {name.removeprefix("env:"): text for name, text in secrets.values.items()}
    return Keys(ours, theirs, us.fingerprint, environment)


@asynccontextmanager
async def opened(folder: Path, *, scans: bool) -> AsyncGenerator[World]:
    """Temporal, an SFTP server, an HTTP server, clamd, keys."""
    short = Path(tempfile.mkdtemp(prefix="forge-", dir="/dev/shm"))
    try:
        keys = await asyncio.to_thread(keys_of, short)
    finally:
        shutil.rmtree(short, ignore_errors=True)
    (folder / "temporal").mkdir()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        scanner = await stack.enter_async_context(clamd(folder / "clamd")) if scans else None
        site = await stack.enter_async_context(sftp_site(folder / "site"))
        hook = await stack.enter_async_context(http_files())
        yield World(
            folder, server.address, scanner, keys, site, hook, await connect(server.address)
        )


@dataclass(frozen=True)
class Round:
    """One transfer, whose worker is killed once."""

    world: World
    name: str
    death: Death
    content: bytes

    @property
    def queue(self) -> str:
        return self.name

    @cached_property
    def settings(self) -> Mapping[str, str]:
        folder = self.world.folder / self.name
        found = {
            "TEMPORAL_ADDRESS": self.world.address,
            "DATABASE_URL": fresh_url(),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DOCFLOW_TRANSFERS_SETTINGS": str(folder / "jobsettings.json"),
            "DOCFLOW_TRANSFERS_QUEUES": str(folder / "queues.yaml"),
            "DOCFLOW_TRANSFERS_LOCAL": "true",
            "DOCFLOW_TRANSFERS_STAGING_KEY": "env:STAGING",
            "STAGING": "c3RhZ2luZyBrZXkgb2YgMzIgYnl0ZXMgZm9yIHRlc3Q=",
            "SFTP_PASSWORD": PASSWORD,
            "CLAMD_UNDATED": "true",
            **self.world.keys.environment,
        }
        if self.world.scanner is not None:
            found["CLAMD_ADDRESS"] = self.world.scanner
        return found

    @property
    def source(self) -> Path:
        return self.world.site.folder / self.name / "in"

    @property
    def target(self) -> Path:
        return self.world.site.folder / self.name / "out"

    def actions(self) -> list[dict[str, Any]]:
        """Every kind of action."""
        own = self.world.keys.own
        scan = [] if self.world.scanner is None else [{"Action": "Scan"}]
        return [
            {
                "Action": "ReadFile",
                "Partner": "acme",
                "Path": f"{self.name}/in/orders.csv",
                "After": "move",
                "MoveTo": f"{self.name}/done/{{name}}",
            },
            {"Action": "Checksum", "Expected": "{data.sha256}"},
            {"Action": "Compress", "Format": "zip"},
            {"Action": "Extract"},
            {"Action": "Encrypt", "Partner": "acme", "SignWith": own},
            {"Action": "Decrypt", "Partner": "us"},
            {"Action": "Sign", "Partner": "acme", "SignWith": own},
            {"Action": "Verify", "Partner": "us"},
            *scan,
            {"Action": "WriteFile", "Partner": "acme", "Path": f"{self.name}/out/{{name}}"},
            {
                "Action": "FireEvent",
                "Queue": f"{self.name}-next",
                "Source": "docflow",
                "Subject": "{name}",
            },
            {"Action": "CallHttp", "Partner": "hook", "Path": f"/{self.name}"},
        ]

    async def prepare(self) -> None:
        """Its database, partners, settings and file."""
        folder = self.world.folder / self.name
        for each in (folder / "blobs", self.source, self.target, self.source.parent / "done"):
            each.mkdir(parents=True)
        (self.source / "orders.csv").write_bytes(self.content)
        names = (self.queue, f"{self.name}-next")
        lines = (f"- name: {name}\n  handler: x\n" for name in names)
        (folder / "queues.yaml").write_text("queues:\n" + "".join(lines))
        job = {
            "Job": "orders",
            "Queue": self.queue,
            "KeepCopyDays": 5,
            "Actions": {"List": self.actions()},
        }
        (folder / "jobsettings.json").write_text(json.dumps({"Jobs": [job]}))
        hook = {"host": "http://127.0.0.1", "port": self.world.hook.port}
        async with open_database(self.settings["DATABASE_URL"]) as database:
            partners = SqlPartnerStore(database)
            keys = self.world.keys
            await partners.put(self.world.site.partner(keys=keys.ours))
            await partners.put(self.world.site.partner(name="us", keys=keys.theirs))
            await partners.put(Partner(name="hook", kind=PlaceKind.HTTPS, **hook))

    async def run(self) -> TransferView:
        """Start the transfer, have its worker killed, and another one end it."""
        await self.prepare()
        order = a_job_order(self.event(), queue=self.queue)
        log = self.world.folder / self.name / "worker.log"
        run = await killed_once(self.world.client, self.settings, order, self.death, log)
        self.assert_whole_or_missing()
        async with lane_worker.lane_worker(self.settings, self.queue):
            return await result_of(run)

    def event(self) -> dict[str, Any]:
        return an_event(id=self.name, data={"sha256": self.digest()})

    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def assert_whole_or_missing(self) -> None:
        """What has its name is whole, at the source and at the destination."""
        written = self.target / "orders.csv"
        assert not written.exists() or written.read_bytes() == self.content, self.name
        places = [self.source / "orders.csv", self.source.parent / "done" / "orders.csv"]
        there = [each for each in places if each.exists()]
        assert [each.read_bytes() for each in there] == [self.content], self.name

    async def assert_done(self, view: TransferView) -> None:
        """Everything happened once, and nothing is left."""
        assert view.status == "Succeeded", f"{self.name}: {view}"
        assert names(self.target) == ["orders.csv"], self.name
        assert names(self.source) == [], self.name
        assert names(self.source.parent / "done") == ["orders.csv"], self.name
        self.assert_whole_or_missing()
        calls = [
            headers["idempotency-key"]
            for line, headers, _ in self.world.hook.requests
            if line.startswith(f"POST /{self.name} ")
        ]
        assert calls and len(set(calls)) == 1, self.name
        next_queue = queue_task_queue(f"{self.name}-next")
        counted = f"WorkflowType = 'FileJob' AND TaskQueue = '{next_queue}'"
        assert (await self.world.client.count_workflows(counted)).count == 1, self.name
        blobs = self.world.folder / self.name / "blobs"
        left = [each for each in blobs.rglob("staging/*/*") if each.is_file()]
        assert left == [], self.name
        async with open_database(self.settings["DATABASE_URL"]) as database:
            row = await SqlTransferStore(database).get(view.transfer_id)
        assert row is not None and row.receipt is not None and row.kept is not None, self.name
        (receipt,) = blobs.rglob(f"{view.transfer_id}.json")
        stored = json.loads(receipt.read_text())
        assert verify(stored).whole, self.name
        steps = [each["action"] for each in stored["steps"]]
        assert steps == [each["Action"] for each in self.actions()], self.name


def names(folder: Path) -> list[str]:
    """Of what is in a folder."""
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture(autouse=True)
def deaths_are_noticed_soon() -> Iterator[None]:
    with lane_worker.short_heartbeats():
        yield


@pytest.mark.parametrize("scans", [False, pytest.param(True, marks=pytest.mark.clamd)])
async def test_a_worker_killed_within_an_action_leaves_whole_files_or_none(
    scans: bool, tmp_path: Path, chance: random.Random
) -> None:
    killed = ["scan"] if scans else [each for each in ACTIVITIES if each != "scan"]
    content = bytes(chance.choices(b"0123456789;\n", k=BYTES))
    async with opened(tmp_path, scans=scans) as world:

        async def one(activity: str) -> None:
            death = Death(f"transfers.{activity}", moment(chance))
            round = Round(world, activity.replace("_", "-"), death, content)
            async with world.turns:
                await round.assert_done(await round.run())

        async with asyncio.TaskGroup() as group:
            for activity in killed:
                group.create_task(one(activity))
