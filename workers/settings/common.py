"""Settings, read once from the environment by the process that needs them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from adapters.notices.smtp import MailServer

Value = TypeVar("Value")


class SettingsError(Exception):
    """A setting is missing or makes no sense; the message names it and says what to set."""


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise SettingsError(
            f"missing setting: {name}; "
            "set it in the environment, or run `make dev` for a stack that has everything"
        )
    return value


def number(environment: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number between two limits.

    Raises:
        SettingsError: It is none.
    """
    text = environment.get(name, "").strip()
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        raise SettingsError(f"{name} must be a whole number, not {text!r}") from None
    if not least <= value <= most:
        raise SettingsError(f"{name} must be between {least} and {most}, not {value}")
    return value


def _checked(
    environment: Mapping[str, str], name: str, check: Callable[[str], Value]
) -> Value | None:
    text = environment.get(name, "").strip()
    if not text:
        return None
    try:
        return check(text)
    except ValueError as error:
        raise SettingsError(f"{name} {error}") from error


@dataclass(frozen=True)
class QueueSettings:
    """The Service Bus queue that import messages come from."""

    connection_string: str
    queue_name: str
    max_messages: int
    """Messages received and started together."""
    max_wait_seconds: int
    """How long one receive waits for the first message."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Raises:
            SettingsError: One is missing or out of range.
        """
        return cls(
            _required(environment, "AZURE_SERVICE_BUS_CONNECTION_STRING"),
            environment.get("AZURE_SERVICE_BUS_QUEUE_NAME") or "import-queue",
            number(environment, "MAX_MESSAGES_PER_RUN", 10, 1, 1000),
            number(environment, "MAX_WAIT_TIME_SECONDS", 30, 1, 3600),
        )


@dataclass(frozen=True)
class BlobSettings:
    """Where documents are: a container of Azure Storage, or a folder."""

    connection_string: str | None
    container: str
    folder: Path | None

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check; `DOCFLOW_BLOB_FOLDER` takes the place of a storage account.

        Raises:
            SettingsError: Neither is set.
        """
        container = environment.get("AZURE_STORAGE_CONTAINER_NAME") or "imports"
        if folder := environment.get("DOCFLOW_BLOB_FOLDER"):
            return cls(None, container, Path(folder) / container)
        return cls(_required(environment, "AZURE_STORAGE_CONNECTION_STRING"), container, None)


@dataclass(frozen=True)
class DatabaseSettings:
    """The database that rows and results go to."""

    url: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Raises:
            SettingsError: It is missing, or names no database that is supported.
        """
        # Loaded here so that no command pays for it that needs no database.
        from adapters.database import check_url

        url = _required(environment, "DATABASE_URL")
        try:
            check_url(url)
        except ValueError as error:
            raise SettingsError(f"DATABASE_URL: {error}") from error
        return cls(url)


@dataclass(frozen=True)
class RunSettings:
    """How import runs behave."""

    small_document_bytes: int
    """Documents up to this size run inside the workflow's own worker."""
    park_for_days: int
    """How long a parked run waits for a person."""
    scratch: Path | None
    """Where files are while they are read; the system's temporary folder when None."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Raises:
            SettingsError: One is out of range.
        """
        scratch = environment.get("DOCFLOW_SCRATCH")
        return cls(
            number(environment, "DOCFLOW_SMALL_DOCUMENT_BYTES", 1_000_000, 0, 100_000_000),
            number(environment, "DOCFLOW_PARK_FOR_DAYS", 14, 1, 3650),
            Path(scratch) if scratch else None,
        )


@dataclass(frozen=True)
class NoticeSettings:
    """How people are told that something waits for them."""

    webhook_url: str | None
    webhook_secret: bytes | None = field(repr=False)
    """Key of the webhook's signature."""
    mail_server: "MailServer | None"
    sender: str | None
    """Address that mail comes from; set whenever there is a mail server."""
    escalate_to: tuple[str, ...]
    """Addresses that are told when nobody answers, or a step cannot be done."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check; without webhook and mail server, notices go to the log.

        Raises:
            SettingsError: One makes no sense, or mail has no sender.
        """
        # Loaded here so that no command pays for them that tells nobody.
        from adapters.notices.smtp import MailServer, check_address
        from adapters.notices.webhook import check_webhook_url, secret_bytes

        mail_server = _checked(environment, "DOCFLOW_SMTP_URL", MailServer.parse)
        sender = _checked(environment, "DOCFLOW_NOTIFY_FROM", check_address)
        if mail_server is not None and sender is None:
            raise SettingsError(
                "missing setting: DOCFLOW_NOTIFY_FROM; mail needs the address that it comes from"
            )
        addresses = _checked(
            environment,
            "DOCFLOW_ESCALATE_TO",
            lambda text: tuple(check_address(part.strip()) for part in text.split(",")),
        )
        return cls(
            _checked(environment, "DOCFLOW_NOTIFY_WEBHOOK_URL", check_webhook_url),
            _checked(environment, "DOCFLOW_NOTIFY_WEBHOOK_SECRET", secret_bytes),
            mail_server,
            sender,
            addresses or (),
        )
