"""Messages of jobs that were rejected, sent to their queue again.

One whose secret was left out of the record is refused. The key is the id of the sender, under which
docflow knows one job.
"""

from typing import Final

from workers.services.jobs.messages import read_message
from workers.services.resubmission import QueueSender
from workers.services.service_bus import ServiceBusSender
from workers.settings.jobs import JobQueueSettings

SENDER: Final[QueueSender] = ServiceBusSender(
    read_message, lambda message: message.job_id, JobQueueSettings.read
)
