"""Import messages that were rejected, sent to their queue again."""

from typing import Final

from workers.services.imports.messages import read_message
from workers.services.resubmission import QueueSender
from workers.services.service_bus import ServiceBusSender
from workers.settings.imports import QueueSettings

SENDER: Final[QueueSender] = ServiceBusSender(
    read_message, lambda message: message.workflow_id, QueueSettings.read
)
