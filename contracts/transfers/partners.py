"""Endpoints: who they are, how they are reached, which keys are theirs, what they bear."""

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from contracts.answers import Person
from contracts.base import Contract
from contracts.transfers.names import FilePath, PartnerName, SecretReference, Sentence

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
