"""A watch of files that have one sequence key, whose worker is killed again and again.

Looks are broken off, events are started and not noted, runs begin late: the files are delivered
in the order of their times all the same.
"""

import json
import os
import random
import signal
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlRouteStore
from adapters.database.engine import open_database
from adapters.database.models.transfers import transfer_turns
from stack.temporal import temporal_server
from tests.crash.transfers import lane_worker
from tests.crash.transfers.lane_worker import Death
from tests.crash.transfers.rounds import TASK_TIMEOUT, moment
from tests.support.forks import FORKS, ended
from tests.support.transfers.http_files import HttpFiles, http_files
from tests.support.transfers.whole import folder_settings
from tests.support.waiting import eventually
from workers.shared.connect import connect
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.scheduled import WatchLook
from workflows.transfers.watches import PollWatchInput, Watch

pytestmark = pytest.mark.chaos(alone=True)

FILES: Final = 6
WATCH: Final = Watch.model_validate(
    {"name": "orders", "partner": "acme", "path": "out/*", "account_id": "A", "settle_seconds": 0}
)
KILLED_AT: Final = ("look", "receive", "load_plan", "take_turn", "write_file", "close")
QUEUES: Final = "queues:\n- name: jobs\n  handler: FileJobHandler\n"


def names(number: int) -> list[str]:
    """Of files, the oldest first: neither by name nor by number."""
    return [f"{chr(ord('z') - each)}.csv" for each in range(number)]


async def prepared(folder: Path, address: str, target: HttpFiles) -> Mapping[str, str]:
    """Settings of the workers, over a folder with files, and a server that takes them."""
    settings = {
        **folder_settings(folder, address, QUEUES),
        "DOCFLOW_TRANSFERS_LOCAL": "true",
    }
    (folder / "acme" / "out").mkdir(parents=True)
    for number, name in enumerate(names(FILES)):
        file = folder / "acme" / "out" / name
        file.write_text(name)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    actions = [
        {"Action": "ReadFile", "Partner": "acme", "Path": "{data.path}", "After": "delete"},
        {"Action": "WriteFile", "Partner": "portal", "Path": "{name}"},
    ]
    job = {"Job": "j", "Queue": "jobs", "SequenceKey": "{accountId}", "Actions": {"List": actions}}
    (folder / "jobsettings.json").write_text(json.dumps({"Jobs": [job]}))
    async with open_database(settings["DATABASE_URL"]) as database:
        partners = SqlPartnerStore(database)
        root = str(folder / "acme")
        await partners.put(Partner(name="acme", kind=PlaceKind.FOLDER, container=root))
        there = {"host": "http://127.0.0.1", "port": target.port}
        await partners.put(Partner(name="portal", kind=PlaceKind.HTTPS, **there))
        await SqlRouteStore(database).put(RouteRule(queue="jobs", rule="all"))
    return settings


async def look(client: Client) -> None:
    """Have the watch look, unless it does."""
    await client.start_workflow(
        WatchLook.run,
        PollWatchInput(watch=WATCH, notices=False),
        id="watch/orders",
        task_queue="transfers",
        task_timeout=TASK_TIMEOUT,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )


@pytest.fixture(autouse=True)
def deaths_are_noticed_soon() -> Iterator[None]:
    with lane_worker.short_heartbeats():
        yield


async def test_files_of_one_key_are_delivered_in_their_order(
    tmp_path: Path, chance: random.Random
) -> None:
    (tmp_path / "temporal").mkdir()
    async with (
        temporal_server(tmp_path / "temporal", ui=False, in_memory=True) as server,
        http_files() as target,
    ):
        client = await connect(server.address)
        settings = await prepared(tmp_path, server.address, target)
        killed = [*KILLED_AT[:2], *chance.choices(KILLED_AT, k=8)]
        await look(client)
        for activity in killed:
            death = Death(f"transfers.{activity}", moment(chance))
            arguments = (tmp_path / "worker.log", settings, None, death)
            dying = FORKS.Process(target=lane_worker.main, args=arguments)
            dying.start()
            try:
                while dying.exitcode is None and len(target.files) < FILES:
                    await look(client)
                    await ended(dying, 1)
            finally:
                dying.kill()
            dying.join()
            assert dying.exitcode == -signal.SIGKILL, (tmp_path / "worker.log").read_text()
        async with lane_worker.lane_worker(settings, None):

            async def is_delivered() -> bool:
                await look(client)
                return len(target.files) == FILES

            await eventually(is_delivered, seconds=120)
            async with open_database(settings["DATABASE_URL"]) as database:

                async def is_over() -> bool:
                    async with database.reading() as connection:
                        return not (await connection.execute(transfer_turns.select())).all()

                await eventually(is_over)
    put = [line.split(" ")[1] for line, _, _ in target.requests if line.startswith("PUT ")]
    assert [path for path, _ in groupby(put)] == [f"/{name}" for name in names(FILES)]
