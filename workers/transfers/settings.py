"""Settings of the `transfers` pipeline."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, ClassVar, Final, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from activities.transfers.operators_files import Clocks, Queue, read_clocks, read_queues
from adapters.clamd import DEFAULT_BYTES, ClamdAddress
from workers.shared.errors import SettingsError
from workers.shared.settings.base import Setting, Settings, Whole, parse_flag, parse_list
from workers.shared.settings.common import container_name
from workflows.shared.contracts import built_when_used
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import SecretReference
from workflows.transfers.watches import Watch, check_watch

QUEUES: Final = "DOCFLOW_TRANSFERS_QUEUES"
INTAKE: Final = "DOCFLOW_TRANSFERS_INTAKE_QUEUE"
APP_SETTINGS: Final = "DOCFLOW_TRANSFERS_APPSETTINGS"
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9]{2,57}")
"""Of a table, with room for that of its changes."""
BLOB: Final = "blob:"
"""Begins the name of a blob in the container of the documents."""
_SHIPPED: Final = Path(__file__).with_name("config") / "queues.yaml"


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
    used_by: ClassVar[str] = "workers and bridges of transfers, gateway, `docflow transfer check`"

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
    used_by: ClassVar[str] = "workers of transfers, gateway"

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
        description="connection string of the account with all queues, or its URL where this "
        "process is known to Entra ID; queues that it lacks are named and looked for again",
    )
    app_settings: Annotated[Path | None, Setting(kind="file")] = Field(
        None,
        validation_alias=APP_SETTINGS,
        description="a file as the replaced system's `appsettings.json`: for each queue its `Url` "
        'and `SASToken`, or `"Credential": "EntraID"`, and where it needs one, `PoisonSASToken` of '
        "the queue of its dead letters",
    )
    intake: Annotated[str | None, Setting(kind="text")] = Field(
        None,
        validation_alias=INTAKE,
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


def queues_of(environment: Mapping[str, str]) -> Mapping[str, Queue]:
    """The queues that the settings name, by name.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    named = TransferSettings.read(environment).queue_file
    try:
        return read_queues((named or _SHIPPED).read_text("utf-8"))
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingsError(f"{QUEUES}: {named} cannot be read: {problem}") from error
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


class EndpointSettings(Settings):
    """Which endpoints partners may have, and where their secrets are stored."""

    title: ClassVar[str] = "Partners of transfers"
    used_by: ClassVar[str] = "workers of transfers"

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


_REFERENCE: Final[TypeAdapter[str]] = TypeAdapter(SecretReference, config=built_when_used())
_REFERENCES: Final = "`env:NAME`, `file:PATH` or `aws:NAME`"
_LARGEST: Final = 2_000 << 20
"""clamd scans no file of 2 GB."""


def _reference(value: str) -> str:
    try:
        return _REFERENCE.validate_python(value)
    except ValidationError:
        raise ValueError("must be env:NAME, file:PATH or aws:NAME") from None


def _references(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_reference(each) for each in cast(tuple[str, ...], parse_list(value)))


def _address(value: str | None) -> str | None:
    if value is not None:
        ClamdAddress.parsed(value)
    return value


class TransferFileSettings(Settings):
    """How bytes of transfers are kept between actions, and scanned."""

    title: ClassVar[str] = "Files of transfers"
    used_by: ClassVar[str] = "workers of transfers"

    staging_key: Annotated[
        Annotated[str, AfterValidator(_reference)] | None, Setting(kind=_REFERENCES)
    ] = Field(
        None,
        validation_alias="DOCFLOW_TRANSFERS_STAGING_KEY",
        description="where the key is (32 bytes as base64) that encrypts bytes between "
        "actions and kept copies; without it the former are stored as they are, and no copy "
        "is kept",
    )
    old_staging_keys: Annotated[
        tuple[str, ...], BeforeValidator(_references), Setting(kind="references, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_TRANSFERS_OLD_STAGING_KEYS",
        description="keys that were in use before, for as long as copies are kept",
    )
    clamd_address: Annotated[
        str | None, AfterValidator(_address), Setting(kind="`unix:/PATH` or `tcp:HOST:PORT`")
    ] = Field(
        None,
        validation_alias="CLAMD_ADDRESS",
        description="ClamAV's daemon; without it the action Scan fails",
    )
    clamd_max_bytes: Annotated[int, Whole(1 << 20, _LARGEST), Setting(kind="bytes")] = Field(
        DEFAULT_BYTES,
        validation_alias="CLAMD_MAX_BYTES",
        description="the largest file that clamd scans, by its StreamMaxLength and MaxFileSize; "
        "larger ones count as not scanned",
    )
    clamd_undated: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        False,
        validation_alias="CLAMD_UNDATED",
        description="signatures that state no age are taken for new ones, as those of one's own "
        "are; without it nothing counts as scanned by them",
    )
    quarantine: Annotated[
        Annotated[str, AfterValidator(container_name)] | None,
        Setting(kind="text", default="that of the documents"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_TRANSFERS_QUARANTINE",
        description="the container of infected files, below `quarantine/`; it has to be there",
    )

    @property
    def key_references(self) -> tuple[str, ...]:
        """All keys."""
        return tuple(each for each in (self.staging_key, *self.old_staging_keys) if each)


WATCHES: Final = "DOCFLOW_TRANSFERS_WATCHES"


class WatchSettings(Settings):
    """What transfers do by the clock."""

    title: ClassVar[str] = "Watches of transfers"
    used_by: ClassVar[str] = (
        "workers of transfers, gateway, `docflow schedule`, `docflow transfer check`"
    )

    file: Annotated[Path | None, Setting(kind="file")] = Field(
        None,
        validation_alias=WATCHES,
        description="[watches and expected files](../transfers-watches.md); without it there are "
        "none, and schedules of earlier ones are left alone",
    )


def clocks_of(environment: Mapping[str, str]) -> Clocks | None:
    """Watches and expected files, as the settings name them; None: no file is named.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    named = WatchSettings.read(environment).file
    if named is None:
        return None
    try:
        clocks = read_clocks(named.read_text("utf-8"))
        for watch in clocks.watches.values():
            check_watch(watch)
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingsError(f"{WATCHES}: {named} cannot be read: {problem}") from error
    except RuleViolation as error:
        raise SettingsError(f"{WATCHES}: {named}: {error}") from error
    queues = queues_of(environment)
    for each in (*clocks.watches.values(), *clocks.expected.values()):
        if each.queue is not None and each.queue not in queues:
            raise SettingsError(f"{WATCHES}: {named}: {each.name}: there is no queue {each.queue}")
    return clocks


def watches_of(environment: Mapping[str, str]) -> Mapping[str, Watch]:
    """Watches by name; none where no file is named.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    clocks = clocks_of(environment)
    return {} if clocks is None else clocks.watches
