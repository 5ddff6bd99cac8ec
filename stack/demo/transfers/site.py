"""What the demo's transfers need beside the stack: endpoints, a scanner, keys, rules."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlRouteStore
from adapters.azure.blobs import AzureBlobs
from adapters.azure.storage_account import StorageAccount
from adapters.database.engine import Database
from adapters.files.openpgp.home import gnupg_home
from stack.azurite import azurite, azurite_problem
from stack.clamd import clamd, clamd_program
from stack.openpgp import MadeKey, encrypt, has_gnupg, make_key
from stack.sftp import USER, SftpServer, sftp_server
from workflows.transfers.partners import HostKey, OpenPgpKey, Partner, PlaceKind
from workflows.transfers.routes import RouteRule

ACCOUNT: Final = "ACME"
SOURCE: Final = "supplier"
"""Of events that say that a file is there; the partner has the same name."""
FIRED: Final = "Carried"
"""Type of the events that the first job sends, as `jobsettings.json` of the samples has it."""
CONTAINER: Final = "carried"
SUFFIX: Final = ".pgp"


def missing_parts() -> Sequence[str]:
    """What this machine lacks for transfers, each with where it comes from."""
    found = {
        "clamd is missing: apt-get install clamav-daemon": clamd_program() is None,
        "gpg is missing: apt-get install gnupg": not has_gnupg(),
    }
    lacking = [what for what, is_missing in found.items() if is_missing]
    if (problem := azurite_problem()) is not None:
        lacking.append(problem)
    return lacking


@dataclass(frozen=True)
class TransferSite:
    """A supplier with an SFTP server, a storage account, and a virus scanner."""

    sftp: SftpServer
    storage: str
    """Connection string."""
    clamd: str
    ours: MadeKey
    theirs: MadeKey
    home: Path
    """Of the supplier's GnuPG."""
    samples: Path
    """Folder with `jobsettings.json` and `queues.yaml`."""

    @property
    def stored(self) -> AzureBlobs:
        """The container that files are carried to."""
        return AzureBlobs(self.storage, CONTAINER)

    @property
    def settings(self) -> Mapping[str, str]:
        """The environment variables that let a worker carry files here."""
        return {
            "DOCFLOW_TRANSFERS_SETTINGS": str(self.samples / "jobsettings.json"),
            "DOCFLOW_TRANSFERS_QUEUES": str(self.samples / "queues.yaml"),
            "DOCFLOW_TRANSFERS_LOCAL": "true",
            "CLAMD_ADDRESS": self.clamd,
            "CLAMD_UNDATED": "true",
            # Files are small: the check whether clamd scans the largest one is quick.
            "CLAMD_MAX_BYTES": str(1 << 20),
            "DEMO_LOGIN": self.sftp.login.read_text(),
            "DEMO_OPENPGP_KEY": self.ours.private,
            "DEMO_STORAGE": self.storage,
        }

    async def enrol(self, database: Database) -> None:
        """Add the partners, and the rules that say where events go."""
        supplier = Partner(
            name=SOURCE,
            kind=PlaceKind.SFTP,
            host="127.0.0.1",
            port=self.sftp.port,
            user=USER,
            private_key="env:DEMO_LOGIN",
            host_keys=(HostKey(key=self.sftp.host_key),),
            keys=(
                OpenPgpKey(
                    fingerprint=self.ours.fingerprint, private="env:DEMO_OPENPGP_KEY", own=True
                ),
                OpenPgpKey(fingerprint=self.theirs.fingerprint, public=self.theirs.public),
            ),
        )
        store = Partner(
            name="store",
            kind=PlaceKind.AZURE_BLOB,
            host=StorageAccount.from_connection_string(self.storage).endpoint,
            container=CONTAINER,
            token="env:DEMO_STORAGE",  # noqa: S106 - a reference
        )
        partners, routes = SqlPartnerStore(database), SqlRouteStore(database)
        for partner in (supplier, store):
            await partners.put(partner)
        await routes.put(RouteRule(queue="incoming", rule="1", account_id=ACCOUNT, source=SOURCE))
        await routes.put(RouteRule(queue="archive", rule="1", source="docflow", type=FIRED))

    async def deliver(self, content: bytes, name: str) -> None:
        """Put a file onto the supplier's server, signed by them and encrypted to us."""
        await asyncio.to_thread(
            encrypt,
            self.home,
            content,
            self.sftp.folder / f"{name}{SUFFIX}",
            to=self.ours.fingerprint,
            by=self.theirs.fingerprint,
        )


@asynccontextmanager
async def transfer_site(folder: Path, samples: Path) -> AsyncGenerator[TransferSite]:
    """Start everything; nothing is missing (`missing_parts`).

    Args:
        folder: That of the demo; what is made lies below it.
        samples: Folder of all samples.

    Raises:
        StackError: A server does not start, or GnuPG refuses.
    """
    folder, samples = (each.resolve() / "transfers" for each in (folder, samples))
    folder.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        home = await stack.enter_async_context(gnupg_home())
        # Side by side: most of it is programs that load.
        async with asyncio.TaskGroup() as group:
            sftp = group.create_task(stack.enter_async_context(sftp_server(folder / "supplier")))
            scanner = group.create_task(stack.enter_async_context(clamd(folder / "clamd")))
            storage = group.create_task(stack.enter_async_context(azurite(folder)))
            keys = group.create_task(asyncio.to_thread(_keys, home))
        site = TransferSite(
            sftp.result(), storage.result(), scanner.result(), *keys.result(), home, samples
        )
        await site.stored.create_container()
        yield site


def _keys(home: Path) -> tuple[MadeKey, MadeKey]:
    """Ours, and the supplier's."""
    return make_key(home, "docflow"), make_key(home, SOURCE)
