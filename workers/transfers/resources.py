"""What the `transfers` pipeline uses beyond the adapters that all pipelines share."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import parse_qs, urlsplit

from activities.transfers.api import installed_actions
from activities.transfers.archives import ArchivePorts, ScanPorts
from activities.transfers.crypto import CryptoPorts
from activities.transfers.custom import CustomPorts
from activities.transfers.endpoints import Breaker, EndpointPorts
from activities.transfers.operators_files import Queue
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.receipt import FinalizerDeps, ReceiptDeps
from activities.transfers.reception import PlanningPorts, ReceivingPorts, RouteCache
from activities.transfers.settings_files import LocalSettings, RemoteSettings, StoredSettings
from activities.transfers.store import SqlRouteStore, SqlSequenceLocks, SqlTransferStore
from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
from activities.transfers.watches import ExpectedPorts, WatchPollDeps
from adapters.aws.session import AwsSettings
from adapters.clamd import Clamd, ClamdAddress
from adapters.database.engine import Database
from adapters.files.archives import ArchiveFiles
from adapters.files.openpgp.keyring import GnuPg
from adapters.places.custom import installed_kinds
from adapters.places.egress import Egress
from adapters.places.partner_places import PartnerPlaces, SessionPool, Sessions
from adapters.ports.blobs import Blobs
from adapters.ports.errors import PortError
from adapters.ports.records import OpenRow, RejectionRecord
from adapters.ports.transfers import (
    EventSender,
    PartnerStore,
    RouteStore,
    Secrets,
    SettingsSource,
    StartedJobs,
)
from adapters.secrets import ReferencedSecrets
from adapters.staging import BlobCopies, BlobNotes, BlobStaging, SealedBlobs, StagingKeys
from workers.shared.errors import SettingsError
from workers.shared.settings.aws import read_aws
from workers.shared.settings.base import SECRETS_DIR
from workers.shared.settings.check import declared_groups
from workers.shared.settings.common import BlobSettings
from workers.shared.settings.payloads import PayloadSettings
from workers.shared.tables import open_blobs
from workers.transfers.settings import (
    APP_SETTINGS,
    BLOB,
    INTAKE,
    QUEUES,
    EndpointSettings,
    RouteSettings,
    StorageQueueSettings,
    TransferFileSettings,
    TransferSettings,
)
from workflows.shared.errors import RuleViolation
from workflows.transfers.job_settings import read_settings
from workflows.transfers.routes import RouteTable
from workflows.transfers.runs import file_job_id
from workflows.transfers.settings_check import watch_loops
from workflows.transfers.watches import Watch

if TYPE_CHECKING:
    from adapters.places.sftp_session import SftpSession


_OWN = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "TEMPORAL_API_KEY")


def partner_secrets(environment: Mapping[str, str]) -> ReferencedSecrets:
    """Secrets by reference; docflow's own are none of a partner's.

    Raises:
        SettingsError: A setting is wrong.
    """
    declared = (each for group in declared_groups() for each in group.declared())
    own = {name for each in declared if each.setting.secret for name in each.names}
    keys = [
        each.partition(":")
        for each in (
            *TransferFileSettings.read(environment).key_references,
            *PayloadSettings.read(environment).references.values(),
        )
    ]
    own |= {*_OWN, *(name for kind, _, name in keys if kind == "env")}
    return ReferencedSecrets(
        environment,
        own,
        [*_files_of(environment, own), *(Path(name) for kind, _, name in keys if kind == "file")],
        EndpointSettings.read(environment).secret_folders,
        secret_manager(environment),
    )


def _files_of(environment: Mapping[str, str], own: Collection[str]) -> Iterator[Path]:
    """Where docflow's own secrets are files."""
    folder = environment.get(SECRETS_DIR, "").strip()
    for name in own:
        if named := environment.get(f"{name}_FILE", "").strip():
            yield Path(named)
        if folder:
            yield from (Path(folder) / name, Path(folder) / name.lower())


def partner_places(
    environment: Mapping[str, str],
    partners: PartnerStore,
    secrets: ReferencedSecrets,
    pool: "SessionPool[SftpSession] | None" = None,
) -> PartnerPlaces:
    """Endpoints, as the settings permit them.

    Args:
        environment: Settings.
        partners: Where sessions are counted.
        secrets: Finds those of partners.
        pool: Reuses sessions, from one step to the next.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = EndpointSettings.read(environment)
    egress = Egress(settings.hosts, settings.networks, settings.local, settings.folders)
    return PartnerPlaces(secrets, Sessions(partners), egress, pool=pool)


def endpoint_ports(
    environment: Mapping[str, str],
    database: Database,
    blobs: Blobs,
    staging: BlobStaging,
    secrets: ReferencedSecrets,
    pool: "SessionPool[SftpSession]",
) -> EndpointPorts:
    """What actions at endpoints are given.

    Args:
        environment: Settings.
        database: Where records and sessions of partners are kept.
        blobs: The container of documents; notes of attempts lie there.
        staging: Bytes between actions.
        secrets: Finds those of partners.
        pool: Reuses sessions, from one step to the next.

    Raises:
        SettingsError: A setting is wrong.
    """
    partners = SqlPartnerStore(database)
    places = partner_places(environment, partners, secrets, pool)
    # A probe has ten seconds in all: one that waited for a session would look as if the partner
    # did not answer.
    probes = replace(places, sessions=Sessions(partners, wait=0.0), pool=None)
    breaker = Breaker(places, probes=probes)
    return EndpointPorts(breaker, partners, staging, BlobNotes(blobs), breaker.probing)


def secret_manager(environment: Mapping[str, str]) -> AwsSettings | None:
    """Where Secrets Manager is; None: no region is set, so there is none."""
    try:
        return read_aws(environment)
    except SettingsError:
        return None


@dataclass(frozen=True)
class FilePorts:
    """What activities on files are given."""

    staging: BlobStaging
    crypto: CryptoPorts
    archives: ArchivePorts
    scan: ScanPorts
    receipts: ReceiptDeps
    copies: BlobCopies
    scanner: Clamd | None
    keeps_copies: bool
    """Whether there is a key to encrypt them with."""


def sealed_blobs(environment: Mapping[str, str], blobs: Blobs) -> SealedBlobs:
    """Blobs of the staging area, and kept copies, with their keys.

    Args:
        environment: Settings.
        blobs: The container of documents.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = TransferFileSettings.read(environment)
    # Its keys are docflow's own, which no partner is given.
    secrets = ReferencedSecrets(
        environment,
        folders=EndpointSettings.read(environment).secret_folders,
        aws=secret_manager(environment),
    )
    return SealedBlobs(blobs, StagingKeys(secrets, settings.staging_key, settings.old_staging_keys))


def file_ports(
    environment: Mapping[str, str],
    blobs: Blobs,
    partners: PartnerStore,
    secrets: Secrets,
    scratch: Path,
) -> FilePorts:
    """Wire the adapters of actions on files.

    Args:
        environment: Settings.
        blobs: The container of documents.
        partners: Records, with their keys.
        secrets: Of partners.
        scratch: Folder for temporary files.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = TransferFileSettings.read(environment)
    sealed = sealed_blobs(environment, blobs)
    staging, copies = BlobStaging(sealed), BlobCopies(sealed)
    scanner = None
    if settings.clamd_address is not None:
        scanner = Clamd(ClamdAddress.parsed(settings.clamd_address), settings.clamd_max_bytes)
    return FilePorts(
        staging=staging,
        crypto=CryptoPorts(GnuPg(secrets), partners, staging, scratch),
        archives=ArchivePorts(ArchiveFiles(), secrets, staging, scratch),
        scan=ScanPorts(
            scanner, _quarantine(environment, settings, blobs), staging, settings.clamd_undated
        ),
        receipts=ReceiptDeps(blobs, copies, staging),
        copies=copies,
        scanner=scanner,
        keeps_copies=settings.staging_key is not None,
    )


def _quarantine(
    environment: Mapping[str, str], settings: TransferFileSettings, blobs: Blobs
) -> Blobs:
    if settings.quarantine is None:
        return blobs
    named = BlobSettings.read(environment).model_copy(update={"container": settings.quarantine})
    return open_blobs(named)


class Sender(EventSender, StartedJobs, Protocol):
    """Sends events, and knows the jobs that they have started."""


@dataclass(frozen=True)
class TransfersOpened:
    """The tables of transfers, and what their activities are given."""

    store: SqlTransferStore
    partners: PartnerStore
    queues: Mapping[str, Queue]
    staging: BlobStaging
    receiving: ReceivingPorts
    planning: PlanningPorts
    closing: FinalizerDeps
    ends: EndpointPorts
    """What actions at endpoints are given."""
    openpgp: GnuPg
    crypto: CryptoPorts
    archives: ArchivePorts
    scan: ScanPorts
    custom: CustomPorts
    receipts: ReceiptDeps
    copies: BlobCopies
    scanner: Clamd | None
    """None: the settings name none."""
    sender: EventSender
    watches: WatchPollDeps
    expected: ExpectedPorts


class TransferRows:
    """Rows of runs that are over; what such a run has staged is removed with its row.

    Args:
        store: The rows.
        staging: The bytes.
    """

    def __init__(self, store: SqlTransferStore, staging: BlobStaging) -> None:
        self._store, self._staging = store, staging

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Transfers that have not ended."""
        return await self._store.open_rows(before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a transfer as failed, after its bytes: a row that stays open is seen again."""
        transfer_id = id.split("/")[1]
        if id == file_job_id(transfer_id):
            await self._staging.remove(transfer_id)
        return await self._store.terminate(id, reason, unchanged_since)


def transfer_resources(
    settings: TransferSettings,
    queues: Mapping[str, Queue],
    database: Database,
    blobs: Blobs,
    rejected: RejectionRecord,
    scratch: Path,
    ends: EndpointPorts,
    files: FilePorts,
    sender: Sender,
    watch_sender: EventSender,
    routes: RouteStore,
) -> TransfersOpened:
    """Wire the adapters of transfers.

    Args:
        settings: Of its workers.
        queues: By name.
        database: Where rows, rules and partners are kept.
        blobs: The container of documents.
        rejected: Keeps messages that are not events.
        scratch: Folder for temporary files.
        ends: What actions at endpoints are given.
        files: What actions on files are given.
        sender: Has events of jobs carried out.
        watch_sender: Has events of watches carried out.
        routes: The rules.
    """
    store, partners, turns = (
        SqlTransferStore(database),
        SqlPartnerStore(database),
        SqlSequenceLocks(database),
    )
    source = settings_source(settings.job_settings, blobs, scratch)
    actions = installed_actions()
    # A package with an error is named when the worker starts, and not by the first run.
    installed_kinds()
    return TransfersOpened(
        store=store,
        partners=partners,
        queues=queues,
        staging=files.staging,
        receiving=ReceivingPorts(store, RouteCache(routes), queues, rejected, sender),
        planning=PlanningPorts(source, partners, queues, turns, store, files.keeps_copies, actions),
        closing=FinalizerDeps(store, files.staging),
        ends=ends,
        openpgp=files.crypto.openpgp,
        crypto=files.crypto,
        archives=files.archives,
        scan=files.scan,
        custom=CustomPorts(actions, files.staging, scratch),
        receipts=files.receipts,
        copies=files.copies,
        scanner=files.scanner,
        sender=sender,
        watches=WatchPollDeps(
            ends.places, partners, SqlWatchStore(database), watch_sender, store, turns
        ),
        expected=ExpectedPorts(SqlExpectedStore(database), routes),
    )


async def watch_loops_in(
    source: SettingsSource, watches: Mapping[str, Watch], routes: RouteStore
) -> Sequence[str]:
    """Jobs that a watch may start again for the files that they write, as far as is known.

    What cannot be read now is passed over: the runs that need it say so.
    """
    if not watches:
        return ()
    try:
        settings = read_settings((await source.read()).text)
        rules = RouteTable(await routes.rules())
    except (PortError, RuleViolation):
        return ()
    return tuple(watch_loops(settings, watches, rules))


def route_store(environment: Mapping[str, str], database: Database) -> RouteStore:
    """Where the rules are kept, as the settings say.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = RouteSettings.read(environment)
    if settings.account is None:
        return SqlRouteStore(database)
    # Its SDK takes 5 MB of memory, which only installations with such a table need.
    from adapters.azure.route_table import AzureRouteTable

    return AzureRouteTable(settings.account, settings.table, retry_total=2)


def settings_source(place: str, blobs: Blobs, scratch: Path) -> SettingsSource:
    """Where the settings of jobs are, as the setting names it."""
    if place.startswith(BLOB):
        return StoredSettings(blobs, place.removeprefix(BLOB), scratch)
    return RemoteSettings(place) if "://" in place else LocalSettings(Path(place))


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
