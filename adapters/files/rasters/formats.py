"""Formats of rasters that are read, by what their files begin with."""

from pathlib import Path
from typing import Final

from adapters.ports import UnreadableDocument

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
