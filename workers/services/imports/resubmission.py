"""Import messages that were rejected, sent to their queue again."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from workers.services.dead_letters import DeadLetters
from workers.services.imports.messages import read_message
from workers.services.resubmission import QueueSender
from workers.services.service_bus import ServiceBusSender
from workers.services.service_bus_dead_letters import open_service_bus_dead_letters
from workers.settings.imports import QueueSettings

SENDER: Final[QueueSender] = ServiceBusSender(
    read_message, lambda message: message.workflow_id, QueueSettings.read
)


def dead_letters(environment: Mapping[str, str]) -> AbstractAsyncContextManager[DeadLetters]:
    """The dead letters of the queue.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    return open_service_bus_dead_letters(QueueSettings.read(environment))
