"""Archives for tests, honest and hostile ones."""

import gzip
import io
import os
import random
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from adapters.files.archives import ArchiveFiles
from adapters.ports.transfers import ExtractionLimits
from workflows.transfers.settings import ArchiveFormat

ROOMY = ExtractionLimits(files=1_000, bytes=1 << 30, ratio=200)
FILES: Mapping[str, bytes] = {
    "stops.csv": b"stop;lat;lon\n" * 3_000,
    "out/random.bin": random.Random(8).randbytes(300_000),
    "out/empty": b"",
    "Zähler.csv": b"1",
}


def zip_of(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP archive by the standard library."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return sink.getvalue()


def tar_of(files: Mapping[str, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar archive by the standard library."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=format) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def tar_with(**changes: object) -> bytes:
    """A tar archive with one odd entry."""
    info = tarfile.TarInfo("odd")
    for name, value in changes.items():
        setattr(info, name, value)
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        archive.addfile(info)
    return sink.getvalue()


def zip_with(name: str = "odd", content: bytes = b"x", **changes: object) -> bytes:
    """A ZIP archive with one odd entry."""
    info = zipfile.ZipInfo(name)
    for attribute, value in changes.items():
        setattr(info, attribute, value)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(info, content)
    return sink.getvalue()


def overlapping_zip(copies: int = 200) -> bytes:
    """A bomb all of whose entries are the same bytes of the archive."""
    whole = zip_of({"a": bytes(1 << 20)})
    start = whole.index(b"PK\x01\x02")
    entry = whole[start : whole.index(b"PK\x05\x06")]
    directory = b"".join(
        _renamed(entry, name) for name in (f"{number:03}" for number in range(copies))
    )
    local = _longer_local(whole[:start])
    end = struct.pack(
        "<4sHHHHIIH", b"PK\x05\x06", 0, 0, copies, copies, len(directory), len(local), 0
    )
    return local + directory + end


def _renamed(entry: bytes, name: str) -> bytes:
    head = bytearray(entry[:46])
    struct.pack_into("<H", head, 28, len(name))
    return bytes(head) + name.encode() + entry[47:]


def _longer_local(local: bytes) -> bytes:
    head = bytearray(local[:30])
    struct.pack_into("<H", head, 26, 3)
    return bytes(head) + b"000" + local[31:]


def gzip_of(content: bytes, name: str = "") -> bytes:
    """A gzip file; with a name in its header."""
    sink = io.BytesIO()
    with gzip.GzipFile(name, "wb", fileobj=sink, mtime=0) as file:
        file.write(content)
    return sink.getvalue()


async def extracted(
    content: bytes,
    folder: Path,
    limits: ExtractionLimits = ROOMY,
    *,
    name: str = "archive.gz",
    format: ArchiveFormat | None = None,
    password: str | None = None,
    encoding: str = "utf-8",
    flatten: bool = False,
) -> dict[str, bytes]:
    """All files of an archive."""
    path = folder / f"archive-{os.urandom(4).hex()}"
    path.write_bytes(content)
    found: dict[str, bytes] = {}
    members = ArchiveFiles().extract(
        path, name, limits, format=format, password=password, encoding=encoding, flatten=flatten
    )
    async for member in members:
        found[member.name] = b"".join([chunk async for chunk in member.chunks])
    return found


def by_program(folder: Path, *command: str) -> None:
    """Run another program in a folder."""
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
