"""The dead letters of a Service Bus queue, through the real client."""

from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from emulators.service_bus import QueueSettings, ServiceBusEmulator
from emulators.tests.clients import quick_client
from workers.shared.services.dead_letters import open_dead_letters
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.service_bus import DeadLetter

QUEUE = "import-queue"


@pytest_asyncio.fixture
async def settings(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, str]]:
    """A namespace whose queue has given three messages up."""
    quick = partial(ServiceBusClient.from_connection_string, socket_timeout=0.05)
    monkeypatch.setattr(ServiceBusClient, "from_connection_string", quick)
    async with ServiceBusEmulator([QueueSettings(QUEUE), QueueSettings("jobs")]) as emulator:
        async with (
            quick_client(emulator.connection_string) as client,
            client.get_queue_sender(QUEUE) as sender,
            client.get_queue_receiver(QUEUE) as receiver,
        ):
            for number in range(3):
                message = ServiceBusMessage(f'{{"n": {number}}}', message_id=f"m{number}")
                await sender.send_messages(message)
                (received,) = await receiver.receive_messages(1, max_wait_time=5)
                await receiver.dead_letter_message(
                    received, reason="GivenUp", error_description="after ten deliveries"
                )
        yield {
            "AZURE_SERVICE_BUS_CONNECTION_STRING": emulator.connection_string,
            "AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE,
        }


async def waiting(settings: dict[str, str]) -> list[str]:
    connection = settings["AZURE_SERVICE_BUS_CONNECTION_STRING"]
    async with (
        quick_client(connection) as client,
        client.get_queue_receiver(QUEUE) as receiver,
    ):
        return [str(message) for message in await receiver.peek_messages(10)]


def bodies(letters: Sequence[DeadLetter]) -> list[bytes]:
    return [letter.body for letter in letters]


async def test_dead_letters_are_listed_sent_again_and_purged(settings: dict[str, str]) -> None:
    async with open_dead_letters(settings, QUEUE) as letters:
        first, second, third = await letters.list(10)
        assert (first.queue, first.message_id, first.body) == (QUEUE, "m0", b'{"n": 0}')
        assert (first.reason, first.description) == ("GivenUp", "after ten deliveries")
        assert [each.number for each in await letters.list(2)] == [first.number, second.number]
        assert bodies(await letters.resubmit([second.number, 999], None)) == [b'{"n": 1}']
        assert await waiting(settings) == ['{"n": 1}']
        corrected = await letters.resubmit([third.number], b'{"n": "corrected"}')
        assert bodies(corrected) == [b'{"n": 2}']
        assert await waiting(settings) == ['{"n": 1}', '{"n": "corrected"}']
        assert [each.number for each in await letters.list(10)] == [first.number]
        assert bodies(await letters.purge(None)) == [first.body]
        assert await letters.list(10) == []
        assert await letters.resubmit(None, None) == []


async def test_a_queue_that_no_setting_names_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match=f"no setting names queue 'other'; they name {QUEUE}"):
        async with open_dead_letters(settings, "other"):
            pass


async def test_of_two_queues_with_one_name_a_person_says_which(settings: dict[str, str]) -> None:
    both = {**settings, "DOCFLOW_JOBS_QUEUE": QUEUE, "DOCFLOW_BRONZE_CONTAINER": "bronze"}
    both |= {"AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE}
    said = f"bridges service-bus and job-queue both receive from a queue named '{QUEUE}'"
    for queue in (QUEUE, None):
        with pytest.raises(InvalidRequest, match=said):
            async with open_dead_letters(both, queue):
                pytest.fail("one of them was opened")
    async with open_dead_letters(both, QUEUE, "service-bus") as letters:
        assert letters.queue == QUEUE
    with pytest.raises(InvalidRequest, match="no setting names bridge 'event-hub'; they name"):
        async with open_dead_letters(both, None, "event-hub"):
            pytest.fail("another one was opened")
