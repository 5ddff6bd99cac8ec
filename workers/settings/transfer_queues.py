"""Where events come from, and where rules of routes are kept."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from workers.settings.base import Setting, Settings, Whole
from workers.settings.errors import SettingsError

APP_SETTINGS: Final = "DOCFLOW_TRANSFERS_APPSETTINGS"
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9]{2,57}")
"""Of a table, with room for that of its changes."""


def _table(name: str) -> str:
    if not _TABLE.fullmatch(name):
        raise ValueError("must be 3 to 58 letters and digits, and begin with a letter")
    return name


def _account(text: str | None) -> str | None:
    if text is not None:
        named = {part.partition("=")[0].strip().lower() for part in text.split(";")}
        if not named & {"accountkey", "sharedaccesssignature", "usedevelopmentstorage"}:
            raise ValueError("must be a connection string with an account key or a SAS token")
    return text


def _encoding(value: object) -> object:
    if value not in ("auto", "base64", "plain"):
        raise ValueError("must be auto, base64 or plain")
    return value


class RouteSettings(Settings):
    """Where rules of routes are kept."""

    title: ClassVar[str] = "Routes"
    used_by: ClassVar[str] = "workers of transfers, gateway, `docflow routes`"

    account: Annotated[
        str | None,
        AfterValidator(_account),
        Setting(secret=True, kind="text", default="the database"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_TRANSFERS_ROUTES_ACCOUNT",
        description="connection string of the storage account whose table holds the rules",
    )
    table: Annotated[str, AfterValidator(_table)] = Field(
        "jobconfig",
        validation_alias="DOCFLOW_TRANSFERS_ROUTES_TABLE",
        description="that table; changes made through docflow stand in another, "
        "whose name ends with `trail`",
    )


class StorageQueueSettings(Settings):
    """Azure Storage Queues that events come through."""

    title: ClassVar[str] = "Storage queues of transfers"
    used_by: ClassVar[str] = "`docflow bridge storage-queues`"

    account: Annotated[
        str | None,
        Setting(secret=True, kind="text", default="the file of `DOCFLOW_TRANSFERS_APPSETTINGS`"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_TRANSFERS_QUEUE_ACCOUNT",
        description="connection string of the account with all queues; queues that it lacks are "
        "named and looked for again",
    )
    app_settings: Annotated[Path | None, Setting(kind="file")] = Field(
        None,
        validation_alias=APP_SETTINGS,
        description="a file as the replaced system's `appsettings.json`: for each queue its `Url` "
        "and `SASToken`",
    )
    intake: Annotated[str | None, Setting(kind="text")] = Field(
        None,
        validation_alias="DOCFLOW_TRANSFERS_INTAKE_QUEUE",
        description="a queue whose events are routed by the rules; those of the others are "
        "routed already",
    )
    encoding: Annotated[
        str, BeforeValidator(_encoding), Setting(kind="`auto`, `base64` or `plain`")
    ] = Field(
        "auto",
        validation_alias="DOCFLOW_TRANSFERS_QUEUE_ENCODING",
        description="how senders write bodies; `auto` looks at each",
    )
    visibility_seconds: Annotated[int, Whole(10, 7_200)] = Field(
        60,
        validation_alias="DOCFLOW_TRANSFERS_VISIBILITY_SECONDS",
        description="that a message in flight stays hidden; prolonged while it is",
    )
    poll_milliseconds: Annotated[int, Whole(100, 60_000)] = Field(
        1_000,
        validation_alias="DOCFLOW_TRANSFERS_NEXT_CHECK",
        description="between two looks at an empty queue",
    )


class EventHubSettings(Settings):
    """The Azure event hub that events come through."""

    title: ClassVar[str] = "Event hub of transfers"
    used_by: ClassVar[str] = "`docflow bridge event-hub`"

    connection_string: Annotated[str, Setting(secret=True)] = Field(
        validation_alias="DOCFLOW_TRANSFERS_EVENT_HUB",
        description="connection string of the namespace",
    )
    hub: str = Field(
        "fileevents", validation_alias="DOCFLOW_TRANSFERS_EVENT_HUB_NAME", description="the hub"
    )
    group: str = Field(
        "$Default",
        validation_alias="DOCFLOW_TRANSFERS_CONSUMER_GROUP",
        description="its consumer group",
    )
    checkpoints: Annotated[str, Setting(secret=True)] = Field(
        validation_alias="DOCFLOW_TRANSFERS_CHECKPOINT_ACCOUNT",
        description="connection string of the storage account of the checkpoints",
    )
    container: str = Field(
        "checkpoints",
        validation_alias="DOCFLOW_TRANSFERS_CHECKPOINT_CONTAINER",
        description="its container, which exists",
    )


@dataclass(frozen=True, slots=True)
class QueueAddress:
    """How a queue is reached."""

    name: str
    connection_string: str | None = field(default=None, repr=False)
    url: str | None = None
    sas: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class QueueAddresses:
    """How queues are reached, and what the file says beside that."""

    queues: tuple[QueueAddress, ...]
    poll_seconds: float
    visibility_seconds: int
    unused: tuple[str, ...] = ()
    """Keys of the file that docflow has no use for."""


def queue_addresses(settings: StorageQueueSettings, names: tuple[str, ...]) -> QueueAddresses:
    """How the queues are reached.

    Args:
        settings: Of the bridge.
        names: Of the queues that are read where the settings name an account.

    Raises:
        SettingsError: Neither an account nor a file is named, or the file is wrong.
    """
    poll = settings.poll_milliseconds / 1_000
    intake = () if settings.intake is None else (settings.intake,)
    if settings.app_settings is None:
        if settings.account is None:
            raise SettingsError(
                "DOCFLOW_TRANSFERS_QUEUE_ACCOUNT is not set: name the account with the queues, or "
                f"with {APP_SETTINGS} a file with their URLs and SAS tokens"
            )
        found = tuple(QueueAddress(name, settings.account) for name in (*names, *intake))
        return QueueAddresses(found, poll, settings.visibility_seconds)
    return _from_file(settings.app_settings, settings)


def _from_file(path: Path, settings: StorageQueueSettings) -> QueueAddresses:
    section = _section(path)
    queues = [
        _address(name, cast(Mapping[str, Any], value))
        for name, value in section.items()
        if isinstance(value, Mapping)
    ]
    if not queues:
        raise SettingsError(f'{APP_SETTINGS}: "Queues" of {path} names no queue')
    poll = section.get("NextCheck")
    return QueueAddresses(
        tuple(queues),
        _milliseconds(poll) if poll is not None else settings.poll_milliseconds / 1_000,
        settings.visibility_seconds,
        tuple(sorted(section.keys() - {each.name for each in queues} - {"NextCheck"})),
    )


def _milliseconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int) or not 100 <= value <= 60_000:
        raise SettingsError(f'{APP_SETTINGS}: "NextCheck" must be 100 to 60000 milliseconds')
    return value / 1_000


def _section(path: Path) -> Mapping[str, Any]:
    try:
        document: object = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{APP_SETTINGS}: {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{APP_SETTINGS}: {path} is not JSON: {error}") from error
    section: object = None
    if isinstance(document, dict):
        section = cast(Mapping[str, Any], document).get("Queues")
    if not isinstance(section, dict):
        raise SettingsError(f'{APP_SETTINGS}: {path} has no object "Queues"')
    return cast(Mapping[str, Any], section)


def _address(name: str, value: Mapping[str, Any]) -> QueueAddress:
    url, sas = value.get("Url"), value.get("SASToken")
    if not isinstance(url, str) or not isinstance(sas, str) or not sas.strip():
        raise SettingsError(f'{APP_SETTINGS}: queue "{name}" needs "Url" and "SASToken"')
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise SettingsError(f'{APP_SETTINGS}: "Url" of queue "{name}" must begin with https://')
    if parts.path.rstrip("/").rsplit("/", 1)[-1] != name:
        raise SettingsError(f'{APP_SETTINGS}: "Url" of queue "{name}" names another queue')
    return QueueAddress(name, url=url, sas=sas.strip().lstrip("?"))
