"""Messages of jobs that were rejected, sent to their queue again.

One whose secret was left out of the record is refused. The key is the id of the sender, under which
docflow knows one job.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from workers.services.dead_letters import DeadLetters
from workers.services.jobs.messages import read_message
from workers.services.resubmission import QueueSender
from workers.services.service_bus import ServiceBusSender
from workers.services.service_bus_dead_letters import open_service_bus_dead_letters
from workers.settings.jobs import JobQueueSettings

SENDER: Final[QueueSender] = ServiceBusSender(
    read_message, lambda message: message.job_id, JobQueueSettings.read
)


def dead_letters(environment: Mapping[str, str]) -> AbstractAsyncContextManager[DeadLetters]:
    """The dead letters of the queue.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    return open_service_bus_dead_letters(JobQueueSettings.read(environment))
