"""How the storage queues of events are reached."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from workers.settings.errors import SettingsError
from workers.settings.transfers import APP_SETTINGS, StorageQueueSettings


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
