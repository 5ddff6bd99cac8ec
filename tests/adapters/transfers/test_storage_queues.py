"""Events of several storage queues, through the bridge."""

import asyncio
import base64
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from azure.storage.queue import QueueSasPermissions, generate_queue_sas
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from tests.support.waiting import eventually
from workers.shared.bridges.consumer import BridgeError, BridgeTotals, Retry
from workers.shared.bridges.storage_queue import POISON
from workers.shared.errors import SettingsError
from workers.shared.health import Health
from workers.shared.services.bodies import Abandon, DeadLetter, Settle, Verdict
from workers.transfers.bridge import StorageQueuesBridge
from workers.transfers.resources import QueueAddresses, queue_addresses
from workers.transfers.settings import StorageQueueSettings


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
async def account(azure_account: str) -> Account:
    """An emulated storage account without a queue."""
    async with QueueServiceClient.from_connection_string(azure_account) as service:
        async for queue in service.list_queues():
            await service.delete_queue(queue)
    return Account(azure_account)


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


async def test_the_dead_letter_queue_is_reached_with_a_token_of_its_own(
    account: Account, tmp_path: Path
) -> None:
    await account.create("jobs", "jobs" + POISON)
    await account.send("jobs", "{bad}")
    async with account.client("jobs") as client:
        url = client.url

        def sas(queue: str, **permissions: bool) -> str:
            return generate_queue_sas(
                account_name=client.account_name or "",
                queue_name=queue,
                account_key=client.credential.account_key,
                permission=QueueSasPermissions(**permissions),
                expiry="2099-01-01",
            )

        own = sas("jobs", process=True, update=True)
        poison = sas("jobs" + POISON, add=True)
    without = addresses_of(tmp_path, jobs={"Url": url, "SASToken": own})
    [warning] = without.warnings
    assert "does not reach jobs-poison" in warning and '"PoisonSASToken" of "jobs"' in warning
    addresses = addresses_of(tmp_path, jobs={"Url": url, "SASToken": own, "PoisonSASToken": poison})
    assert addresses.warnings == ()
    totals = await StorageQueuesBridge(addresses, account.intake_of).run(
        asyncio.Event(), drain=True
    )
    assert totals == BridgeTotals(received=1, dead_lettered=1)
    async with account.client("jobs" + POISON) as client:
        assert [each.content for each in await client.peek_messages()] == ["{bad}"]


JOBS = {"Url": "https://a/jobs", "SASToken": "sv=1&srt=o&sp=apu"}
INTAKE = {"Url": "https://a/events", "SASToken": "sv=1&srt=o&sp=apu"}


def addresses_of(
    folder: Path, names: tuple[str, ...] = ("jobs",), **queues: dict[str, str]
) -> QueueAddresses:
    file = folder / "appsettings.json"
    file.write_text(json.dumps({"Queues": queues}))
    settings = StorageQueueSettings.read(
        {"DOCFLOW_TRANSFERS_APPSETTINGS": str(file), "DOCFLOW_TRANSFERS_INTAKE_QUEUE": "events"}
        if "events" in queues
        else {"DOCFLOW_TRANSFERS_APPSETTINGS": str(file)}
    )
    return queue_addresses(settings, names)


def test_the_intake_queue_of_a_file_is_read(tmp_path: Path) -> None:
    found = addresses_of(tmp_path, jobs=JOBS, events=INTAKE)
    assert [each.name for each in found.queues] == ["jobs", "events"]
    assert found.warnings == ()


def test_a_queue_that_nothing_serves_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing serves jobz of .*DOCFLOW_TRANSFERS_QUEUES"):
        addresses_of(tmp_path, jobs=JOBS, jobz={"Url": "https://a/jobz", "SASToken": "s"})


def test_queues_without_an_address_and_tokens_that_allow_too_little_are_named(
    tmp_path: Path,
) -> None:
    reads = {**JOBS, "SASToken": "sv=1&srt=o&sp=ra"}
    [unread, token] = addresses_of(tmp_path, ("jobs", "jobshr"), jobs=reads).warnings
    assert unread.endswith("has no jobshr: no messages of them are received")
    assert token.startswith("queue jobs: its SAS token allows ar, and p (process) and u (update)")


def test_an_intake_queue_beside_a_file_has_the_account(tmp_path: Path) -> None:
    file = tmp_path / "appsettings.json"
    file.write_text(json.dumps({"Queues": {"jobs": JOBS}}))
    given = {
        "DOCFLOW_TRANSFERS_APPSETTINGS": str(file),
        "DOCFLOW_TRANSFERS_INTAKE_QUEUE": "events",
    }
    with pytest.raises(SettingsError, match="events is not in the file"):
        queue_addresses(StorageQueueSettings.read(given), ("jobs",))
    given["DOCFLOW_TRANSFERS_QUEUE_ACCOUNT"] = "UseDevelopmentStorage=true"
    found = queue_addresses(StorageQueueSettings.read(given), ("jobs",))
    assert [each.name for each in found.queues] == ["jobs", "events"]
    with pytest.raises(SettingsError, match="whose messages are routed already"):
        queue_addresses(StorageQueueSettings.read(given), ("events",))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", 'has no object "Queues"'),
        ('{"Queues": {"NextCheck": 5}}', "names no queue"),
        (
            '{"Queues": {"jobs": {"Url": "https://a/jobs"}}}',
            'needs "Url", and either "SASToken" or "Credential"',
        ),
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
        queue_addresses(settings, ("jobs",))


def test_neither_account_nor_file_is_named() -> None:
    with pytest.raises(SettingsError, match="DOCFLOW_TRANSFERS_QUEUE_ACCOUNT is not set"):
        queue_addresses(StorageQueueSettings.read({}), ())


async def _true(value: bool) -> bool:
    return value
