"""Settings of the `jobs` pipeline and of its webhooks."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from workers.shared.machine import cores
from workers.shared.settings.base import Setting, Settings, Whole, parse_flag
from workers.shared.settings.common import BlobSettings, ServiceBusSettings, container_name
from workers.shared.settings.webhooks import ReceiverSettings
from workflows.jobs.definitions import HEAVY_MEMORY
from workflows.jobs.records import RESULT_BYTES

LIVE_SECRETS: Final = 2
"""Under one name: today's, and the one that it takes the place of."""
_SECRETS: Final = TypeAdapter[dict[str, str | tuple[str, ...]]](dict[str, str | tuple[str, ...]])


def _named(value: object) -> object:
    from adapters.http import secret_bytes

    if not isinstance(value, str):
        return value
    try:
        read = _SECRETS.validate_json(value)
    except ValidationError:
        raise ValueError('must be JSON like {"client": "whsec_..."}') from None
    named: dict[str, tuple[bytes, ...]] = {}
    for name, given in read.items():
        secrets = (given,) if isinstance(given, str) else given
        if not 1 <= len(secrets) <= LIVE_SECRETS or not all(secrets):
            raise ValueError(f"{name}: give one secret, or a list of the new and the old one")
        try:
            named[name] = tuple(map(secret_bytes, secrets))
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    return named


class WebhookSettings(Settings):
    """How messages about the ends of jobs are signed, and who may be sent them."""

    title: ClassVar[str] = "Webhooks of jobs"
    used_by: ClassVar[str] = "workers of jobs, gateway, bridges of jobs"

    receivers: ReceiverSettings
    named_secrets: Annotated[
        Mapping[str, tuple[bytes, ...]], BeforeValidator(_named), Setting(secret=True, kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_JOBS_WEBHOOK_SECRETS",
        description="name to secret, or to a list of the new and the old one; requests give the "
        "name as `webhook_secret_name`",
    )


class TierSettings(Settings):
    """Containers of spatial data, in the same storage account or folder as the documents."""

    title: ClassVar[str] = "Data of jobs"
    used_by: ClassVar[str] = "workers and bridges of jobs, gateway, `docflow setup`"

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
        description="light tasks at once in a worker",
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
        description="heavy tasks at once in a worker",
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
    used_by: ClassVar[str] = "workers and bridges of jobs, `docflow setup`"
    queue_setting: ClassVar[str] = "DOCFLOW_JOBS_QUEUE"

    queue_name: str = Field("jobs", validation_alias="DOCFLOW_JOBS_QUEUE", description="the queue")
