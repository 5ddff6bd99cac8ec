"""Settings that pipelines share: Temporal, database, blobs, retention, workers."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from workers.shared.settings.base import (
    HINT,
    Missing,
    Setting,
    Settings,
    Whole,
    WholeMessage,
    parse_flag,
)
from workflows.shared.contracts import built_when_used, problem_text
from workflows.shared.notifications import NotificationPolicies, NotificationPolicy

if TYPE_CHECKING:
    from adapters.aws.blobs import Bucket
    from adapters.database.engine import DatabaseOptions
    from adapters.log_notifications import MailServer


_TLS_OPTIONS: Final = {
    "tls_mode": "sslmode",
    "root_certificate": "sslrootcert",
    "certificate": "sslcert",
    "key": "sslkey",
}
"""Field to the option of `DATABASE_URL` that takes its place."""


def _database_url(url: str, info: ValidationInfo) -> str:
    # Loaded here so that no command pays for it that needs no database.
    from adapters.database.urls import check_url, with_options

    named = {option: info.data.get(field) for field, option in _TLS_OPTIONS.items()}
    try:
        url = with_options(url, {name: value for name, value in named.items() if value})
        check_url(url)
    except ValueError as error:
        raise WholeMessage(f"DATABASE_URL: {error}") from None
    return url


class DatabaseSettings(Settings):
    """The database that rows and results go to.

    The variables `PGSSL...` are those of every client of PostgreSQL; an option of the same meaning
    in `DATABASE_URL` (`sslmode`, `sslrootcert`, `sslcert`, `sslkey`) takes their place.
    """

    title: ClassVar[str] = "Database"
    used_by: ClassVar[str] = "everything but `docflow bridge batch-loader`"

    tls_mode: Annotated[str | None, Setting(kind="text")] = Field(
        None,
        validation_alias="PGSSLMODE",
        description="`disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`",
    )
    root_certificate: Annotated[str | None, Setting(kind="path")] = Field(
        None,
        validation_alias="PGSSLROOTCERT",
        description="certificates that the server's is checked with, in PEM format, or `system` "
        "for those that the machine trusts; `sslmode` is `verify-full` then, unless it is set",
    )
    certificate: Annotated[str | None, Setting(kind="path")] = Field(
        None, validation_alias="PGSSLCERT", description="docflow's own certificate, in PEM format"
    )
    key: Annotated[str | None, Setting(kind="path")] = Field(
        None, validation_alias="PGSSLKEY", description="its key, without a password"
    )
    url: Annotated[str, AfterValidator(_database_url), Setting(secret=True)] = Field(
        validation_alias="DATABASE_URL",
        description="`postgresql://user:password@host/name`",
    )
    """With the files of TLS."""
    connections: Annotated[
        int | None, Whole(2, 1_000), Setting(kind="whole number", default="20")
    ] = Field(
        None,
        validation_alias="DOCFLOW_DATABASE_CONNECTIONS",
        description="connections to PostgreSQL at once, at most",
    )
    statements: Annotated[
        int | None, Whole(0, 10_000), Setting(kind="whole number", default="500")
    ] = Field(
        None,
        validation_alias="DOCFLOW_DATABASE_STATEMENTS",
        description="prepared statements that each connection keeps; 0 behind a pooler that shares "
        "connections between transactions, such as PgBouncer",
    )

    @property
    def options(self) -> "DatabaseOptions":
        """How a PostgreSQL server is used."""
        from adapters.database.engine import CONNECTIONS, STATEMENTS, DatabaseOptions

        statements = STATEMENTS if self.statements is None else self.statements
        return DatabaseOptions(self.connections or CONNECTIONS, statements)


_DAYS = 36_500


class RetentionSettings(Settings):
    """How long rows are kept whose run has ended."""

    title: ClassVar[str] = "Retention"
    used_by: ClassVar[str] = "workers"

    import_problems: Annotated[int, Whole(1, _DAYS)] = Field(
        90,
        validation_alias="DOCFLOW_KEEP_PROBLEMS_DAYS",
        description="days that problems and reports of imports are kept after their end",
    )
    # Longer than any queue stores a message: its row is what refuses a redelivery.
    status: Annotated[int, Whole(30, _DAYS)] = Field(
        365,
        validation_alias="DOCFLOW_KEEP_STATUS_DAYS",
        description="days that status rows of imports and transfers are kept after their end, and "
        "rejected messages that were not sent again",
    )
    resubmitted: Annotated[int, Whole(1, _DAYS)] = Field(
        90,
        validation_alias="DOCFLOW_KEEP_RESUBMITTED_DAYS",
        description="days that rejected messages are kept after they were sent again",
    )
    messages: Annotated[int, Whole(1, _DAYS)] = Field(
        90,
        validation_alias="DOCFLOW_KEEP_WEBHOOK_MESSAGES_DAYS",
        description="days that messages of webhooks about runs are kept after they were made, "
        "unless another attempt is due",
    )
    audit: Annotated[int, Whole(30, _DAYS)] = Field(
        730,
        validation_alias="DOCFLOW_KEEP_AUDIT_DAYS",
        description="days that entries of the audit are kept, and upload tokens that have expired",
    )
    documents: Annotated[
        int | None, Whole(30, _DAYS), Setting(kind="whole number", default="for ever")
    ] = Field(
        None,
        validation_alias="DOCFLOW_KEEP_DOCUMENTS_DAYS",
        description="days that documents of batches, with texts, tags and versions, are kept after "
        "their last change",
    )


class WorkerSettings(Settings):
    """What a worker does at once, in the place of what memory and connections allow."""

    title: ClassVar[str] = "Slots"
    used_by: ClassVar[str] = "workers"

    activity_slots: Annotated[
        int | None, Whole(1, 1_000), Setting(kind="whole number", default="computed")
    ] = Field(
        None,
        validation_alias="DOCFLOW_ACTIVITY_SLOTS",
        description="activities at once of each pipeline in a worker",
    )
    local_slots: Annotated[
        int | None, Whole(1, 1_000), Setting(kind="whole number", default="computed")
    ] = Field(
        None,
        validation_alias="DOCFLOW_LOCAL_SLOTS",
        description="short steps at once of each pipeline in a worker",
    )


DEFAULT_POLICY: Final = "default"
"""Names the policy of every pipeline that has none of its own."""
_POLICIES: Final[TypeAdapter[Mapping[str, NotificationPolicy]]] = TypeAdapter(
    Mapping[str, NotificationPolicy], config=built_when_used()
)


def web_address(value: str | None) -> str | None:
    """An address of the web, without a slash at its end.

    Raises:
        ValueError: It is none.
    """
    if value is None:
        return None
    value = value.rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"must be an address like https://example.org, not {value!r}")
    return value


class ScratchSettings(Settings):
    """Where files are while they are read."""

    title: ClassVar[str] = "Scratch folder"
    used_by: ClassVar[str] = "workers, bridges, gateway, commands that read or send documents"

    root: Annotated[
        Path | None, Setting(kind="folder", default="`docflow` in the system's temporary folder")
    ] = Field(
        None,
        validation_alias="DOCFLOW_SCRATCH",
        description="where files are while they are read",
    )

    @property
    def folder(self) -> Path:
        """The folder that is set, or the one that is used without."""
        return self.root or Path(tempfile.gettempdir()) / "docflow"


class LogSettings(Settings):
    """How processes log."""

    title: ClassVar[str] = "Logs"
    used_by: ClassVar[str] = "workers, bridges, gateway"

    format: Annotated[
        Literal["text", "json"], Setting(kind="`text` or `json`", rule="must be text or json")
    ] = Field(
        "text",
        validation_alias="DOCFLOW_LOG_FORMAT",
        description="lines for people, or one JSON object for each event",
    )


class WorkflowSettings(Settings):
    """How workers run workflows."""

    title: ClassVar[str] = "Workflows"
    used_by: ClassVar[str] = "workers"

    sandboxed: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        False,
        validation_alias="DOCFLOW_WORKFLOW_SANDBOX",
        description="run workflows in the sandbox of Temporal's SDK, which refuses code that is "
        "not deterministic, and costs CPU for every run",
    )


class ServiceBusSettings(Settings):
    """The Service Bus namespace, and how its queues are received from."""

    title: ClassVar[str] = "Service Bus"
    used_by: ClassVar[str] = "workers and bridges of Service Bus queues, `docflow setup`"
    queue_setting: ClassVar[str] = ""
    """Names the queue of a group that stands on this one."""

    connection_string: Annotated[str, Setting(secret=True)] = Field(
        validation_alias="AZURE_SERVICE_BUS_CONNECTION_STRING",
        description="the namespace of the queues",
    )
    max_messages: Annotated[int, Whole(1, 1000)] = Field(
        10,
        validation_alias="MAX_MESSAGES_PER_RUN",
        description="messages received and started together",
    )
    max_wait_seconds: Annotated[int, Whole(1, 3600)] = Field(
        30,
        validation_alias="MAX_WAIT_TIME_SECONDS",
        description="seconds that an empty queue is waited on before `--drain` ends",
    )


class HttpSettings(Settings):
    """Where processes listen."""

    title: ClassVar[str] = "HTTP"
    used_by: ClassVar[str] = (
        "`docflow gateway`, workers with `--health-port`, all processes with `--metrics-port`"
    )

    host: str = Field(
        "127.0.0.1",
        validation_alias="DOCFLOW_HTTP_HOST",
        description="host name, IPv4 or IPv6 address of the gateway without `--host`, and of the "
        "health and metrics ports",
    )


def _webhook_url(url: str | None) -> str | None:
    if url is None:
        return None
    from adapters.log_notifications import check_webhook_url

    return check_webhook_url(url.strip())


def _webhook_secret(secret: object) -> object:
    from adapters.http import secret_bytes

    return secret_bytes(secret.strip()) if isinstance(secret, str) else secret


def _smtp_url(url: str | None) -> str | None:
    from adapters.log_notifications import MailServer

    if url is not None:
        MailServer.parse(url.strip())
        url = url.strip()
    return url


def _address(address: str) -> str:
    from adapters.log_notifications import check_address

    return check_address(address)


def _addresses(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_address(part.strip()) for part in value.split(","))


def _policy(value: object) -> object:
    """Read the policies of pipelines; which names there are is not known here.

    Raises:
        ValueError: With all that is wrong.
    """
    if not isinstance(value, str):
        return value
    try:
        read = _POLICIES.validate_json(value)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'it'}: {problem_text(each)}"
            for each in error.errors(include_url=False, include_input=False)
        ]
        raise ValueError(
            'must be JSON like {"default": {"to": ["ops@example.org"], "kinds": ["parked"]}}; '
            + "; ".join(problems[:10])
        ) from None
    for name, policy in read.items():
        for address in policy.to or ():
            try:
                _address(address)
            except ValueError as error:
                raise ValueError(f"{name}.to: {error}") from None
    return read


class AddressSettings(Settings):
    """Where people find docflow and Temporal."""

    title: ClassVar[str] = "Addresses"
    used_by: ClassVar[str] = "workers, `docflow gateway`, `docflow setup`"

    public_url: Annotated[str | None, AfterValidator(web_address), Setting(kind="URL")] = Field(
        None,
        validation_alias="DOCFLOW_PUBLIC_URL",
        description="address of the gateway for its users, for links in notices",
    )
    """Without a slash at the end."""
    temporal_ui: Annotated[str | None, AfterValidator(web_address), Setting(kind="URL")] = Field(
        None,
        validation_alias="TEMPORAL_UI_ADDRESS",
        description="Temporal's Web UI, for links that pages and commands show",
    )


class NotificationSettings(Settings):
    """Where notices are sent, and to whom; the log when neither webhook nor mail is set."""

    title: ClassVar[str] = "Notices"
    used_by: ClassVar[str] = "workers, bridges, gateway, `docflow setup`"

    webhook_url: Annotated[
        str | None, AfterValidator(_webhook_url), Setting(secret=True, kind="URL")
    ] = Field(
        None,
        validation_alias="DOCFLOW_NOTIFY_WEBHOOK_URL",
        description="notices are posted there as JSON",
    )
    webhook_secret: Annotated[
        bytes | None,
        BeforeValidator(_webhook_secret),
        Setting(secret=True, kind="text, or `whsec_` and base64"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_NOTIFY_WEBHOOK_SECRET",
        description="signs them as [Standard Webhooks](https://www.standardwebhooks.com) do",
    )
    smtp_url: Annotated[str | None, AfterValidator(_smtp_url), Setting(secret=True, kind="URL")] = (
        Field(
            None,
            validation_alias="DOCFLOW_SMTP_URL",
            description="mail server: `smtps://user:password@host` (TLS), "
            "`smtp+starttls://...`, or `smtp://host` for one that needs neither",
        )
    )
    sender: Annotated[
        str | None, Setting(kind="mail address", default="required with `DOCFLOW_SMTP_URL`")
    ] = Field(
        None,
        validation_alias="DOCFLOW_NOTIFY_FROM",
        description="address that mail comes from",
        validate_default=True,
    )
    escalate_to: Annotated[
        tuple[str, ...], BeforeValidator(_addresses), Setting(kind="mail addresses, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_ESCALATE_TO",
        description="notified when a question stays unanswered, a run parks or fails, or something "
        "that docflow needs is down",
    )
    policy: Annotated[
        Mapping[str, NotificationPolicy], BeforeValidator(_policy), Setting(kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_NOTIFY_POLICY",
        description="for each pipeline, `outages` or `default`: `to`, `kinds`, "
        "`remind_after_hours`, `remind_every_hours`",
    )

    @field_validator("sender")
    @classmethod
    def _needed_by_mail(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("smtp_url") is not None:
            raise Missing("mail needs the address that it comes from")
        return None if value is None else _address(value)

    @property
    def policies(self) -> NotificationPolicies:
        """Who is sent what."""
        named = dict(self.policy)
        default = named.pop(DEFAULT_POLICY, NotificationPolicy())
        return NotificationPolicies(self.escalate_to, default, named)

    @property
    def mail_server(self) -> "MailServer | None":
        """The mail server; None when none is set."""
        from adapters.log_notifications import MailServer

        return None if self.smtp_url is None else MailServer.parse(self.smtp_url)


_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def container_name(name: str) -> str:
    """The name of one container or folder.

    Raises:
        ValueError: It is none.
    """
    if name in (".", "..") or any(character in name for character in "/\\\0"):
        raise ValueError(f"must be the name of one container or folder, not {name!r}")
    return name


def _bucket_name(name: str | None) -> str | None:
    if name is not None and not _BUCKET.fullmatch(name):
        raise ValueError(f"must be the name of a bucket, not {name!r}")
    return name


def _storage_account(connection_string: str | None) -> str | None:
    # Loaded here so that no command pays for it that needs no storage account.
    from adapters.azure.storage_account import StorageAccount

    if connection_string is not None:
        try:
            StorageAccount.from_connection_string(connection_string)
        except ValueError as error:
            raise WholeMessage(f"AZURE_STORAGE_CONNECTION_STRING: {error}") from None
    return connection_string


class BlobSettings(Settings):
    """Where documents are: a container of Azure Storage, a bucket of S3, or a folder."""

    title: ClassVar[str] = "Documents"
    used_by: ClassVar[str] = (
        "workers, bridges, gateway, `docflow setup`, commands that read or send documents"
    )

    container: Annotated[str, AfterValidator(container_name)] = Field(
        "imports",
        validation_alias="AZURE_STORAGE_CONTAINER_NAME",
        description="the container, or the folder below `DOCFLOW_BLOB_FOLDER` or in "
        "`DOCFLOW_BLOB_BUCKET`",
    )
    root: Annotated[Path | None, Setting(kind="folder")] = Field(
        None,
        validation_alias="DOCFLOW_BLOB_FOLDER",
        description="takes the place of a storage account",
    )
    bucket_name: Annotated[str | None, AfterValidator(_bucket_name), Setting(kind="text")] = Field(
        None,
        validation_alias="DOCFLOW_BLOB_BUCKET",
        description="S3 bucket that takes the place of a storage account",
    )
    region: Annotated[str, Setting(kind="text")] = Field(
        "us-east-1", validation_alias="DOCFLOW_BLOB_REGION", description="of the bucket"
    )
    endpoint_url: Annotated[str | None, AfterValidator(web_address), Setting(kind="URL")] = Field(
        None,
        validation_alias="DOCFLOW_BLOB_ENDPOINT_URL",
        description="of another store that speaks as S3 does",
    )
    access_key_id: Annotated[str | None, Setting(secret=True, kind="text")] = Field(
        None,
        validation_alias="DOCFLOW_BLOB_ACCESS_KEY_ID",
        description="of the bucket; without it the role of machine, container or pod is used, or "
        "`AWS_ACCESS_KEY_ID`",
    )
    secret_access_key: Annotated[str | None, Setting(secret=True, kind="text")] = Field(
        None,
        validation_alias="DOCFLOW_BLOB_SECRET_ACCESS_KEY",
        description="belongs to the key",
        validate_default=True,
    )
    connection_string: Annotated[
        str | None,
        AfterValidator(_storage_account),
        Setting(
            secret=True,
            kind="text",
            default="required without `DOCFLOW_BLOB_FOLDER` and `DOCFLOW_BLOB_BUCKET`",
        ),
    ] = Field(
        None,
        validation_alias="AZURE_STORAGE_CONNECTION_STRING",
        description="the storage account of the documents",
        validate_default=True,
    )

    @field_validator("connection_string")
    @classmethod
    def _needed_without_a_folder(cls, value: str | None, info: ValidationInfo) -> str | None:
        given = ("root", "bucket_name")
        # One that is wrong is named by itself.
        if value is None and all(info.data.get(name, "wrong") is None for name in given):
            raise Missing(HINT)
        return value

    @field_validator("secret_access_key")
    @classmethod
    def _both_or_neither(cls, value: str | None, info: ValidationInfo) -> str | None:
        if (value is None) != (info.data.get("access_key_id") is None):
            raise WholeMessage(
                "DOCFLOW_BLOB_ACCESS_KEY_ID and DOCFLOW_BLOB_SECRET_ACCESS_KEY belong together: set"
                " both, or neither"
            )
        return value

    @property
    def bucket(self) -> "Bucket | None":
        """The bucket, and who asks; None where there is none."""
        if self.bucket_name is None or self.root is not None:
            return None
        from adapters.aws.blobs import Bucket

        return Bucket(
            name=self.bucket_name,
            region=self.region,
            endpoint_url=self.endpoint_url,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
        )

    @property
    def folder(self) -> Path | None:
        """The container as a folder; None where a storage account is used."""
        return None if self.root is None else self.root / self.container
