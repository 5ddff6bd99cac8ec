"""Far ends of every protocol, each over a server of its own."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adapters.aws.session import AwsSettings
from adapters.azure.blobs import AzureBlobs
from adapters.places.opening import PartnerPlaces
from adapters.ports.places import Place
from contracts.transfers import Partner, PlaceKind
from stack.azurite import azurite
from tests.support.aws import moto
from tests.support.transfers.http_files import http_files
from tests.support.transfers.places import open_places
from tests.support.transfers.sftp_server import (
    PASSWORD,
    Whole,
    WithoutAttributes,
    WithoutPosixRename,
    WithoutRename,
    sftp_site,
)

Opens = Callable[[], AbstractAsyncContextManager[Place]]

SFTP: dict[str, type[Whole] | None] = {
    "sftp": Whole,
    "sftp-non-atomic": WithoutPosixRename,
    "sftp-direct": WithoutRename,
    "sftp-no-attributes": WithoutAttributes,
}
KINDS = [
    "folder",
    *SFTP,
    pytest.param("openssh", marks=pytest.mark.openssh),
    "azure",
    "s3",
    "https",
]


@dataclass(frozen=True)
class FarEnd:
    """One far end of a test."""

    kind: str
    partner: Partner
    places: PartnerPlaces
    folder: Path | None = None
    """Where its files are, of kinds that serve a folder."""

    def open(self, **fields: Any) -> AbstractAsyncContextManager[Place]:
        """Connect; with other fields in the record where they are given."""
        return self.places.open(self.partner.model_copy(update=fields))

    @property
    def has_folders(self) -> bool:
        """Whether files have folders, links and rights."""
        return self.folder is not None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def azure_account(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    """Connection string of an emulator."""
    async with azurite(tmp_path_factory.mktemp("azurite")) as connection_string:
        yield connection_string


@pytest.fixture(scope="module")
def aws_account() -> Any:
    """moto."""
    with moto() as settings:
        yield settings


@pytest_asyncio.fixture(params=KINDS)
async def far(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[FarEnd]:
    """A far end of each kind, with nothing in it."""
    async with far_end(request.param, request, tmp_path) as opened:
        yield opened


@asynccontextmanager
async def far_end(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[FarEnd]:
    """A far end of a kind."""
    if kind == "folder":
        folder = tmp_path / "share"
        folder.mkdir()
        partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(folder))
        yield FarEnd(kind, partner, open_places(folders=[tmp_path]), folder)
    elif kind in SFTP or kind == "openssh":
        async with sftp_site(tmp_path / "served", SFTP.get(kind)) as site:
            places = open_places({"SFTP_PASSWORD": PASSWORD})
            yield FarEnd(kind, site.partner(), places, site.folder)
    elif kind == "azure":
        account = request.getfixturevalue("azure_account")
        yield await azure_end(account)
    elif kind == "s3":
        yield await s3_end(request.getfixturevalue("aws_account"))
    else:
        async with http_files() as server:
            partner = Partner(
                name="acme", kind=PlaceKind.HTTPS, host="http://127.0.0.1", port=server.port
            )
            yield FarEnd(kind, partner, open_places())


async def azure_end(account: str) -> FarEnd:
    """A container of its own."""
    container = f"far-{uuid.uuid4().hex[:12]}"
    await AzureBlobs(account, container).create_container()
    partner = Partner(
        name="acme",
        kind=PlaceKind.AZURE_BLOB,
        host="http://127.0.0.1",
        container=container,
        token="env:ACCOUNT",
    )
    return FarEnd("azure", partner, open_places({"ACCOUNT": account}))


async def s3_end(account: AwsSettings) -> FarEnd:
    """A bucket of its own."""
    import aioboto3

    bucket = f"far-{uuid.uuid4().hex[:12]}"
    session = aioboto3.Session("test", "test", region_name=account.region)
    client: Any
    async with session.client("s3", endpoint_url=account.endpoint_url) as client:
        await client.create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": account.region}
        )
    partner = Partner(
        name="acme",
        kind=PlaceKind.S3,
        host=account.endpoint_url,
        container=bucket,
        user="test",
        token="env:SECRET",
    )
    return FarEnd("s3", partner, open_places({"SECRET": "planted-secret-access-key"}))
