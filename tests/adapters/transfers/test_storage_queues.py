"""Events of several storage queues, through the bridge."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from azure.storage.queue import QueueSasPermissions, generate_queue_sas
from azure.storage.queue.aio import QueueClient

from stack.azurite import azurite
from tests.support.waiting import eventually
from workers.bridges.retry import Retry
from workers.bridges.storage_queue import POISON
from workers.bridges.totals import BridgeError, BridgeTotals
from workers.bridges.transfer_queues import StorageQueuesBridge
from workers.health import Health
from workers.resources.transfer_queues import QueueAddresses, queue_addresses
from workers.services.verdicts import Abandon, DeadLetter, Settle, Verdict
from workers.settings.errors import SettingsError
from workers.settings.transfers import StorageQueueSettings


class Account:
    """An account, and what came through its queues."""

    def __init__(self, connection_string: str) -> None:
        self.connection_string = connection_string
        self.seen: Counter[tuple[str, bytes]] = Counter()

    def client(self, queue: str) -> QueueClient:
        return QueueClient.from_connection_string(self.connection_string, queue)

    async def create(self, *queues: str) -> None:
        for queue in queues:
            async with self.client(queue) as client:
                await client.create_queue()

    async def send(self, queue: str, body: str) -> None:
        async with self.client(queue) as client:
            await client.send_message(body)

    def addresses(self, *queues: str) -> QueueAddresses:
        given = {
            "DOCFLOW_TRANSFERS_QUEUE_ACCOUNT": self.connection_string,
            "DOCFLOW_TRANSFERS_NEXT_CHECK": "100",
        }
        return queue_addresses(StorageQueueSettings.read(given), queues)

    def intake_of(self, queue: str) -> "Intake":
        return Intake(queue, self.seen)


@dataclass
class Intake:
    """Takes everything but two bodies: one that never can be, and one that is not taken now."""

    queue: str
    seen: Counter[tuple[str, bytes]]

    async def accept(self, raw: bytes, earlier: int, message_id: str | None) -> Verdict:
        self.seen[self.queue, raw] += 1
        if raw == b"{bad}":
            return DeadLetter("InvalidMessage", "no event")
        odd = Abandon("Temporal: INTERNAL", passes=False)
        return odd if raw == b"{odd}" else Settle("x")

    async def give_up(
        self, raw: bytes, earlier: int, message_id: str | None, reason: str
    ) -> Verdict:
        self.seen[self.queue, b"given up"] += 1
        return Abandon(reason) if earlier < 1 else DeadLetter("NotAccepted", reason)

    async def ready(self) -> bool:
        return True


@pytest_asyncio.fixture
async def account(tmp_path: Path) -> AsyncGenerator[Account]:
    """An emulated storage account."""
    async with azurite(tmp_path) as connection_string:
        yield Account(connection_string)


async def test_all_queues_are_drained(account: Account) -> None:
    await account.create("jobs", "jobstmsroute")
    await account.send("jobs", '{"id": 1}')
    await account.send("jobstmsroute", base64.b64encode(b'{"id": 2}').decode())
    bridge = StorageQueuesBridge(account.addresses("jobs", "jobstmsroute"), account.intake_of)
    totals = await bridge.run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=2, settled=2)
    assert set(account.seen) == {("jobs", b'{"id": 1}'), ("jobstmsroute", b'{"id": 2}')}


async def test_what_can_never_be_accepted_lies_in_the_poison_queue(account: Account) -> None:
    await account.create("jobs")
    await account.send("jobs", "{bad}")
    bridge = StorageQueuesBridge(account.addresses("jobs"), account.intake_of)
    totals = await bridge.run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=1, dead_lettered=1)
    async with account.client("jobs" + POISON) as poison:
        assert [each.content for each in await poison.peek_messages()] == ["{bad}"]


async def test_what_is_never_accepted_lies_in_the_poison_queue_after_its_deliveries(
    account: Account,
) -> None:
    await account.create("jobs")
    await account.send("jobs", "{odd}")
    at_once = Retry(first_pause=0.01, longest_pause=0.01, hold=0)
    bridge = StorageQueuesBridge(account.addresses("jobs"), account.intake_of, retry=at_once)
    totals = await bridge.run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=2, dead_lettered=1, abandoned=1)
    assert account.seen["jobs", b"given up"] == 2
    async with account.client("jobs" + POISON) as poison:
        assert [each.content for each in await poison.peek_messages()] == ["{odd}"]


async def test_a_missing_queue_holds_no_other_up_and_is_found_later(account: Account) -> None:
    await account.create("jobs")
    health = Health()
    bridge = StorageQueuesBridge(
        account.addresses("jobs", "jobstmsroute"),
        account.intake_of,
        health=health,
        look_again=0.2,
    )
    stop = asyncio.Event()
    run = asyncio.create_task(bridge.run(stop))
    await account.send("jobs", '{"id": 1}')

    async def seen(queue: str) -> bool:
        return any(name == queue for name, _ in account.seen)

    await eventually(lambda: seen("jobs"))
    await eventually(lambda: _true(health.ready))
    await account.create("jobstmsroute")
    await account.send("jobstmsroute", '{"id": 2}')
    await eventually(lambda: seen("jobstmsroute"))
    stop.set()
    assert (await run).settled == 2
    assert not health.ready


async def test_an_account_without_any_of_the_queues_is_refused(account: Account) -> None:
    bridge = StorageQueuesBridge(account.addresses("jobs", "jobshr"), account.intake_of)
    with pytest.raises(BridgeError, match=r"no queue jobs; .*no queue jobshr; "):
        await bridge.run(asyncio.Event())


async def test_queues_are_reached_as_the_old_settings_say(account: Account, tmp_path: Path) -> None:
    await account.create("jobs")
    async with account.client("jobs") as client:
        url = client.url
        sas = generate_queue_sas(
            account_name=client.account_name or "",
            queue_name="jobs",
            account_key=client.credential.account_key,
            permission=QueueSasPermissions(read=True, process=True, update=True),
            expiry="2099-01-01",
        )
    file = tmp_path / "appsettings.json"
    file.write_text(
        json.dumps(
            {
                "Queues": {
                    "jobs": {"Url": url, "SASToken": "?" + sas},
                    "NextCheck": 200,
                    "NextWriteForLogs": 60,
                    "VisibilityTimeout": 120,
                }
            }
        )
    )
    settings = StorageQueueSettings.read({"DOCFLOW_TRANSFERS_APPSETTINGS": str(file)})
    addresses = queue_addresses(settings, ("jobs", "jobstmsroute"))
    assert addresses.poll_seconds == 0.2
    assert addresses.unused == ("NextWriteForLogs", "VisibilityTimeout")
    assert [each.name for each in addresses.queues] == ["jobs"]
    await account.send("jobs", '{"id": 1}')
    bridge = StorageQueuesBridge(addresses, account.intake_of)
    assert (await bridge.run(asyncio.Event(), drain=True)).settled == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", 'has no object "Queues"'),
        ('{"Queues": {"NextCheck": 5}}', "names no queue"),
        ('{"Queues": {"jobs": {"Url": "https://a/jobs"}}}', 'needs "Url" and "SASToken"'),
        ('{"Queues": {"jobs": {"Url": "http://a/jobs", "SASToken": "s"}}}', "https://"),
        ('{"Queues": {"jobs": {"Url": "https://a/job", "SASToken": "s"}}}', "another queue"),
        (
            '{"Queues": {"jobs": {"Url": "https://a/jobs", "SASToken": "s"}, "NextCheck": 5}}',
            "100 to 60000",
        ),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "appsettings.json"
    file.write_text(content)
    settings = StorageQueueSettings.read({"DOCFLOW_TRANSFERS_APPSETTINGS": str(file)})
    with pytest.raises(SettingsError, match=reason):
        queue_addresses(settings, ())


def test_neither_account_nor_file_is_named() -> None:
    with pytest.raises(SettingsError, match="DOCFLOW_TRANSFERS_QUEUE_ACCOUNT is not set"):
        queue_addresses(StorageQueueSettings.read({}), ())


async def _true(value: bool) -> bool:
    return value
