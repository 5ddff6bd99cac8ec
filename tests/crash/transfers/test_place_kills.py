"""A worker that is killed while it reads from a place of any kind, writes to it or settles there.

The file has its name there whole, once, or not at all. Kinds that cannot rename (`sftp-direct`) are
left out: their receipts say that the guarantee is another one.
"""

import asyncio
import json
import random
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.client import Client

from activities.transfers.partner_store import SqlPartnerStore
from adapters.database.engine import open_database
from adapters.ports.places import FileMissing
from stack.temporal import temporal_server
from tests.adapters.transfers.conftest import (
    Endpoint,
    Kind,
    aws_account,
    azure_account,
    endpoint,
    kind,
)
from tests.crash.transfers import lane_worker
from tests.crash.transfers.lane_worker import Death
from tests.crash.transfers.rounds import killed_once, moment, result_of
from tests.support.fresh_database import fresh_url
from tests.support.transfers.events import a_job_order, an_event
from tests.support.transfers.places import joined, write
from workers.shared.connect import connect
from workflows.transfers.runs import TransferView

__all__ = ["aws_account", "azure_account", "kind"]

pytestmark = pytest.mark.chaos(alone=True)

BYTES: Final = 4 << 20
"""A database at the newest schema: every round has a copy."""
ACTIVITIES: Final = ("read_file", "write_file")
SETTLING: Final = ("settle_source",)
KINDS: Final = [
    *("s3", "folder", "sftp-non-atomic", "azure", "https"),
    pytest.param("openssh", marks=pytest.mark.openssh),
]


@dataclass(frozen=True)
class Round:
    """One transfer within one place, whose worker is killed once."""

    folder: Path
    far: Endpoint
    queue: str
    settings: Mapping[str, str]
    content: bytes

    @property
    def source(self) -> str:
        return f"{self.queue}/in/orders.csv"

    @property
    def target(self) -> str:
        return f"{self.queue}/out/orders.csv"

    @property
    def settled(self) -> str:
        """Where the source is after the last action."""
        return self.source if self.far.kind == "https" else f"{self.queue}/done/orders.csv"

    async def prepare(self) -> None:
        """Its database, partner, settings and file."""
        self.folder.mkdir()
        (self.folder / "blobs").mkdir()
        async with open_database(self.settings["DATABASE_URL"]) as database:
            await SqlPartnerStore(database).put(self.far.partner)
        after = {"After": "move", "MoveTo": self.settled} if self.settled != self.source else {}
        actions = [
            {"Action": "ReadFile", "Partner": "acme", "Path": self.source, **after},
            {"Action": "WriteFile", "Partner": "acme", "Path": self.target},
        ]
        job = {"Job": "orders", "Queue": self.queue, "Actions": {"List": actions}}
        (self.folder / "jobsettings.json").write_text(json.dumps({"Jobs": [job]}))
        (self.folder / "queues.yaml").write_text(f"queues:\n- name: {self.queue}\n  handler: x\n")
        async with self.far.open() as place:
            for path in (self.source, self.target, self.settled):
                if self.far.folder is not None:
                    (self.far.folder / path).parent.mkdir(parents=True, exist_ok=True)
            await write(place, self.source, self.content)

    async def run(self, client: Client, death: Death) -> TransferView:
        """Start the transfer, have its worker killed, and another one end it."""
        order = a_job_order(an_event(id=self.queue), queue=self.queue)
        run = await killed_once(client, self.settings, order, death, self.folder / "worker.log")
        assert await self.read(self.target) in (None, self.content), self.queue
        sources = {await self.read(path) for path in (self.source, self.settled)}
        assert sources - {None} == {self.content}, self.queue
        async with lane_worker.lane_worker(self.settings, self.queue):
            return await result_of(run)

    async def read(self, path: str) -> bytes | None:
        """What has that name; None: nothing has."""
        async with self.far.open() as place:
            try:
                return await joined(place.read(await place.stat(path)))
            except FileMissing:
                return None

    async def assert_done(self, view: TransferView) -> None:
        """It is there once, and the source was settled."""
        assert view.status == "Succeeded", f"{self.queue}: {view}"
        assert await self.read(self.target) == self.content, self.queue
        assert await self.read(self.settled) == self.content, self.queue
        if self.settled != self.source:
            assert await self.read(self.source) is None, self.queue
        if self.far.kind != "https":
            async with self.far.open() as place:
                found = await place.list(f"{self.queue}/out/*", 10)
            assert [each.path for each in found] == [self.target], self.queue


def settings_of(folder: Path, address: str, far: Endpoint) -> dict[str, str]:
    """Of a worker that reaches the endpoint."""
    secrets: Any = far.places.secrets
    found = {
        **secrets.environment,
        "TEMPORAL_ADDRESS": address,
        "DATABASE_URL": fresh_url(),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_TRANSFERS_SETTINGS": str(folder / "jobsettings.json"),
        "DOCFLOW_TRANSFERS_QUEUES": str(folder / "queues.yaml"),
        "DOCFLOW_TRANSFERS_LOCAL": "true",
    }
    if far.kind == "folder":
        found["DOCFLOW_TRANSFERS_FOLDERS"] = str(far.folder)
    return found


@pytest.fixture(autouse=True)
def deaths_are_noticed_soon() -> Iterator[None]:
    with lane_worker.short_heartbeats():
        yield


@pytest.mark.parametrize("kind", KINDS, indirect=True)
async def test_a_worker_killed_at_a_place_leaves_whole_files_or_none(
    kind: Kind, tmp_path: Path, chance: random.Random
) -> None:
    content = bytes(chance.choices(b"0123456789;\n", k=BYTES))
    (tmp_path / "temporal").mkdir()
    turns = asyncio.Semaphore(4)
    async with (
        temporal_server(tmp_path / "temporal", ui=False, in_memory=True) as server,
        endpoint(kind, tmp_path) as far,
    ):
        client = await connect(server.address)

        async def one(activity: str) -> None:
            queue = f"{activity.replace('_', '-')}-{uuid.uuid4().hex[:8]}"
            folder = tmp_path / queue
            round = Round(folder, far, queue, settings_of(folder, server.address, far), content)
            async with turns:
                await round.prepare()
                death = Death(f"transfers.{activity}", moment(chance))
                await round.assert_done(await round.run(client, death))

        async with asyncio.TaskGroup() as group:
            # Files of a web server cannot be moved.
            for activity in (*ACTIVITIES, *(() if far.kind == "https" else SETTLING)):
                for _ in range(2):
                    group.create_task(one(activity))
