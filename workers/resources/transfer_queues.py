"""How the storage queues of events are reached."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

from workers.settings.errors import SettingsError
from workers.settings.transfers import APP_SETTINGS, INTAKE, QUEUES, StorageQueueSettings

ENTRA_ID: Final = "EntraID"
"""Credential of a queue in the file, in the place of a token."""


@dataclass(frozen=True, slots=True)
class QueueAddress:
    """How a queue is reached; by its URL alone, as whom the process is to Entra ID."""

    name: str
    connection_string: str | None = field(default=None, repr=False)
    url: str | None = None
    sas: str | None = field(default=None, repr=False)
    poison_sas: str | None = field(default=None, repr=False)
    """Of the queue of its dead letters; None: the same token."""


@dataclass(frozen=True, slots=True)
class QueueAddresses:
    """How queues are reached, and what the file says beside that."""

    queues: tuple[QueueAddress, ...]
    poll_seconds: float
    visibility_seconds: int
    unused: tuple[str, ...] = ()
    """Keys of the file that docflow has no use for."""
    warnings: tuple[str, ...] = ()
    """What an operator has to know before messages are received."""


def queue_addresses(settings: StorageQueueSettings, names: tuple[str, ...]) -> QueueAddresses:
    """How the queues are reached.

    Args:
        settings: Of the bridge.
        names: Of the queues that are read where the settings name an account.

    Raises:
        SettingsError: Neither an account nor a file is named, the file is wrong or has a queue that
            nothing serves, or the intake queue cannot be reached or is one of the others.
    """
    if settings.intake in names:
        raise SettingsError(
            f"{INTAKE} names {settings.intake}, whose messages are routed already, for it is one "
            f"of {QUEUES}: name a queue of its own"
        )
    poll = settings.poll_milliseconds / 1_000
    intake = () if settings.intake is None else (settings.intake,)
    if settings.app_settings is None:
        if settings.account is None:
            raise SettingsError(
                "DOCFLOW_TRANSFERS_QUEUE_ACCOUNT is not set: name the account with the queues, or "
                f"with {APP_SETTINGS} a file with their URLs and SAS tokens"
            )
        found = tuple(_of_account(settings.account, name) for name in (*names, *intake))
        return QueueAddresses(found, poll, settings.visibility_seconds)
    return _from_file(settings.app_settings, settings, names)


def _from_file(
    path: Path, settings: StorageQueueSettings, names: tuple[str, ...]
) -> QueueAddresses:
    section = _section(path)
    queues = [
        _address(name, cast(Mapping[str, Any], value))
        for name, value in section.items()
        if isinstance(value, Mapping)
    ]
    if not queues:
        raise SettingsError(f'{APP_SETTINGS}: "Queues" of {path} names no queue')
    named = {each.name for each in queues}
    if unserved := sorted(named - {*names, settings.intake}):
        raise SettingsError(
            f"{APP_SETTINGS}: nothing serves {', '.join(unserved)} of {path}: add each to the file "
            f"of {QUEUES}, name one whose events the rules route with {INTAKE}, or remove it"
        )
    queues += _intake(settings, named)
    poll = section.get("NextCheck")
    return QueueAddresses(
        tuple(queues),
        _milliseconds(poll) if poll is not None else settings.poll_milliseconds / 1_000,
        settings.visibility_seconds,
        tuple(sorted(section.keys() - named - {"NextCheck"})),
        (*_unread(names, named), *_restricted(queues)),
    )


def _intake(settings: StorageQueueSettings, named: set[str]) -> list[QueueAddress]:
    """The intake queue, where the file does not have it."""
    if settings.intake is None or settings.intake in named:
        return []
    if settings.account is None:
        raise SettingsError(
            f"{INTAKE}: {settings.intake} is not in the file of {APP_SETTINGS}: add its Url and "
            "SASToken there, or set DOCFLOW_TRANSFERS_QUEUE_ACCOUNT"
        )
    return [_of_account(settings.account, settings.intake)]


def _of_account(account: str, name: str) -> QueueAddress:
    """A queue of an account, which its connection string names, or its URL."""
    if "://" not in account.partition(";")[0].partition("=")[0]:
        return QueueAddress(name, account)
    _require_tls("DOCFLOW_TRANSFERS_QUEUE_ACCOUNT: the URL", account)
    if urlsplit(account).query:
        raise SettingsError(
            "DOCFLOW_TRANSFERS_QUEUE_ACCOUNT: a URL has no token; put one into the file of "
            f"{APP_SETTINGS}, or name the account by its connection string"
        )
    return QueueAddress(name, url=f"{account.rstrip('/')}/{name}")


def _require_tls(what: str, url: str, *, emulated: bool = False) -> None:
    """An emulator on this machine may do without; a token of Entra ID never goes in the clear."""
    parts = urlsplit(url)
    local = emulated and parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise SettingsError(f"{what} must begin with https://")


def _unread(names: tuple[str, ...], named: set[str]) -> list[str]:
    missing = [name for name in names if name not in named]
    if not missing:
        return []
    return [f"{APP_SETTINGS} has no {', '.join(missing)}: no messages of them are received"]


def _restricted(queues: list[QueueAddress]) -> list[str]:
    """What tokens do not allow, as far as they say."""
    problems: list[str] = []
    for each in queues:
        if each.sas is None:
            continue
        permissions = _permissions(each.sas)
        if permissions is not None and not {"p", "u"} <= permissions:
            problems.append(
                f"queue {each.name}: its SAS token allows {''.join(sorted(permissions))}, and p "
                "(process) and u (update) are needed: messages stay in the queue"
            )
        if not _writes_dead_letters(each):
            problems.append(
                f"queue {each.name}: its SAS token does not reach {each.name}-poison, so a message "
                "that can never be accepted stays in the queue and is received again and again: "
                f"create {each.name}-poison and add a token for it with the permission a (add) as "
                f'"PoisonSASToken" of "{each.name}", or use a token of the account'
            )
    return problems


def _writes_dead_letters(address: QueueAddress) -> bool:
    token = address.poison_sas or address.sas or ""
    # A token of one queue is for that queue alone; that of an account names kinds of resources.
    if address.poison_sas is None and "srt" not in parse_qs(token):
        return False
    permissions = _permissions(token)
    return permissions is None or bool(permissions & {"a", "w"})


def _permissions(sas: str) -> frozenset[str] | None:
    """Letters of what a token allows; None: a stored access policy says so."""
    found = parse_qs(sas).get("sp")
    return None if found is None else frozenset(found[0])


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
    url, sas, credential = (value.get(key) for key in ("Url", "SASToken", "Credential"))
    has_token = isinstance(sas, str) and bool(sas.strip())
    if not isinstance(url, str) or has_token == (credential is not None):
        raise SettingsError(
            f'{APP_SETTINGS}: queue "{name}" needs "Url", and either "SASToken" or "Credential"'
        )
    if credential not in (None, ENTRA_ID):
        raise SettingsError(
            f'{APP_SETTINGS}: "Credential" of queue "{name}" must be "{ENTRA_ID}", or left out'
        )
    _require_tls(f'{APP_SETTINGS}: "Url" of queue "{name}"', url, emulated=has_token)
    parts = urlsplit(url)
    if parts.path.rstrip("/").rsplit("/", 1)[-1] != name:
        raise SettingsError(f'{APP_SETTINGS}: "Url" of queue "{name}" names another queue')
    poison = value.get("PoisonSASToken")
    if poison is not None and (not isinstance(poison, str) or not poison.strip()):
        raise SettingsError(f'{APP_SETTINGS}: "PoisonSASToken" of queue "{name}" must be a token')
    return QueueAddress(
        name,
        url=url,
        sas=_token(sas) if isinstance(sas, str) and has_token else None,
        poison_sas=None if poison is None else _token(poison),
    )


def _token(text: str) -> str:
    return text.strip().lstrip("?")
