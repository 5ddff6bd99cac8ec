"""Settings of the queue of jobs."""

from typing import ClassVar

from pydantic import Field

from workers.settings.common import ServiceBusSettings


class JobQueueSettings(ServiceBusSettings):
    """The Service Bus queue that messages of jobs come from."""

    title: ClassVar[str] = "Queue of jobs"
    used_by: ClassVar[str] = "bridge of jobs, `docflow rejected`"
    queue_setting: ClassVar[str] = "DOCFLOW_JOBS_QUEUE"

    queue_name: str = Field("jobs", validation_alias="DOCFLOW_JOBS_QUEUE", description="the queue")
