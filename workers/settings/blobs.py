"""Settings of the store of documents."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from workers.settings.base import HINT, Missing, Setting, Settings, WholeMessage
from workers.settings.common import web_address

if TYPE_CHECKING:
    from adapters.aws.blobs import Bucket

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
    used_by: ClassVar[str] = "workers, bridges, gateway, commands that read or send documents"

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
