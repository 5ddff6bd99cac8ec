"""The blob store alone."""

from adapters.ports import Blobs
from workers.settings.blobs import BlobSettings


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
