"""Partners: who they are, how they are reached, and what their records must hold."""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import Enum, StrEnum
from typing import Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, StringConstraints

from workflows.shared.contracts import Contract, Person
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import FilePath, PartnerName, SecretReference, Sentence
from workflows.transfers.paths import path_problem

KEYS: Final = 20
HOSTS: Final = 10

Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9A-F]{40,64}$")]
"""Of an OpenPGP key: upper-case hex without blanks."""


Algorithm = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9@.-]{0,63}$")]
"""Of SSH, as its registry names it."""


class PlaceKind(StrEnum):
    """Protocols."""

    FOLDER = "folder"
    """A folder of the worker's machine, or a file share that is mounted there."""
    SFTP = "sftp"
    AZURE_BLOB = "azure-blob"
    S3 = "s3"
    HTTPS = "https"
    CUSTOM = "custom"
    """Of an installed package, which `custom` of the record names."""


class HostKey(Contract):
    """A key by which an SFTP server is known."""

    key: str = Field(max_length=2_000)
    """As in `known_hosts`: algorithm and base64."""
    valid_from: date | None = None
    valid_until: date | None = None


class OpenPgpKey(Contract):
    """A key of a partner, or of ours."""

    fingerprint: Fingerprint
    public: str | None = Field(default=None, max_length=100_000)
    """Armoured."""
    private: SecretReference | None = None
    """Armoured too; only for our own."""
    passphrase: SecretReference | None = None
    own: bool = False
    """Ours: an expired one still decrypts. A partner's that has expired never encrypts."""


class Limits(Contract):
    """What a partner bears, over all queues and workers."""

    sessions: int = Field(default=4, ge=1, le=100)
    connections_per_second: float = Field(default=2, gt=0, le=100)
    bytes_per_second: int | None = Field(default=None, ge=1_024)


class Window(Contract):
    """When a partner may be used: every day on which it is listed, in the partner's zone."""

    weekdays: tuple[int, ...] = Field(default=(0, 1, 2, 3, 4, 5, 6), max_length=7)
    """0 is Monday."""
    opens: str = Field(default="00:00", pattern=r"^[0-2][0-9]:[0-5][0-9]$")
    closes: str = Field(default="24:00", pattern=r"^[0-2][0-9]:[0-5][0-9]$")
    """Before `opens`: on the next day."""


class Rename(StrEnum):
    """How a server lets a file appear whole."""

    ATOMIC_REPLACE = "atomic-replace"
    """A rename replaces what is there in one step."""
    NON_ATOMIC = "non-atomic"
    """A rename onto an existing name is refused: what is there is removed first."""
    DIRECT = "direct"
    """No rename: written under its own name, and read back."""


class WriteMode(StrEnum):
    """How files are written, where a person knows better than a probe."""

    DIRECT = "direct"
    """Under their own names: for servers that take a file as soon as it is closed."""
    RENAME = "rename"
    """Under a temporary name, which a rename replaces in one step."""
    RENAME_AFTER = "rename-after"
    """Likewise, after an earlier file of that name was removed."""


class ServerProfile(Contract):
    """What a server can do; probed once, and again when a person asks."""

    rename: Rename
    extensions: tuple[str, ...] = Field(default=(), max_length=50)
    """Of SFTP, as it announces them."""
    probed_at: datetime | None = None
    probed_with: tuple[str, ...] = Field(default=(), max_length=10)
    """Paths of the small files that were written for that, and removed."""
    left_behind: tuple[str, ...] = Field(default=(), max_length=10)
    """Those of them that could not be removed."""
    takes_at_close: bool = False
    """A file was gone when it was looked at: temporary names would be taken for files."""
    failed: tuple[Sentence, ...] = Field(default=(), max_length=10)
    """Of what a transfer does (stat, read, rename, delete), what failed and why."""


class Partner(Contract):
    """An endpoint, as settings name it."""

    name: PartnerName
    kind: PlaceKind
    custom: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9_]{0,63}$")
    """Of kind `custom`: name of the package's entry point in `docflow.partner_kinds`."""
    host: str | None = Field(default=None, max_length=253)
    """SFTP and HTTPS: host; S3: endpoint URL, None: Amazon's; Azure: account URL."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    container: str | None = Field(default=None, max_length=255)
    """Container, bucket, or root folder."""
    root: FilePath | None = None
    """Folder that no path leaves."""
    user: str | None = Field(default=None, max_length=200)
    password: SecretReference | None = None
    private_key: SecretReference | None = None
    passphrase: SecretReference | None = None
    token: SecretReference | None = None
    """SAS, connection string, bearer token or secret access key."""
    host_keys: tuple[HostKey, ...] = Field(default=(), max_length=HOSTS)
    keys: tuple[OpenPgpKey, ...] = Field(default=(), max_length=KEYS)
    limits: Limits = Limits()
    windows: tuple[Window, ...] = Field(default=(), max_length=20)
    """None: always."""
    zone: str = Field(default="UTC", max_length=64)
    contact: str | None = Field(default=None, max_length=500)
    probe_folder: FilePath | None = None
    """Where a test writes its small files; None: into the root folder."""
    write: WriteMode | None = None
    """Folders and SFTP; None: as the server was probed."""
    algorithms: tuple[Algorithm, ...] = Field(default=(), max_length=20)
    """SFTP: old algorithms that are offered as well, by name, as `ssh-rsa` and `aes128-cbc`."""
    profile: ServerProfile | None = None
    enabled: bool = True
    stopped: Sentence | None = None
    """Why it may not be used until a person agrees, as an unknown host key; None: it may."""
    revision: int = 1
    by: Person | None = None
    changed_at: datetime | None = None


class Old(Enum):
    """What is negotiated, with the old algorithms for it."""

    KEYS = ("ssh-rsa", "ssh-dss")
    CIPHERS = ("aes256-cbc", "aes192-cbc", "aes128-cbc", "3des-cbc")
    KEX = (
        "diffie-hellman-group-exchange-sha1",
        "diffie-hellman-group14-sha1",
        "diffie-hellman-group1-sha1",
    )
    MACS = ("hmac-sha1-96", "hmac-md5", "hmac-md5-96")


def permitted(partner: Partner, old: Old) -> Sequence[str]:
    """Those that a record permits."""
    return [name for name in partner.algorithms if name in old.value]


def not_known(names: Iterable[str]) -> str | None:
    """What is wrong with names of algorithms; None: nothing."""
    known = [name for old in Old for name in old.value]
    if strange := [name for name in names if name not in known]:
        return (
            f"`algorithms` permits old algorithms of SFTP only, which {', '.join(strange)} isn't; "
            f"known are {', '.join(known)}"
        )
    return None


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name.

    Raises:
        RuleViolation: There is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise RuleViolation(f"there is no time zone {name[:64]!r}") from None


def opens_at(partner: Partner, now: datetime) -> datetime | None:
    """When the next window of a partner begins; None: one is open, or it has none.

    A window is meant in the partner's zone: on the days when clocks change it is as much shorter
    or longer as the day.

    Raises:
        RuleViolation: The zone is unknown, or the windows name no time at all.
    """
    if not partner.windows:
        return None
    zone = zone_of(partner.zone)
    today = now.astimezone(zone).date()
    spans = [
        span
        for window in partner.windows
        # One that began yesterday may be open; the same weekday next week is the farthest.
        for days in range(-1, 8)
        if (span := _span(window, today + timedelta(days), zone)) is not None
    ]
    if any(begin <= now < end for begin, end in spans):
        return None
    later = [begin for begin, _ in spans if begin > now]
    if not later:
        raise RuleViolation(f"the windows of {partner.name} are never open")
    return min(later)


def _span(window: Window, day: date, zone: tzinfo) -> tuple[datetime, datetime] | None:
    if day.weekday() not in window.weekdays:
        return None
    begin = _moment(day, window.opens, zone)
    end = _moment(day, window.closes, zone)
    if window.closes <= window.opens:
        end = _moment(day + timedelta(1), window.closes, zone)
    return begin, end


def _moment(day: date, text: str, zone: tzinfo) -> datetime:
    hours, minutes = map(int, text.split(":"))
    days, hours = divmod(hours, 24)
    # In UTC: times of one zone are compared by their clock faces, which clock changes repeat.
    local = datetime.combine(day + timedelta(days), time(hours, minutes), zone)
    return local.astimezone(UTC)


EXPIRY_DAYS: Final = (30, 14, 7)
"""Days before the end of a key at which notices are sent; and on the day after it."""


def record_problems(partner: Partner) -> Iterator[str]:
    """What is missing or wrong in a record, a sentence each."""
    needs_host = partner.kind in (PlaceKind.SFTP, PlaceKind.HTTPS, PlaceKind.AZURE_BLOB)
    if needs_host and not partner.host:
        yield f"a partner of kind {partner.kind} needs `host`"
    if partner.kind in (PlaceKind.FOLDER, PlaceKind.AZURE_BLOB, PlaceKind.S3):
        what = "the folder" if partner.kind is PlaceKind.FOLDER else "the container or bucket"
        if not partner.container:
            yield f"a partner of kind {partner.kind} needs `container`: {what}"
    if (partner.kind is PlaceKind.CUSTOM) != (partner.custom is not None):
        yield "`kind: custom` and `custom`, the name of the kind, belong together"
    if partner.kind is PlaceKind.SFTP:
        if not partner.user:
            yield "a partner of kind sftp needs `user`"
        if not (partner.password or partner.private_key):
            yield "a partner of kind sftp needs `password` or `private_key`, as a reference"
    if partner.write is not None and partner.kind not in (PlaceKind.FOLDER, PlaceKind.SFTP):
        yield f"`write` is for folders and SFTP: at {partner.kind} a file appears whole"
    if partner.algorithms and partner.kind is not PlaceKind.SFTP:
        yield "`algorithms` is for SFTP"
    if problem := not_known(partner.algorithms):
        yield problem
    for key in partner.host_keys:
        try:
            fingerprint(key)
        except RuleViolation as problem:
            yield str(problem)
    # On an SFTP server a root may begin with a slash: else it stands below the login's folder.
    root = (partner.root or "").removeprefix("/" if partner.kind is PlaceKind.SFTP else "")
    if root and (problem := path_problem(root)):
        yield f"`root`: {problem}"
    if partner.host and ("@" in partner.host or "?" in partner.host):
        yield "`host` may hold neither user, password nor query: credentials are references"
    try:
        zone_of(partner.zone)
    except RuleViolation as problem:
        yield str(problem)


def check_record(partner: Partner) -> None:
    """Check a record.

    Raises:
        RuleViolation: Something is missing or wrong; the message says all of it.
    """
    problems = list(record_problems(partner))
    if problems:
        raise RuleViolation("; ".join(problems))


def fingerprint(key: HostKey) -> str:
    """The fingerprint of a host key, as `ssh-keygen -l` shows it.

    Raises:
        RuleViolation: It is not a key.
    """
    parts = key.key.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (IndexError, binascii.Error):
        raise RuleViolation(
            "a host key is written as in `known_hosts`: algorithm and base64"
        ) from None
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def valid_host_keys(partner: Partner, today: date) -> tuple[HostKey, ...]:
    """The pinned keys that count today."""
    return tuple(
        key
        for key in partner.host_keys
        if (key.valid_from is None or key.valid_from <= today)
        and (key.valid_until is None or today <= key.valid_until)
    )


def pinned_keys(partner: Partner, today: date) -> str:
    """The pinned keys in words, with the days of those that do not count today."""
    if not partner.host_keys:
        return "none is pinned"
    valid = valid_host_keys(partner, today)
    sentences = [f"{fingerprint(key)} is pinned" for key in valid]
    sentences += [
        f"{fingerprint(key)} is pinned, but {_why_not_valid(key, today)}"
        for key in partner.host_keys
        if key not in valid
    ]
    return "; ".join(sentences)


def _why_not_valid(key: HostKey, today: date) -> str:
    if key.valid_until is not None and key.valid_until < today:
        return f"has expired: its last day was {key.valid_until}"
    return f"counts from {key.valid_from} only"


def expiry_step(ends: date, today: date) -> int | None:
    """Which of the warnings about a key is due: 30, 14 or 7 days; 0: it has expired; None: none."""
    left = (ends - today).days
    if left < 0:
        return 0
    return min((days for days in EXPIRY_DAYS if left <= days), default=None)
