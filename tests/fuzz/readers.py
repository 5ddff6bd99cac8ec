"""Readers as the steps of docflow call them, and what each may say of a damaged file."""

import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from adapters.files.archives import ArchiveFiles
from adapters.files.documents import FileDocuments
from adapters.files.openpgp.keyring import GnuPg
from adapters.files.rasters.pool import FileRasters
from adapters.files.schedules.primavera import open_schedule
from adapters.files.texts.pool import FileTexts
from adapters.files.vectors.reader import VectorFiles
from adapters.ports.transfers import ExtractionLimits
from tests.fuzz.seeds import ARCHIVES, DOCUMENTS, RASTERS, SCHEDULES, TABLES, VECTORS, Seeds
from tests.support.imports.documents import read as read_rows
from tests.support.imports.schedule_reading import read_project
from tests.support.transfers.openpgp import Forge, collected, pieces_of
from tests.support.transfers.secrets import PlantedSecrets
from workflows.jobs.vectors import VectorOptions

Read = Callable[[Path], Awaitable[object]]
"""Reads a file, which lies in a folder of its own that may be written to."""
_LIMITS: Final = ExtractionLimits(files=1_000, bytes=1 << 30, ratio=100)
_OPTIONS: Final = VectorOptions(dataset="fuzz", source_crs="EPSG:4326")
_MOST: Final = 1 << 30
_TEXT: Final = b"stop;lat;lon\n" * 50


async def _table(path: Path) -> None:
    with FileDocuments().open_workbook(path, filename=path.name, encoding=None) as book:
        for name in [sheet.name for sheet in book.sheets] or [None]:
            for _ in book.table(name).rows():
                pass
    read_rows(path, "equipment")


async def _schedule(path: Path) -> None:
    with open_schedule(path) as source:
        for project in source.projects():
            read_project(source, project.primavera_project_id)


async def _archive(path: Path) -> None:
    async for member in ArchiveFiles().extract(path, path.name, _LIMITS):
        async for _ in member.chunks:
            pass


def _inside(path: Path) -> Path:
    folder = path.parent / "out"
    folder.mkdir()
    return folder


@asynccontextmanager
async def tables() -> AsyncGenerator[Read]:
    """The reader of tables, as imports use it."""
    yield _table


@asynccontextmanager
async def schedules() -> AsyncGenerator[Read]:
    """The reader of schedules."""
    yield _schedule


@asynccontextmanager
async def archives() -> AsyncGenerator[Read]:
    """What unpacks the files of transfers."""
    yield _archive


@asynccontextmanager
async def vectors() -> AsyncGenerator[Read]:
    """The reader of vector data."""
    async with VectorFiles() as files:

        async def read(path: Path) -> None:
            for layer in (await files.read(path, _inside(path), _OPTIONS)).layers:
                assert layer.kept + layer.rejected == layer.features, layer

        yield read


@asynccontextmanager
async def rasters() -> AsyncGenerator[Read]:
    """The reader of rasters, up to the tiled file that all further steps read."""
    async with FileRasters() as files:

        async def read(path: Path) -> None:
            inside = _inside(path)
            name = "N48E011.hgt.gz" if path.suffixes[:1] == [".hgt"] else path.name
            facts = await files.inspect(path, inside, name=name)
            await files.prepare(path, facts, inside / "prepared.tif", name)

        yield read


@asynccontextmanager
async def documents() -> AsyncGenerator[Read]:
    """The reader of the documents of batches."""
    async with FileTexts() as texts:
        yield lambda path: texts.extract(path, path.name, _inside(path))


def _made(content: bytes, _: Path) -> Sequence[bytes]:
    return [content]


class OpenPgpFiles:
    """Messages of a partner to us, and what reads them.

    Args:
        forge: The partner's GnuPG.
        pgp: Ours.
        secrets: Ours.
    """

    def __init__(self, forge: Forge, pgp: GnuPg, secrets: PlantedSecrets) -> None:
        us, acme = forge.party("us"), forge.party("acme")
        self._signer = acme.fingerprint
        self.ring = pgp.open([us.own(secrets), acme.partner()])
        encrypt = ("--sign", "-u", acme.fingerprint, "--encrypt", "-r", us.fingerprint)
        messages = {
            "encrypted": encrypt,
            "armoured": ("--armor", *encrypt),
            "signed": ("--sign", "-u", acme.fingerprint),
            "clear-signed": ("--clear-sign", "-u", acme.fingerprint),
            "detached": ("--detach-sign", "-u", acme.fingerprint),
        }
        self.seeds: Mapping[str, Seeds] = {
            name: partial(_made, forge.call(*arguments, given=_TEXT))
            for name, arguments in messages.items()
        }

    @asynccontextmanager
    async def reader(self) -> AsyncGenerator[Read]:
        """Reads messages by the ends of their names."""
        async with self.ring as ring:

            async def read(path: Path) -> None:
                content, signers = path.read_bytes(), [self._signer]
                if path.suffix == ".detached":
                    path.write_bytes(_TEXT)
                    await ring.verify(path, content, signers)
                elif path.suffix in (".signed", ".clear-signed"):
                    await ring.read_signed(pieces_of(content), collected, signers, most=_MOST)
                else:
                    await ring.decrypt(pieces_of(content), collected, signers, most=_MOST)

            yield read


@asynccontextmanager
async def openpgp_files() -> AsyncGenerator[OpenPgpFiles]:
    """GnuPG of both sides; paths of its sockets have to be short."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm"))
    for name in ("forge", "homes"):
        (folder / name).mkdir()
    secrets, forge = PlantedSecrets(), Forge(folder / "forge")
    try:
        yield OpenPgpFiles(forge, GnuPg(secrets, folder / "homes"), secrets)
    finally:
        forge.close()
        shutil.rmtree(folder, ignore_errors=True)


KINDS: Final = {
    "tables": (TABLES, tables),
    "schedules": (SCHEDULES, schedules),
    "vectors": (VECTORS, vectors),
    "rasters": (RASTERS, rasters),
    "documents": (DOCUMENTS, documents),
    "archives": (ARCHIVES, archives),
}
"""Kind of reader to the seeds of its formats, and the reader; openpgp is made apart."""
