"""The database alone, or the blob store alone, for what needs nothing else."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from adapters.database.engine import Database, open_database
from adapters.database.schema import require_current
from adapters.ports.blobs import Blobs
from workers.shared.settings.common import BlobSettings, DatabaseSettings


def open_blobs(settings: BlobSettings) -> Blobs:
    """The blob store that the settings name; a folder of it is made when a blob is written."""
    if settings.folder is not None:
        from adapters.files.blobs import FolderBlobs

        return FolderBlobs(settings.folder)
    if (bucket := settings.bucket) is not None:
        from adapters.aws.blobs import S3Blobs

        return S3Blobs(bucket, settings.container)
    from adapters.azure.blobs import AzureBlobs

    assert settings.connection_string is not None
    return AzureBlobs(settings.connection_string, settings.container)


@asynccontextmanager
async def open_tables(environment: Mapping[str, str]) -> AsyncGenerator[Database]:
    """The database that the settings name.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    settings = DatabaseSettings.read(environment)
    async with open_database(settings.url, settings.options) as database:
        await require_current(database)
        yield database
