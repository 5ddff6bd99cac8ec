"""Endpoints of every protocol, each over a server of its own; keys of OpenPGP."""

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from temporalio.client import Client

from adapters.aws.session import AwsSettings
from adapters.azure.blobs import AzureBlobs
from adapters.database.engine import Database
from adapters.files.openpgp.keyring import GnuPg
from adapters.places.partner_places import PartnerPlaces
from adapters.ports.places import Place
from stack.azurite import azurite
from tests.support.aws import moto
from tests.support.transfers.http_files import http_files
from tests.support.transfers.installation import Installation, open_installation
from tests.support.transfers.listed_place import ListedPlaces
from tests.support.transfers.looks import Looks, Make, a_watch
from tests.support.transfers.openpgp import OUR_PASSPHRASE, Forge, Party
from tests.support.transfers.places import open_places
from tests.support.transfers.secrets import PlantedSecrets
from tests.support.transfers.sftp_server import (
    PASSWORD,
    Whole,
    WithoutAttributes,
    WithoutPosixRename,
    WithoutRename,
    sftp_site,
)
from workflows.transfers.partners import Partner, PlaceKind

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
class Endpoint:
    """One endpoint of a test."""

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


@pytest.fixture(scope="module")
def azure_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Connection string of an emulator with the container `far`."""
    with asyncio.Runner() as runner:
        running = azurite(tmp_path_factory.mktemp("azurite"))
        account = runner.run(running.__aenter__())
        runner.run(AzureBlobs(account, "far").create_container())
        yield account
        runner.run(running.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def aws_account() -> Iterator[AwsSettings]:
    """moto, with the bucket `far`."""
    with moto() as settings:
        httpx.put(f"{settings.endpoint_url}/far").raise_for_status()
        yield settings


@dataclass(frozen=True)
class Kind:
    """A kind of endpoint, and the account that it is in."""

    name: str
    account: Any = None


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each of the kinds."""
    accounts = {"azure": "azure_account", "s3": "aws_account"}
    fixture = accounts.get(request.param)
    return Kind(request.param, fixture and request.getfixturevalue(fixture))


@pytest_asyncio.fixture
async def far(kind: Kind, tmp_path: Path) -> AsyncGenerator[Endpoint]:
    """An endpoint of each kind, with nothing in it."""
    async with endpoint(kind, tmp_path) as opened:
        yield opened


@asynccontextmanager
async def endpoint(kind: Kind, tmp_path: Path) -> AsyncIterator[Endpoint]:
    """An endpoint of a kind."""
    name = kind.name
    if name == "folder":
        folder = tmp_path / "share"
        folder.mkdir()
        partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(folder))
        yield Endpoint(name, partner, open_places(folders=[tmp_path]), folder)
    elif name in SFTP or name == "openssh":
        async with sftp_site(tmp_path / "served", SFTP.get(name)) as site:
            places = open_places({"SFTP_PASSWORD": PASSWORD})
            yield Endpoint(name, site.partner(), places, site.folder)
    elif name == "azure":
        yield azure_end(kind.account)
    elif name == "s3":
        yield s3_end(kind.account)
    else:
        async with http_files() as server:
            partner = Partner(
                name="acme", kind=PlaceKind.HTTPS, host="http://127.0.0.1", port=server.port
            )
            yield Endpoint(name, partner, open_places())


def azure_end(account: str) -> Endpoint:
    """A folder of its own in the container."""
    partner = Partner(
        name="acme",
        kind=PlaceKind.AZURE_BLOB,
        host="http://127.0.0.1",
        container="far",
        root=f"test/{uuid.uuid4().hex}",
        token="env:ACCOUNT",
    )
    return Endpoint("azure", partner, open_places({"ACCOUNT": account}))


def s3_end(account: AwsSettings) -> Endpoint:
    """A folder of its own in the bucket."""
    partner = Partner(
        name="acme",
        kind=PlaceKind.S3,
        host=account.endpoint_url,
        container="far",
        root=f"test/{uuid.uuid4().hex}",
        user="test",
        token="env:SECRET",
    )
    return Endpoint("s3", partner, open_places({"SECRET": "planted-secret-access-key"}))


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    """GnuPG with the keys of all parties."""
    home = Path(tempfile.mkdtemp(prefix="forge-", dir="/dev/shm"))
    made = Forge(home)
    yield made
    made.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def us(forge: Forge) -> Party:
    """We; our key has a passphrase."""
    return forge.party("us", OUR_PASSPHRASE)


@pytest.fixture(scope="module")
def acme(forge: Forge) -> Party:
    """A partner."""
    return forge.party("acme")


@pytest.fixture(scope="module")
def other(forge: Forge) -> Party:
    """Another partner."""
    return forge.party("other")


@pytest.fixture
def secrets() -> PlantedSecrets:
    """Secrets of docflow."""
    return PlantedSecrets()


@pytest.fixture
def homes() -> Path:
    """Where keyrings of docflow are."""
    return Path(tempfile.mkdtemp(prefix="homes-", dir="/dev/shm"))


@pytest.fixture
def pgp(secrets: PlantedSecrets, homes: Path) -> Iterator[GnuPg]:
    """docflow's side, which leaves no keyring behind."""
    yield GnuPg(secrets, homes)
    assert not list(homes.iterdir()), "a keyring was left behind"
    homes.rmdir()


@pytest_asyncio.fixture(loop_scope="module")
async def transfers(
    client: Client, database_url: str, tmp_path: Path
) -> AsyncGenerator[Installation]:
    """Workers of transfers over tables of their own."""
    async with open_installation(client, database_url, tmp_path) as opened:
        yield opened


@pytest.fixture
def looks(database: Database) -> Make:
    """Makes watches of an endpoint in memory."""

    def make(**fields: Any) -> Looks:
        return Looks(database, ListedPlaces(), a_watch(**fields))

    return make
