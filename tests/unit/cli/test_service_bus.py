"""The queue as commands see it, through the real client."""

import pytest
from azure.servicebus.aio import ServiceBusClient

from emulators.service_bus import QueueSettings as EmulatedQueue
from emulators.service_bus import ServiceBusEmulator
from stack.children import free_port
from workers.imports.settings import QueueSettings
from workers.shared.errors import SettingsError
from workers.shared.services.errors import ServiceError
from workers.shared.services.service_bus import open_queue


def settings(connection_string: str, name: str = "import-queue") -> QueueSettings:
    return QueueSettings(connection_string=connection_string, queue_name=name, max_wait_seconds=1)


async def test_a_sent_message_waits_in_the_queue_and_peeking_does_not_receive_it() -> None:
    async with ServiceBusEmulator([EmulatedQueue("import-queue")]) as emulator:
        async with open_queue(settings(emulator.connection_string)) as queue:
            for number in range(3):
                await queue.send(b'{"n": 1}', f"import/P1/T{number}")
            depth = await queue.depth(2)
            assert (depth.waiting, depth.dead_letters, depth.at_most) == (2, 0, 2)
            assert (await queue.depth(100)).waiting == 3
        async with (
            ServiceBusClient.from_connection_string(emulator.connection_string) as client,
            client.get_queue_receiver("import-queue") as receiver,
        ):
            (message, *_) = await receiver.receive_messages(1, max_wait_time=5)
    assert (b"".join(message.body), message.message_id) == (b'{"n": 1}', "import/P1/T0")
    assert message.content_type == "application/json"


async def test_a_queue_that_is_not_there_is_named() -> None:
    async with (
        ServiceBusEmulator([EmulatedQueue("import-queue")]) as emulator,
        open_queue(settings(emulator.connection_string, "imprt-queue")) as queue,
    ):
        with pytest.raises(ServiceError, match=r"queue 'imprt-queue' .*_QUEUE_NAME right"):
            await queue.send(b"{}", "m")


async def test_an_unavailable_service_bus_is_one_sentence() -> None:
    gone = (
        f"Endpoint=sb://127.0.0.1:{free_port()};SharedAccessKeyName=x;SharedAccessKey=y;"
        "UseDevelopmentEmulator=true;"
    )
    async with open_queue(settings(gone)) as queue:
        with pytest.raises(ServiceError, match="cannot use the Service Bus queue 'import-queue'"):
            await queue.depth(1)


@pytest.mark.parametrize("text", ["x", "Endpoint=;", "Endpoint=sb://x;SharedAccessKeyName="])
async def test_a_connection_string_that_cannot_be_read(text: str) -> None:
    with pytest.raises(SettingsError, match="AZURE_SERVICE_BUS_CONNECTION_STRING cannot be read"):
        async with open_queue(settings(text)):
            pytest.fail("it was opened")
