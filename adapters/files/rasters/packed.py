"""Rasters in ZIP archives and gzip files, and those whose place is their name."""

import gzip
import re
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.files.package import open_package
from adapters.files.rasters.formats import HGT, driver_of_head
from adapters.files.rasters.source import EXPANSION, EXPANSION_FREE_BYTES, MOST_BYTES
from adapters.ports import UnreadableDocument
from contracts.jobs.rasters import Affine
from domain.jobs.rasters.datasets import is_sidecar, world_file, world_files_of

_ZIP: Final = b"PK\x03\x04"
_GZIP: Final = b"\x1f\x8b"
_HEAD: Final = 64
_PIECE: Final = 1 << 20
_WORLD_BYTES: Final = 10_000
_LITTER: Final = re.compile(r"(^|/)(__MACOSX/|\.DS_Store$|\._|Thumbs\.db$)", re.IGNORECASE)
"""What programs add that nobody has put there."""
_HEIGHTS: Final = ((1201, 1201), (1801, 3601), (3601, 3601), (7201, 7201))
"""Columns and rows of .hgt files, with two bytes each."""
_PLACE: Final = re.compile(r"[NS]\d{2}[EW]\d{3}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Packed:
    """A file that GDAL opens, and where it comes from."""

    path: Path | None
    """None: several rasters are in the archive, and it is not known which is meant."""
    subdataset: int | None
    """Which raster of the file itself is meant."""
    member: str | None = None
    """Its name in the archive; None: the file that was sent is the raster."""
    members: tuple[str, ...] = ()
    """Names of all rasters in the archive, where there are several."""
    transform: Affine | None = None
    """By the world file in the archive."""
    notes: tuple[str, ...] = ()


@contextmanager
def unpacked(path: Path, name: str, subdataset: int | None) -> Generator[Packed]:
    """A raster as GDAL can open it; what is written for that lies in the current folder.

    Args:
        path: The file.
        name: As it was called where it came from.
        subdataset: Which of several rasters, in the archive or in the file.

    Raises:
        UnreadableDocument: The archive is damaged, hostile, or holds no raster.
        RuleViolation: The world file in it is none.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    base = name.rpartition("/")[2] or path.name
    if head.startswith(_ZIP):
        found = _of_zip(path, subdataset)
    elif head.startswith(_GZIP):
        inner = re.sub(r"\.gz$", "", base, flags=re.IGNORECASE)
        target = _written(_unzipped(path), inner, path.stat().st_size)
        found = Packed(target, subdataset, inner)
    elif base.lower().endswith(HGT):
        target = _target(base)
        target.symlink_to(path)
        found = Packed(target, subdataset)
    else:
        found = Packed(path, subdataset)
    try:
        if found.path is not None and found.path.suffix == HGT:
            _check_heights(found.path)
        yield found
    finally:
        if found.path is not None and found.path != path:
            found.path.unlink(missing_ok=True)


def _of_zip(path: Path, chosen: int | None) -> Packed:
    names: list[str] = []
    rasters: list[str] = []
    for name, pieces in _files(path):
        names.append(name)
        head = next(iter(pieces), b"")[:_HEAD]
        if not is_sidecar(name) and (name.lower().endswith(HGT) or driver_of_head(head)):
            rasters.append(name)
    if not rasters:
        raise UnreadableDocument(
            f"the archive holds no raster of a format that is read, but {_listed(names)}"
        )
    if len(rasters) == 1:
        member, inner = rasters[0], chosen
    elif chosen is None or chosen > len(rasters):
        return Packed(None, None, members=tuple(rasters))
    else:
        member, inner = rasters[chosen - 1], None
    world = _world(path, names, member)
    used = {*rasters, *(name for name, _ in world)}
    if len({given for _, given in world}) > 1:
        raise UnreadableDocument(
            f"the archive holds {_listed([name for name, _ in world])}, which place"
            f" {member} differently; keep one of them"
        )
    others = [name for name in names if name not in used]
    notes = (f"not read in the archive: {_listed(others)}"[:500],) if others else ()
    return Packed(
        _member(path, member),
        inner,
        member,
        tuple(rasters) if len(rasters) > 1 else (),
        world[0][1] if world else None,
        notes,
    )


def _files(path: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    with open_package(path, "archive", EXPANSION_FREE_BYTES) as package:
        for name, _, pieces in package.files():
            if not _LITTER.search(name):
                yield name, pieces


def _unzipped(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) as file:
            while piece := file.read(_PIECE):
                yield piece
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UnreadableDocument("the gzip file is damaged or cut off; send it again") from error


def _member(path: Path, member: str) -> Path:
    for name, pieces in _files(path):
        if name == member:
            return _written(pieces, name.rpartition("/")[2], path.stat().st_size)
    raise AssertionError(f"{member} is gone")


def _world(path: Path, names: Iterable[str], member: str) -> list[tuple[str, Affine]]:
    wanted = {name.lower() for name in world_files_of(member)}
    if not any(name.lower() in wanted for name in names):
        return []
    return [
        (name, world_file(_text(pieces), name))
        for name, pieces in _files(path)
        if name.lower() in wanted
    ]


def _text(pieces: Iterator[bytes]) -> str:
    return next(pieces, b"")[:_WORLD_BYTES].decode("latin-1")


def _written(pieces: Iterator[bytes], name: str, stored: int) -> Path:
    target = _target(name)
    most, size = min(MOST_BYTES, max(EXPANSION_FREE_BYTES, EXPANSION * stored)), 0
    with target.open("xb") as file:
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise UnreadableDocument(f"{name} unpacks to more than {most:,} bytes; split it")
            file.write(piece)
    return target


def _target(name: str) -> Path:
    """Where a raster is put: GDAL looks at the names of those without a header."""
    if not name.lower().endswith(HGT):
        return Path("unpacked")
    place = _PLACE.match(name)
    if place is None:
        raise UnreadableDocument(
            f"{name} does not say where its pixels are: an .hgt file has a name like N48E011.hgt"
        )
    return Path(f"{place[0].upper()}.hgt")


def _check_heights(path: Path) -> None:
    size = path.stat().st_size
    if size not in {2 * columns * rows for columns, rows in _HEIGHTS}:
        known = ", ".join(f"{2 * columns * rows:,}" for columns, rows in _HEIGHTS)
        raise UnreadableDocument(
            f"the .hgt file has {size:,} bytes, so it is damaged or of another kind: such files"
            f" have {known}"
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (", ".join(names[:5]) or "no file") + more
