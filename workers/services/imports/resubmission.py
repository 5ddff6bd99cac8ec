"""Import messages that were rejected, sent to their queue again."""

from collections.abc import Mapping
from typing import Final

from workers.services import service_bus
from workers.services.imports.messages import read_message
from workers.services.resubmission import QueueSender
from workers.settings.imports import QueueSettings


class ImportSender:
    """Validates import messages, and sends them to the Service Bus queue."""

    def check(self, body: bytes) -> None:
        """Check a message as the bridge does.

        Raises:
            RefusedMessage: It would be rejected.
        """
        read_message(body)

    async def send(self, environment: Mapping[str, str], body: bytes, message_id: str) -> None:
        """Send a message; it is in the queue when this returns.

        Raises:
            SettingsError: A setting is missing or wrong.
            QueueUnavailable: It cannot be sent, or it is not known whether it was.
        """
        async with service_bus.open_queue(QueueSettings.read(environment)) as opened:
            await opened.send(body, message_id)


SENDER: Final[QueueSender] = ImportSender()
