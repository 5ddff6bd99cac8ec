"""Settings of the `imports` pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from workers.shared.settings.base import Setting, Settings, Whole, parse_list
from workers.shared.settings.common import ServiceBusSettings
from workflows.shared.contracts import OWN_PLACES
from workflows.shared.dependencies import DependencyName


class TypeSettings(Settings):
    """Where the types are that a team declares."""

    title: ClassVar[str] = "Declared types"
    used_by: ClassVar[str] = "`docflow types`"

    folder: Annotated[Path | None, Setting(kind="folder")] = Field(
        None,
        validation_alias="DOCFLOW_TYPES",
        description="folder of the YAML files that declare types of tables",
    )


def _databases(value: object) -> object:
    # Loaded here so that no command pays for it that needs no database.
    from adapters.database.urls import check_url

    if not isinstance(value, str):
        return value
    try:
        urls = TypeAdapter(dict[DependencyName, str]).validate_json(value)
    except ValidationError:
        raise ValueError('must be JSON like {"erp": "postgresql://user@host/name"}') from None
    for name, url in urls.items():
        try:
            check_url(url)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return urls


def _webhooks(value: object) -> object:
    from adapters.http import secret_bytes
    from adapters.log_notifications import check_webhook_url
    from adapters.signed_webhook import SignedWebhook

    if not isinstance(value, str):
        return value
    try:
        read = TypeAdapter(dict[str, _Webhook]).validate_json(value)
    except ValidationError:
        raise ValueError(
            'must be JSON like {"erp": {"url": "https://...", "secret": "whsec_..."}}'
        ) from None
    found: dict[str, SignedWebhook] = {}
    for name, given in read.items():
        secrets = (given.secret,) if isinstance(given.secret, str) else given.secret
        if not secrets or not all(secrets):
            raise ValueError(f"{name}: give one secret, or a list of the new and the old one")
        try:
            url = check_webhook_url(given.url)
            found[name] = SignedWebhook(url, tuple(map(secret_bytes, secrets)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


class _Webhook(BaseModel):
    url: str
    secret: str | tuple[str, ...]


class TargetSettings(Settings):
    """Where rows of declared types may go beside docflow's own tables."""

    title: ClassVar[str] = "Targets of declared types"
    used_by: ClassVar[str] = "workers of imports, `docflow types`, dry runs"

    databases: Annotated[
        Mapping[str, str], BeforeValidator(_databases), Setting(secret=True, kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_TYPE_DATABASES",
        description="name to URL of each PostgreSQL database that `target` of a type may name, as "
        '`{"erp": "postgresql://user:password@host/name"}`',
    )
    webhooks: Annotated[
        Mapping[str, Any], BeforeValidator(_webhooks), Setting(secret=True, kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_TYPE_WEBHOOKS",
        description="name to receiver of each webhook that `target` of a type may name, as "
        '`{"erp": {"url": "https://erp.example.com/docflow", "secret": "whsec_..."}}`; two secrets '
        "are a list of the new and the old one",
    )
    """Name to `SignedWebhook`."""


class QueueSettings(ServiceBusSettings):
    """The Service Bus queue that import messages come from."""

    title: ClassVar[str] = "Queue of imports"
    used_by: ClassVar[str] = "bridges of imports, `docflow submit`, `docflow rejected`"
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
    used_by: ClassVar[str] = "workers and bridges of imports"

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
        "of `docflow submit` and of answers need not be named",
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
