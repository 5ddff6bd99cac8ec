"""`jobsettings.json`: which actions a job carries out.

`jobsettings.json`: which actions a job carries out.

Keys are written as in the system that docflow replaces (`RetryFailureSource`). Which job an event
gets: of the jobs whose `Queue` is the event's, the one whose `Event...` attributes match it, by the
same rule as routes (exact, `*`, priority, the most specific wins); a tie is refused when the file
is read.

Names in job settings: `in/{accountId}/{time:%Y%m%d}/{name}`.

What depends on the event is resolved once; the parts that stand for the name of a file are filled
when the file is known. A value of the event can never lead out of the folder that a template names.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_pascal

from workflows.shared.contracts import Contract, Person
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import (
    Attribute,
    FileNotice,
    PartnerName,
    QueueName,
    SecretReference,
    SettingsJobName,
)
from workflows.transfers.partners import Fingerprint
from workflows.transfers.paths import escaped
from workflows.transfers.routes import ANY

ACTIONS: Final = 50
"""A job has no more."""
FILES: Final = 10_000
"""Files of one run at most."""

Template = Annotated[str, StringConstraints(min_length=1, max_length=1_024)]
"""Path or name with parts in braces: `{name}`, `{data.path}`, `{time:%Y%m%d}`, `{yesterday:%d}`.

Resolved once, from the event's time in the job's zone, and kept in the run; `{name}`, `{stem}` and
`{suffix}` stand for the file's own name and are filled for each file, see
`workflows.transfers.settings.fill_name`."""


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


class Custom(SettingsContract):
    """Call an action that an installed package brings."""

    action: Literal["Custom"] = "Custom"
    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    """Of the package's entry point in the group `docflow.actions`."""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=50)
    """As the action declares them, in its own spelling; the worker checks them."""


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
    | CallHttp
    | Custom,
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


FILE_PARTS: Final = ("name", "stem", "suffix")
"""Filled for each file: `orders.csv`, `orders`, `.csv`."""
DAYS: Final[Mapping[str, int]] = MappingProxyType({"time": 0, "yesterday": -1, "tomorrow": 1})
"""The time of the event in the job's zone; the same time a day before and after."""
DIRECTIVES: Final = frozenset("YymdHIMSfjpaAbBzGVuUW%")
"""Of `strftime`, as in `{time:%Y-%m-%d}`."""
LONGEST: Final = 1_024
_DATE: Final = "%Y%m%d"
_PART: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Kind(Enum):
    """What a template is for."""

    PATH = "path"
    """A path at an endpoint, from its root."""
    PATTERN = "pattern"
    """A path in which the settings may have wildcards; those of the event stand for themselves."""
    URL = "url"
    TEXT = "text"


_PATHS: Final = ("path", "move_to", "on_failure_move_to", "name")
_TEXTS: Final = ("type", "source", "subject", "account_id", "expected")
_MANY: Final = ("data", "headers")


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """What templates of a run may refer to."""

    event: FileNotice
    zone: str
    """Of the job: in which dates are meant."""
    queue: str = ""
    job: str = ""


def resolved_templates(action: Action, facts: TemplateContext) -> dict[str, str]:
    """All templates of an action, resolved, by the names of their fields.

    Raises:
        RuleViolation: Some cannot be resolved; the message names their fields.
    """
    if problems := list(problems_of_names(action, facts)):
        raise RuleViolation("; ".join(problems))
    return {field: resolve(text, facts, kind) for field, text, kind in _templates(action)}


def problems_of_names(action: Action, facts: TemplateContext) -> Iterator[str]:
    """Why templates of an action cannot be resolved: all reasons, each with its field."""
    for field, template, kind in _templates(action):
        for problem in problems_of_template(template, facts, kind):
            yield f"{action.action}, {field}: {problem}"


def _templates(action: Action) -> Iterator[tuple[str, str, Kind]]:
    """The templates of an action with their fields and what they are for."""
    if isinstance(action, Custom):
        return
    for field in (*_PATHS, *_TEXTS):
        template = getattr(action, field, None)
        if isinstance(template, str):
            yield field, template, _kind_of(action, field)
    for field in _MANY:
        for key, template in cast(Mapping[str, str], getattr(action, field, {})).items():
            yield f"{field}.{key}", template, Kind.TEXT


def _kind_of(action: Action, field: str) -> Kind:
    if isinstance(action, ReadFile) and field == "path":
        return Kind.PATTERN
    if isinstance(action, CallHttp) and field == "path":
        return Kind.URL
    return Kind.PATH if field in _PATHS else Kind.TEXT


def resolve(template: str, facts: TemplateContext, kind: Kind = Kind.TEXT) -> str:
    """Resolve what depends on the event; braces that stay are doubled, except of parts of files.

    Raises:
        RuleViolation: A part is not known, the event has no such value, or it would lead elsewhere.
    """
    resolved, problems = _resolved(template, facts, kind)
    if problems:
        raise RuleViolation("; ".join(problems))
    return resolved


def problems_of_template(
    template: str, facts: TemplateContext, kind: Kind = Kind.TEXT
) -> Sequence[str]:
    """Why a template cannot be resolved: all reasons."""
    return _resolved(template, facts, kind)[1]


def _resolved(template: str, facts: TemplateContext, kind: Kind) -> tuple[str, Sequence[str]]:
    problems: list[str] = []

    def replace(part: re.Match[str]) -> str:
        try:
            return _substitute(part, template, facts, kind)
        except RuleViolation as error:
            problems.append(str(error))
            return "x"

    resolved = _PART.sub(replace, template)
    if kind in (Kind.TEXT, Kind.URL):
        return resolved, problems
    try:
        # The name of a file that is not known yet stands for itself here.
        check_path(fill_name(resolved, "name"))
    except RuleViolation as error:
        problems.append(str(error))
    return resolved.removeprefix("/"), problems


def _substitute(part: re.Match[str], template: str, facts: TemplateContext, kind: Kind) -> str:
    """What stands in the place of one part.

    Raises:
        RuleViolation: It cannot be resolved.
    """
    whole, text = part[0], part[1]
    if whole in ("{{", "}}"):
        return whole
    if text is None:
        raise RuleViolation(f"a brace in {template!r} has no other; write {{{{ for a brace")
    name, _, form = text.partition(":")
    if name in FILE_PARTS and not form:
        if kind is Kind.PATTERN:
            raise RuleViolation(f"{{{name}}} is not known before a file is read")
        return whole
    value = _value(name, form, facts)
    _refuse_hostile(name, value, kind)
    if kind is Kind.URL:
        value = quote(value, safe="")
    if kind is Kind.PATTERN:
        value = escaped(value)
    return value.replace("{", "{{").replace("}", "}}")


def fill_name(resolved: str, name: str) -> str:
    """A resolved template with the name of a file.

    Args:
        resolved: As `resolve` returned it.
        name: Of the file; folders within an archive stand before it.
    """
    path = PurePosixPath(name)
    # As people mean it: the stem of `a.tar.gz` is `a.tar`; folders belong to the stem.
    stem = str(path.with_suffix("")) if path.suffix else name
    values = {"name": name, "stem": stem, "suffix": path.suffix}

    def replace(found: re.Match[str]) -> str:
        return found[0][0] if found[1] is None else values.get(found[1], found[0])

    return _PART.sub(replace, resolved)


def resolved_text(resolved: str) -> str:
    """A resolved template that names no file."""
    return _PART.sub(lambda found: found[0][0] if found[1] is None else found[0], resolved)


def names_file(resolved: str) -> bool:
    """Whether a resolved template names a file."""
    return any(found[1] in FILE_PARTS for found in _PART.finditer(resolved))


def check_path(path: str) -> None:
    """Refuse a path that leaves its folder, or that endpoints understand differently.

    Raises:
        RuleViolation: What is wrong with it.
    """
    if len(path) > LONGEST:
        raise RuleViolation(f"the path has {len(path):,} characters; {LONGEST:,} are accepted")
    if any(character < " " or character in "\\\x7f" for character in path):
        raise RuleViolation(f"the path {path!r} holds a backslash or a control character")
    if any(part in ("", ".", "..") for part in path.removeprefix("/").split("/")):
        raise RuleViolation(f"the path {path!r} holds an empty, '.' or '..' segment")


def _value(name: str, form: str, facts: TemplateContext) -> str:
    event = facts.event
    if name in DAYS:
        return _moment(event.time, DAYS[name], form or _DATE, facts.zone)
    if form:
        raise RuleViolation(f"{{{name}:...}}: only time, yesterday and tomorrow have a format")
    plain = {
        "id": event.id,
        "accountId": event.account_id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "queue": facts.queue,
        "job": facts.job,
    }
    if name in plain:
        return plain[name]
    if name.startswith("data."):
        return _datum(name, event.data)
    known = ", ".join((*FILE_PARTS, *plain, *DAYS, "data.NAME"))
    raise RuleViolation(f"{{{name}}} is not known; known are {known}")


def _datum(name: str, data: Mapping[str, Any]) -> str:
    value: Any = data
    for key in name.split(".")[1:]:
        value = cast(Mapping[str, Any], value).get(key) if isinstance(value, dict) else None
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            if value != "":
                return str(value)
        case _:
            pass
    raise RuleViolation(f"the event has no text or number {name}")


def _moment(time: datetime, days: int, form: str, zone: str) -> str:
    for found in re.finditer(r"%(.?)", form):
        if found[1] not in DIRECTIVES or not found[1]:
            known = " ".join(f"%{each}" for each in sorted(DIRECTIVES))
            raise RuleViolation(f"%{found[1]} is not a directive of dates; known are {known}")
    local = time.astimezone(zone_of(zone))
    # The day before is one of the calendar: it may have 23 or 25 hours. A sum forgets which of two
    # equal hours it was made of.
    return (local + timedelta(days=days)).replace(fold=local.fold).strftime(form)


def zone_of(name: str) -> ZoneInfo:
    """A time zone.

    Raises:
        RuleViolation: There is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise RuleViolation(
            f"there is no time zone {name!r}; write one as Europe/Berlin"
        ) from error


def _refuse_hostile(name: str, value: str, kind: Kind) -> None:
    if any(character < " " or character == "\x7f" for character in value):
        raise RuleViolation(f"{{{name}}} holds a control character")
    if kind is Kind.TEXT:
        return
    if {".", ".."} & set(value.split("/")):
        raise RuleViolation(f"{{{name}}} is {value!r}: it would lead to another folder")
