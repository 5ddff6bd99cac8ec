"""The adapters of a process, opened once and closed together."""

import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.azure.blobs import AzureBlobs
from adapters.database import Database, open_database, require_current
from adapters.database.imports.store import SqlImportStore
from adapters.database.imports.views import SqlImportTasks
from adapters.database.rejected import SqlRejectedMessages
from adapters.database.spreadsheets import SqlSpreadsheetStore
from adapters.files.blobs import FolderBlobs
from adapters.files.documents import FileDocuments
from adapters.files.tables.report import XlsxReportWriter
from adapters.notices.log import LogNotices
from adapters.notices.several import SeveralNotices
from adapters.notices.smtp import SmtpNotices
from adapters.notices.webhook import WebhookNotices
from adapters.ports import Blobs, Notifications
from domain.spreadsheets.types import SheetTypes
from workers.settings import BlobSettings, DatabaseSettings, NoticeSettings, RunSettings

if TYPE_CHECKING:
    from workers.resources.batches import BatchResources


@dataclass(frozen=True)
class Resources:
    """What activities, bridges and commands are given."""

    database: Database
    store: SqlImportStore
    tasks: SqlImportTasks
    rejected: SqlRejectedMessages
    blobs: Blobs
    documents: FileDocuments
    reports: XlsxReportWriter
    notices: Notifications
    spreadsheets: SqlSpreadsheetStore
    sheet_types: SheetTypes
    scratch: Path
    """Folder for files while they are read."""
    runs: RunSettings
    batches: "BatchResources | None" = None
    """Only in a process that works on batches."""


def open_blobs(settings: BlobSettings) -> Blobs:
    """The blob store that the settings name."""
    if settings.folder is not None:
        settings.folder.mkdir(parents=True, exist_ok=True)
        return FolderBlobs(settings.folder)
    assert settings.connection_string is not None
    return AzureBlobs(settings.connection_string, settings.container)


def open_notices(settings: NoticeSettings) -> SeveralNotices:
    """Every way that the settings name; the log when they name none."""
    channels: list[Notifications] = []
    if settings.webhook_url is not None:
        channels.append(WebhookNotices(settings.webhook_url, settings.webhook_secret))
    if settings.mail_server is not None:
        assert settings.sender is not None
        channels.append(SmtpNotices(settings.mail_server, settings.sender, settings.escalate_to))
    return SeveralNotices(channels or [LogNotices()])


@asynccontextmanager
async def open_resources(environment: Mapping[str, str]) -> AsyncGenerator[Resources]:
    """Open everything that the settings name; nothing is opened when one is missing.

    Raises:
        SettingsError: A setting is missing or makes no sense.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    blob_settings = BlobSettings.read(environment)
    database_settings = DatabaseSettings.read(environment)
    notice_settings = NoticeSettings.read(environment)
    runs = RunSettings.read(environment)
    scratch = runs.scratch or Path(tempfile.gettempdir()) / "docflow"
    scratch.mkdir(parents=True, exist_ok=True)
    async with open_database(database_settings.url) as database:
        await require_current(database)
        yield Resources(
            database=database,
            store=SqlImportStore(database),
            tasks=SqlImportTasks(database),
            rejected=SqlRejectedMessages(database),
            blobs=open_blobs(blob_settings),
            documents=FileDocuments(),
            reports=XlsxReportWriter(),
            notices=open_notices(notice_settings),
            spreadsheets=SqlSpreadsheetStore(database),
            sheet_types=SheetTypes(),
            scratch=scratch,
            runs=runs,
        )
