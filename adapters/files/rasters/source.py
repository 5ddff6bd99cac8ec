"""Rasters opened with what is known of them, packed or plain."""

import gzip
import math
import re
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import rasterio
import rasterio.windows
from rasterio.errors import RasterioError

from adapters.files.package import open_package
from adapters.files.sqlite_files import check_tiles
from adapters.ports.errors import UnreadableDocument
from workflows.jobs.raster_files import is_sidecar, world_file, world_files_of
from workflows.jobs.rasters import BANDS, Affine, Nodata

_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"II*\0", "GTiff"),
    (b"MM\0*", "GTiff"),
    (b"II+\0", "GTiff"),
    (b"MM\0+", "GTiff"),
    (b"EHFA_HEADER_TAG", "HFA"),
    (b"NITF", "NITF"),
    (b"NSIF", "NITF"),
    (b"\0\0\0\x0cjP  ", "JP2OpenJPEG"),
    (b"\xff\x4f\xff\x51", "JP2OpenJPEG"),
    (b"\x89PNG\r\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"CDF", "netCDF"),
    (b"\x89HDF\r\n", "netCDF"),
    (b"GRIB", "GRIB"),
    (b"SQLite format 3\0", "GPKG"),
    (b"UHL1", "DTED"),
)
HGT: Final = ".hgt"
"""Heights of the Shuttle Radar Topography Mission: no header, the name says the place."""
_GRID_WORDS: Final = (b"ncols", b"nrows")


def driver_of(path: Path) -> str:
    """The one driver of GDAL that may open a file.

    Raises:
        UnreadableDocument: The file is of none of the formats that are read.
    """
    if path.suffix == HGT:
        return "SRTMHGT"
    with path.open("rb") as file:
        head = file.read(64)
    if (driver := driver_of_head(head)) is not None:
        return driver
    known = ", ".join(dict.fromkeys(driver for _, driver in _SIGNATURES))
    raise UnreadableDocument(
        f"the file is not a raster of a format that is read ({known}, AAIGrid, SRTMHGT): one file"
        " that holds its data itself, or a ZIP or gzip file of it; virtual datasets and those of"
        " several files are not"
    )


def driver_of_head(head: bytes) -> str | None:
    """The driver of a file that begins like this; None: of none of the formats that are read."""
    for signature, driver in _SIGNATURES:
        if head.startswith(signature):
            return driver
    return "AAIGrid" if head[:5].lower() in _GRID_WORDS else None


# rasterio is typed in part: what is read through these is of any type.
open_raster: Any = cast("Any", rasterio).open
Window: Any = rasterio.windows.Window

MOST_BYTES: Final = 256 << 30
"""Uncompressed."""
EXPANSION: Final = 4_000
"""Uncompressed to stored bytes: honest files reach some hundred."""
EXPANSION_FREE_BYTES: Final = 1 << 30
MOST_BLOCK_BYTES: Final = 192 << 20
EXACT_INTEGERS: Final = 1 << 53
"""GDAL resamples in double precision, and so are nodata values kept."""
CHUNK_PIXELS: Final = 4 << 20
"""What is read at once, of one band."""


@contextmanager
def opened(path: Path, subdataset: str | None = None) -> Generator[Any]:
    """A raster, opened with the one driver of its format.

    Raises:
        UnreadableDocument: It is of no format that is read, damaged, or claims too much.
    """
    driver = driver_of(path)
    if driver == "GPKG":
        check_tiles(path)
    try:
        dataset = open_raster(subdataset or path, driver=driver)
    except RasterioError as error:
        raise UnreadableDocument(f"the raster cannot be opened: {plain(error, path)}") from error
    with dataset:
        yield dataset


def check_size(dataset: Any, stored: int) -> None:
    """Refuse what would take too long or too much, before any pixel is read.

    Args:
        dataset: Open.
        stored: Bytes of its file.

    Raises:
        UnreadableDocument: It claims too much.
    """
    if dataset.count > BANDS:
        raise UnreadableDocument(
            f"the raster has {dataset.count:,} bands; at most {BANDS} are read"
        )
    width = sum(np.dtype(_numpy(name)).itemsize for name in dataset.dtypes)
    claimed = dataset.width * dataset.height * width
    says = f"the raster claims {dataset.width:,} x {dataset.height:,} pixels, {claimed:,} bytes"
    if claimed > MOST_BYTES:
        raise UnreadableDocument(f"{says}; at most {MOST_BYTES:,} are read: split it")
    if claimed > max(EXPANSION_FREE_BYTES, EXPANSION * stored):
        raise UnreadableDocument(f"{says}, in a file of {stored:,}: it is almost empty; crop it")
    for (height, across), name in zip(dataset.block_shapes, dataset.dtypes, strict=True):
        block = height * across * np.dtype(_numpy(name)).itemsize
        if block > MOST_BLOCK_BYTES:
            raise UnreadableDocument(
                f"a block of the raster has {across:,} x {height:,} pixels, {block:,} bytes; at"
                f" most {MOST_BLOCK_BYTES:,} are read at once: save it in tiles of 512"
            )


def chunks(dataset: Any) -> Iterator[Any]:
    """Windows over whole blocks that together cover a raster, of a bounded size."""
    block_height, block_width = dataset.block_shapes[0]
    across = max(1, min(dataset.width, CHUNK_PIXELS // max(1, block_height)) // block_width)
    columns = min(dataset.width, across * block_width)
    rows = max(1, CHUNK_PIXELS // max(1, columns) // block_height) * block_height
    for row in range(0, dataset.height, rows):
        for column in range(0, dataset.width, columns):
            yield Window(
                column,
                row,
                min(columns, dataset.width - column),
                min(rows, dataset.height - row),
            )


def nodata_of(value: float | None) -> Nodata | None:
    """A nodata value in a form that JSON has."""
    if value is None:
        return None
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def number_of(value: Nodata | None) -> float | None:
    """The nodata value itself."""
    return None if value is None else float(value)


def plain(error: Exception, path: Path) -> str:
    """What GDAL says, without folders of the server."""
    text = str(error.__cause__ or error).replace(str(path), "the file")
    return text.replace(f"{path.parent}/", "").splitlines()[0][:300] if text else "no reason given"


def _numpy(name: str) -> str:
    return {"complex_int16": "complex64"}.get(name, name)


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
