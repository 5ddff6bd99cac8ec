"""`jobsettings.json`: which actions a job carries out.

Keys are written as in the system that docflow replaces (`RetryFailureSource`). Which job an event
gets: of the jobs whose `Queue` is the event's, the one whose `Event...` attributes match it, by the
same rule as routes (exact, `*`, priority, the most specific wins); a tie is refused when the file
is read.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_pascal

from contracts.answers import Person
from contracts.base import Contract
from contracts.transfers.events import Attribute
from contracts.transfers.names import (
    PartnerName,
    QueueName,
    SecretReference,
    SettingsJobName,
)
from contracts.transfers.partners import Fingerprint
from contracts.transfers.routes import ANY

ACTIONS: Final = 50
"""A job has no more."""
FILES: Final = 10_000
"""Files of one run at most."""

Template = Annotated[str, StringConstraints(min_length=1, max_length=1_024)]
"""Path or name with parts in braces: `{name}`, `{data.path}`, `{time:%Y%m%d}`, `{yesterday:%d}`.

Resolved once, from the event's time in the job's zone, and kept in the run; `{name}`, `{stem}` and
`{suffix}` stand for the file's own name and are filled for each file, see
`domain.transfers.templates.filled`."""


class SettingsContract(Contract):
    """A part of `jobsettings.json`."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_pascal, populate_by_name=True
    )


class Side(StrEnum):
    """Whose failures an action's are: which retries it has."""

    SOURCE = "source"
    DESTINATION = "destination"
    OWN = "own"
    """Neither side: trying again changes nothing."""


class Guarantee(StrEnum):
    """How a written file is verified before it gets its name."""

    SIZE = "size"
    HASH = "hash"
    """By a hash that the endpoint computes; where it cannot, read back."""
    READ_BACK = "read-back"


class Overwrite(StrEnum):
    """What happens when the name is taken at the destination."""

    REFUSE = "refuse"
    """Unless it holds the same bytes: then it was written before."""
    REPLACE = "replace"
    NUMBER = "number"
    """A number is added to the name."""


class AfterSource(StrEnum):
    """What becomes of a source once the last action is verified."""

    KEEP = "keep"
    MOVE = "move"
    DELETE = "delete"


class ReadFile(SettingsContract):
    """Read one file, or those that a pattern names, from a partner."""

    action: Literal["ReadFile"] = "ReadFile"
    partner: PartnerName
    path: Template
    """May hold `*`, `?` and `[...]` in its last segment."""
    at_least: int = Field(default=1, ge=0, le=FILES)
    at_most: int = Field(default=1, ge=1, le=FILES)
    """Fewer or more files are refused, and nothing is read."""
    allow_empty: bool = False
    after: AfterSource = AfterSource.KEEP
    move_to: Template | None = None
    on_failure_move_to: Template | None = None
    stable_seconds: int | None = Field(default=None, ge=0, le=3_600)
    """Size and time have not changed for so long when it is read; 0: they do not while it is.
    None: of folders and SFTP, two looks see the same size and time."""


class WriteFile(SettingsContract):
    """Write every file of the run to a partner."""

    action: Literal["WriteFile"] = "WriteFile"
    partner: PartnerName
    path: Template = "{name}"
    overwrite: Overwrite = Overwrite.REFUSE
    verify: Guarantee = Guarantee.HASH
    mode: str | None = Field(default=None, pattern=r"^[0-7]{3,4}$")
    """Rights to ask for; a server that refuses them is a remark."""
    keep_time: bool = False


class Encrypt(SettingsContract):
    """Encrypt to OpenPGP keys of a partner; and sign, with ours."""

    action: Literal["Encrypt"] = "Encrypt"
    partner: PartnerName
    recipients: tuple[Fingerprint, ...] = Field(default=(), max_length=10)
    """None: every key of the partner that has not expired."""
    sign_with: Fingerprint | None = None
    armour: bool = False
    suffix: str = Field(default=".pgp", max_length=20)


class Decrypt(SettingsContract):
    """Decrypt, and require the signature of a partner."""

    action: Literal["Decrypt"] = "Decrypt"
    partner: PartnerName
    signers: tuple[Fingerprint, ...] = Field(default=(), max_length=10)
    """None: any key of the partner."""
    require_signature: bool = True
    """False has to be written: an unsigned message tells nothing of who made it."""
    suffixes: tuple[str, ...] = Field(default=(".pgp", ".gpg", ".asc"), max_length=10)
    """Taken off the name."""
    bytes_at_most: int = Field(default=10 * 2**30, ge=1)
    ratio_at_most: int = Field(default=200, ge=1, le=100_000)
    """Plain to encrypted bytes, of files that unpack to more than 64 MB."""


class Sign(SettingsContract):
    """Add a detached signature of ours beside every file."""

    action: Literal["Sign"] = "Sign"
    partner: PartnerName
    sign_with: Fingerprint
    armour: bool = True
    suffix: str = Field(default=".asc", max_length=20)


class Verify(SettingsContract):
    """Require that every file has a detached signature of a partner beside it."""

    action: Literal["Verify"] = "Verify"
    partner: PartnerName
    signers: tuple[Fingerprint, ...] = Field(default=(), max_length=10)
    suffixes: tuple[str, ...] = Field(default=(".asc", ".sig"), max_length=10)
    keep_signatures: bool = False


class ArchiveFormat(StrEnum):
    """Formats of `Compress` and `Extract`."""

    ZIP = "zip"
    GZIP = "gzip"
    TAR = "tar"
    TAR_GZ = "tar.gz"


class Compress(SettingsContract):
    """Put the files into one archive, or each into one of its own (gzip)."""

    action: Literal["Compress"] = "Compress"
    format: ArchiveFormat
    name: Template = "{name}"
    """Of the archive, without its suffix."""
    password: SecretReference | None = None
    """Of a ZIP archive, which is AES-256 then."""


class Extract(SettingsContract):
    """Replace every archive by the files in it."""

    action: Literal["Extract"] = "Extract"
    format: ArchiveFormat | None = None
    """None: by structure."""
    password: SecretReference | None = None
    at_most: int = Field(default=1_000, ge=1, le=FILES)
    bytes_at_most: int = Field(default=10 * 2**30, ge=1)
    ratio_at_most: int = Field(default=200, ge=1, le=100_000)
    """Unpacked to packed bytes, of archives that unpack to more than 64 MB."""
    flatten: bool = False
    """Folders in the archive are dropped from names."""
    name_encoding: str = Field(default="utf-8", max_length=40)
    """Of names that the archive does not mark as UTF-8, as `cp437` or `cp1252`."""


class NotScanned(StrEnum):
    """What becomes of a file that could not be scanned."""

    REFUSE = "refuse"
    """It is treated as infected."""
    ALLOW = "allow"


class Scan(SettingsContract):
    """Scan every file for viruses; an infected one goes to quarantine and is never written on."""

    action: Literal["Scan"] = "Scan"
    not_scanned: NotScanned = NotScanned.REFUSE
    signatures_days: int = Field(default=7, ge=1, le=365)
    """Signatures that are older have scanned nothing."""


class Checksum(SettingsContract):
    """Compare every file with a checksum that came with it, or write one beside it."""

    action: Literal["Checksum"] = "Checksum"
    algorithm: Literal["md5", "sha1", "sha256", "sha512"] = "sha256"
    expected: Template | None = None
    """The checksum itself, as `{data.sha256}`; None: from the file beside it, see `sidecar`."""
    sidecar: str | None = Field(default=None, max_length=20)
    """Suffix of the file beside it, as `.sha256`."""
    write: bool = False
    """Write the file beside it, instead of comparing."""


class FireEvent(SettingsContract):
    """Send an event on."""

    action: Literal["FireEvent"] = "FireEvent"
    queue: QueueName | None = None
    """The event goes to this queue, routed already; None: it is routed as if it had arrived."""
    type: Template = "Succeeded"
    source: Template
    subject: Template
    account_id: Template = "{accountId}"
    data: dict[str, Template] = Field(default_factory=dict[str, Template], max_length=50)


class CallHttp(SettingsContract):
    """Call a partner by HTTPS."""

    action: Literal["CallHttp"] = "CallHttp"
    partner: PartnerName
    path: Template = "/"
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    body: Literal["none", "receipt", "file"] = "receipt"
    headers: dict[str, Template] = Field(default_factory=dict[str, Template], max_length=20)
    succeeds: tuple[int, ...] = Field(default=(200, 201, 202, 204), max_length=20)
    idempotency_header: str | None = Field(default="Idempotency-Key", max_length=100)


Action = Annotated[
    ReadFile
    | WriteFile
    | Encrypt
    | Decrypt
    | Sign
    | Verify
    | Compress
    | Extract
    | Scan
    | Checksum
    | FireEvent
    | CallHttp,
    Field(discriminator="action"),
]


class Backoff(StrEnum):
    """How delays between retries grow."""

    LINEAR = "linear"
    """They stay as they are, as in the system that docflow replaces."""
    EXPONENTIAL = "exponential"


class Actions(SettingsContract):
    """The actions of a job, and how often they are tried again."""

    retry_failure_source: int = Field(default=3, ge=0, le=100)
    retry_failure_destination: int = Field(default=3, ge=0, le=100)
    retry_failure_source_delay: int = Field(default=5, ge=1, le=86_400)
    """Seconds."""
    retry_failure_destination_delay: int = Field(default=5, ge=1, le=86_400)
    backoff: Backoff = Backoff.LINEAR
    list: tuple[Action, ...] = Field(min_length=1, max_length=ACTIONS)


class SettingsJob(SettingsContract):
    """One job."""

    job: SettingsJobName
    description: str = Field(default="", max_length=500)
    configured_by: Person | None = None
    """Who answers for it; receipts name them."""
    queue: QueueName
    event_account_id: Attribute = Field(default=ANY, alias="EventAccountID")
    event_source: Attribute = ANY
    event_type: Attribute = ANY
    event_subject: Attribute = ANY
    priority: int = Field(default=0, ge=-1_000, le=1_000)
    enabled: bool = True
    zone: str = Field(default="UTC", max_length=64)
    """In which dates in names are meant."""
    sequence_key: Template | None = None
    """Runs of one key write one after the other."""
    keep_copy_days: int = Field(default=0, ge=0, le=3_650)
    """An encrypted copy of what was written, for `resend`; 0: none."""
    actions: Actions


class JobSettings(SettingsContract):
    """All of `jobsettings.json`."""

    version: Literal[1] = 1
    jobs: tuple[SettingsJob, ...] = Field(default=(), max_length=5_000)
