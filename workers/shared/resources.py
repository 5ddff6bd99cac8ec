"""The adapters that all pipelines share, opened once per process and closed together."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from adapters.database.engine import Database
from adapters.database.records import SqlRejectedMessages
from adapters.log_notifications import LogNotifications
from adapters.ports.blobs import Blobs
from adapters.ports.records import Notifications
from workers.shared.errors import SettingsError
from workers.shared.settings.check import check_settings
from workers.shared.settings.common import (
    BlobSettings,
    DatabaseSettings,
    NotificationSettings,
    RetentionSettings,
    ScratchSettings,
)
from workers.shared.settings.webhooks import ReceiverSettings
from workers.shared.tables import open_blobs, open_tables
from workflows.shared.notifications import NotificationPolicies

if TYPE_CHECKING:
    from adapters.files.documents import FileDocuments
    from adapters.files.tables.workbooks import XlsxReportWriter


@dataclass(frozen=True)
class CommonSettings:
    """The settings of what all pipelines share."""

    blobs: BlobSettings
    database: DatabaseSettings
    notices: NotificationSettings
    scratch: ScratchSettings
    keeps: RetentionSettings
    receivers: ReceiverSettings

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read and check.

        Raises:
            SettingsError: One is missing or invalid.
        """
        check_settings(environment, *RESOURCE_SETTINGS)
        return cls(
            BlobSettings.read(environment),
            DatabaseSettings.read(environment),
            NotificationSettings.read(environment),
            ScratchSettings.read(environment),
            RetentionSettings.read(environment),
            ReceiverSettings.read(environment),
        )


RESOURCE_SETTINGS: Final = (
    *(BlobSettings, DatabaseSettings, NotificationSettings, ScratchSettings),
    *(RetentionSettings, ReceiverSettings),
)
"""What `open_resources` reads."""
LOG: Final = "log"
"""Way to reach people that takes the place of all others where none is set."""


@dataclass(frozen=True)
class Resources:
    """What activities, bridges and commands of every pipeline are given."""

    database: Database
    rejected: SqlRejectedMessages
    blobs: Blobs
    notices: Mapping[str, Notifications]
    """Ways to reach people, by name."""
    policies: NotificationPolicies
    """Who is sent which notices."""
    scratch: Path
    """Folder for files while they are read."""
    keeps: RetentionSettings = field(default_factory=lambda: RetentionSettings.read({}))
    """How long rows are kept."""
    receivers: ReceiverSettings = field(default_factory=lambda: ReceiverSettings.read({}))
    """Which receivers of webhooks are accepted, and what their secrets are kept under."""

    # Imported by those who use them: readers and writers of tables take 5 MB of memory.

    @cached_property
    def documents(self) -> "FileDocuments":
        """Reads tables and schedules."""
        from adapters.files.documents import FileDocuments

        return FileDocuments()

    @cached_property
    def reports(self) -> "XlsxReportWriter":
        """Writes what was rejected."""
        from adapters.files.tables.workbooks import XlsxReportWriter

        return XlsxReportWriter()


def open_notices(settings: NotificationSettings) -> Mapping[str, Notifications]:
    """Every way to reach people that the settings name, by its name; the log when there is none."""
    channels: dict[str, Notifications] = {}
    if settings.webhook_url is not None:
        from adapters.webhook_notifications import WebhookNotifications

        channels["webhook"] = WebhookNotifications(settings.webhook_url, settings.webhook_secret)
    if settings.mail_server is not None:
        assert settings.sender is not None
        from adapters.mail_notifications import SmtpNotifications

        channels["mail"] = SmtpNotifications(settings.mail_server, settings.sender)
    return channels or {LOG: LogNotifications()}


def make_folders(settings: CommonSettings) -> None:
    """Make the folders that the settings name.

    Raises:
        SettingsError: One cannot be made; all of them are named.
    """
    folders = {"DOCFLOW_SCRATCH": settings.scratch.folder}
    if settings.blobs.folder is not None:
        folders["DOCFLOW_BLOB_FOLDER"] = settings.blobs.folder
    problems: list[str] = []
    for name, folder in folders.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problems.append(f"{name}: the folder {folder} cannot be made: {error.strerror}")
    if problems:
        raise SettingsError(*problems)


@asynccontextmanager
async def open_resources(environment: Mapping[str, str]) -> AsyncGenerator[Resources]:
    """Open everything that the settings name; nothing is opened when one is missing.

    Raises:
        SettingsError: A setting is missing or invalid, or a folder cannot be made.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    settings = CommonSettings.read(environment)
    make_folders(settings)
    async with open_tables(environment) as database:
        yield Resources(
            database=database,
            rejected=SqlRejectedMessages(database),
            blobs=open_blobs(settings.blobs),
            notices=open_notices(settings.notices),
            policies=settings.notices.policies,
            scratch=settings.scratch.folder,
            keeps=settings.keeps,
            receivers=settings.receivers,
        )
