"""Messages of jobs that were rejected, sent to their queue again."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from workers.services import service_bus
from workers.services.dead_letters import DeadLetters
from workers.services.jobs.messages import read_message
from workers.services.resubmission import QueueSender
from workers.services.service_bus_dead_letters import open_service_bus_dead_letters
from workers.settings.jobs import JobQueueSettings


class JobSender:
    """Validates messages of jobs, and sends them to the Service Bus queue."""

    def check(self, body: bytes) -> None:
        """Check a message as the bridge does.

        Raises:
            RefusedMessage: It would be rejected, or its secret was left out of the record.
        """
        read_message(body)

    def key(self, body: bytes) -> str:
        """The id of the sender, under which docflow knows one job.

        Raises:
            RefusedMessage: It would be rejected.
        """
        return read_message(body).job_id

    async def send(self, environment: Mapping[str, str], body: bytes, message_id: str) -> None:
        """Send a message; it is in the queue when this returns.

        Raises:
            SettingsError: A setting is missing or wrong.
            QueueUnavailable: It cannot be sent, or it is not known whether it was.
        """
        async with service_bus.open_queue(JobQueueSettings.read(environment)) as opened:
            await opened.send(body, message_id)


SENDER: Final[QueueSender] = JobSender()


def dead_letters(environment: Mapping[str, str]) -> AbstractAsyncContextManager[DeadLetters]:
    """The dead letters of the queue.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    return open_service_bus_dead_letters(JobQueueSettings.read(environment))
