"""Settings of the `imports` pipeline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from workers.shared.settings.base import Setting, Settings, Whole, parse_list
from workers.shared.settings.common import ServiceBusSettings
from workers.shared.settings.targets import TargetSettings
from workflows.shared.contracts import OWN_PLACES


class TypeSettings(Settings):
    """Where the types are that a team declares."""

    title: ClassVar[str] = "Declared types"
    used_by: ClassVar[str] = "`docflow type`"

    folder: Annotated[Path | None, Setting(kind="folder")] = Field(
        None,
        validation_alias="DOCFLOW_TYPES",
        description="folder of the YAML files that declare types of tables",
    )


class QueueSettings(ServiceBusSettings):
    """The Service Bus queue that import messages come from."""

    title: ClassVar[str] = "Queue of imports"
    used_by: ClassVar[str] = "workers and bridges of imports, `docflow setup`"
    queue_setting: ClassVar[str] = "AZURE_SERVICE_BUS_QUEUE_NAME"

    queue_name: str = Field(
        "import-queue", validation_alias="AZURE_SERVICE_BUS_QUEUE_NAME", description="the queue"
    )


def _prefixes(value: tuple[str, ...]) -> tuple[str, ...]:
    prefixes = tuple(f"{prefix.strip('/')}/" for prefix in value)
    if "/" in prefixes:
        raise ValueError("a prefix without a name permits nothing; leave the setting out instead")
    if own := [prefix for prefix in prefixes if prefix.startswith(OWN_PLACES)]:
        raise ValueError(f"{own[0]} is docflow's own place")
    return prefixes


class RunSettings(Settings):
    """How import runs behave."""

    title: ClassVar[str] = "Import runs"
    used_by: ClassVar[str] = "workers and bridges of imports, gateway"

    small_document_bytes: Annotated[int, Whole(0, 100_000_000)] = Field(
        1_000_000,
        validation_alias="DOCFLOW_SMALL_DOCUMENT_BYTES",
        description="documents up to this size run inside the workflow's own worker",
    )
    blob_prefixes: Annotated[
        tuple[str, ...],
        BeforeValidator(parse_list),
        AfterValidator(_prefixes),
        Setting(kind="list of prefixes", default="anywhere but in docflow's own places"),
    ] = Field(
        (),
        validation_alias="DOCFLOW_IMPORT_PREFIXES",
        description="where the blobs are that messages may name, as `incoming/,sched/`; documents "
        "of `docflow import submit` and of answers need not be named",
    )
    park_for_days: Annotated[int, Whole(1, 3650)] = Field(
        14,
        validation_alias="DOCFLOW_PARK_FOR_DAYS",
        description="days that a parked run waits for an answer, as set where its message was "
        "received",
    )


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker of imports needs."""

    runs: RunSettings
    targets: TargetSettings


@dataclass(frozen=True)
class BridgeSettings:
    """What the bridge of imports needs: where messages come from, and how their runs behave."""

    queue: QueueSettings
    runs: RunSettings
