"""Settings of the `jobs` pipeline."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from contracts.jobs import HEAVY_MEMORY, RESULT_BYTES
from workers.machine import cores
from workers.settings.base import Setting, Settings, Whole, parse_flag
from workers.settings.blobs import BlobSettings, container_name
from workers.settings.common import ServiceBusSettings


class TierSettings(Settings):
    """Containers of spatial data, in the same storage account or folder as the documents."""

    title: ClassVar[str] = "Data of jobs"
    used_by: ClassVar[str] = "workers and gateway of jobs, commands that submit jobs"

    bronze: Annotated[str, AfterValidator(container_name)] = Field(
        "bronze",
        validation_alias="DOCFLOW_BRONZE_CONTAINER",
        description="data as it came in; without it, `docflow worker all` leaves out jobs",
    )
    silver: Annotated[str, AfterValidator(container_name)] = Field(
        "silver",
        validation_alias="DOCFLOW_SILVER_CONTAINER",
        description="data ready for analysis",
    )
    gold: Annotated[str, AfterValidator(container_name)] = Field(
        "gold", validation_alias="DOCFLOW_GOLD_CONTAINER", description="published exports"
    )

    def of(self, blobs: BlobSettings) -> tuple[BlobSettings, BlobSettings, BlobSettings]:
        """Bronze, silver and gold, beside the container of the documents."""
        bronze, silver, gold = (
            blobs.model_copy(update={"container": name})
            for name in (self.bronze, self.silver, self.gold)
        )
        return bronze, silver, gold


class JobSettings(TierSettings):
    """The same, and how workers of jobs work."""

    title: ClassVar[str] = "Workers of jobs"
    used_by: ClassVar[str] = "workers of jobs"

    result_bytes: Annotated[int, Whole(1_000, 1_000_000)] = Field(
        RESULT_BYTES,
        validation_alias="DOCFLOW_JOBS_RESULT_BYTES",
        description="longer results of tasks go to the blob store, not to the table",
    )
    light_slots: Annotated[int, Whole(1, 1_000)] = Field(
        30,
        validation_alias="DOCFLOW_JOBS_LIGHT_SLOTS",
        description="light tasks at once in a worker; its processes divide them",
    )
    light_tuned: Annotated[bool, BeforeValidator(parse_flag), Setting(kind="`true` or `false`")] = (
        Field(
            False,
            validation_alias="DOCFLOW_JOBS_LIGHT_TUNED",
            description="begin fewer of them while more than 80 % of memory or processor are used, "
            "by Temporal's resource-based tuner",
        )
    )
    heavy_slots: Annotated[
        int | None, Whole(1, 1_000), Setting(kind="whole number", default="processors")
    ] = Field(
        None,
        validation_alias="DOCFLOW_JOBS_HEAVY_SLOTS",
        description="heavy tasks at once in a worker; its processes divide them",
    )

    heavy_memory: Annotated[
        int | None,
        Whole(256, 1_000_000, unit=1 << 20),
        Setting(kind="whole number of MB", default="1536 for rasters, 4096 for others"),
    ] = Field(
        None,
        validation_alias=HEAVY_MEMORY,
        description="address space of the process of a heavy task; what needs more fails",
    )
    keep_days: Annotated[int, Whole(1, 3_650)] = Field(
        90,
        validation_alias="DOCFLOW_JOBS_KEEP_DAYS",
        description="days that tasks, plans, results and webhooks of jobs that have ended are kept",
    )

    @property
    def heavy(self) -> int:
        """Heavy tasks at once: as set, or one for each processor."""
        return self.heavy_slots or cores()


class JobQueueSettings(ServiceBusSettings):
    """The Service Bus queue that messages of jobs come from."""

    title: ClassVar[str] = "Queue of jobs"
    used_by: ClassVar[str] = "bridge of jobs, `docflow rejected`"
    queue_setting: ClassVar[str] = "DOCFLOW_JOBS_QUEUE"

    queue_name: str = Field("jobs", validation_alias="DOCFLOW_JOBS_QUEUE", description="the queue")
