"""Settings, read once from the environment by the process that needs them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self


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


def _number(environment: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
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
            _number(environment, "MAX_MESSAGES_PER_RUN", 10, 1, 1000),
            _number(environment, "MAX_WAIT_TIME_SECONDS", 30, 1, 3600),
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
            _number(environment, "DOCFLOW_SMALL_DOCUMENT_BYTES", 1_000_000, 0, 100_000_000),
            _number(environment, "DOCFLOW_PARK_FOR_DAYS", 14, 1, 3650),
            Path(scratch) if scratch else None,
        )
