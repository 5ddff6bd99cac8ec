"""Settings of the `transfers` pipeline."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, ClassVar, Final, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from domain.errors import RuleViolation
from domain.transfers.queues import Queue, read_queues
from workers.settings.base import Setting, Settings, parse_flag, parse_list
from workers.settings.errors import SettingsError

QUEUES: Final = "DOCFLOW_TRANSFERS_QUEUES"
BLOB: Final = "blob:"
"""Begins the name of a blob in the container of the documents."""
_SHIPPED: Final = Path(__file__).parents[1] / "config" / "queues.yaml"


def _settings_place(value: str) -> str:
    if value.startswith(BLOB):
        if not value.removeprefix(BLOB):
            raise ValueError("must name a blob after `blob:`")
    elif "://" in value and urlsplit(value).scheme != "https":
        raise ValueError("must be a path, `blob:NAME` or an https:// address")
    return value


class TransferSettings(Settings):
    """What workers of transfers do, and for whom."""

    title: ClassVar[str] = "Transfers"
    used_by: ClassVar[str] = "workers of transfers, `docflow transfers`, `docflow routes`"

    job_settings: Annotated[
        str,
        AfterValidator(_settings_place),
        Setting(kind="path, `blob:NAME` or https:// address"),
    ] = Field(
        "jobsettings.json",
        validation_alias="DOCFLOW_TRANSFERS_SETTINGS",
        description="the file of job settings, [jobsettings.json](../transfers.md#job-settings); "
        "without it, `docflow worker all` leaves out transfers",
    )
    queue_file: Annotated[
        Path | None, Setting(kind="file", default="the queues that docflow ships")
    ] = Field(
        None,
        validation_alias=QUEUES,
        description="the queues, with their slots and rates",
    )


def queues_of(environment: Mapping[str, str]) -> Mapping[str, Queue]:
    """The queues that the settings name, by name.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    named = TransferSettings.read(environment).queue_file
    try:
        return read_queues((named or _SHIPPED).read_text("utf-8"))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingsError(f"{QUEUES}: {named} cannot be read: {said}") from error
    except RuleViolation as error:
        raise SettingsError(f"{QUEUES}: {named or 'the file of docflow'}: {error}") from error


def _networks(value: object) -> object:
    if not isinstance(value, str):
        return value
    found: list[IPv4Network | IPv6Network] = []
    for part in cast(tuple[str, ...], parse_list(value)):
        try:
            found.append(ip_network(part))
        except ValueError:
            raise ValueError(f"must be networks like 10.20.0.0/16, with commas: {part!r}") from None
    return tuple(found)


def _folders(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = tuple(Path(part) for part in cast(tuple[str, ...], parse_list(value)))
    relative = [str(each) for each in found if not each.is_absolute()]
    if relative:
        raise ValueError(f"must be absolute paths, with commas: {relative[0]!r}")
    return found


class FarEndSettings(Settings):
    """Which far ends partners may have, and where their secrets are kept."""

    title: ClassVar[str] = "Partners of transfers"
    used_by: ClassVar[str] = "workers of transfers, `docflow partners`"

    hosts: Annotated[
        tuple[str, ...], BeforeValidator(parse_list), Setting(kind="host names, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_TRANSFERS_HOSTS",
        description="the only hosts that are connected to, `*.example.org` for all below one; "
        "without it every host with a permitted address",
    )
    networks: Annotated[
        tuple[IPv4Network | IPv6Network, ...],
        BeforeValidator(_networks),
        Setting(kind="networks, with commas"),
    ] = Field(
        (),
        validation_alias="DOCFLOW_TRANSFERS_NETWORKS",
        description="private networks of partners, as `10.20.0.0/16`; without it only public "
        "addresses are connected to",
    )
    local: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        False,
        validation_alias="DOCFLOW_TRANSFERS_LOCAL",
        description="partners may be on this machine, and without TLS: for development",
    )
    folders: Annotated[
        tuple[Path, ...], BeforeValidator(_folders), Setting(kind="folders, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_TRANSFERS_FOLDERS",
        description="folders below which those of partners are; without it no partner has one",
    )
    secret_folders: Annotated[
        tuple[Path, ...],
        BeforeValidator(_folders),
        Setting(kind="folders, with commas", default="/run/secrets,/var/run/secrets"),
    ] = Field(
        (Path("/run/secrets"), Path("/var/run/secrets")),
        validation_alias="DOCFLOW_TRANSFERS_SECRET_FOLDERS",
        description="folders below which `file:` references name secrets of partners",
    )
