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
_GRID_WORDS: Final = (b"ncols", b"nrows")


def driver_of(path: Path) -> str:
    """The one driver of GDAL that may open a file.

    Raises:
        UnreadableDocument: The file is of none of the formats that are read.
    """
    with path.open("rb") as file:
        head = file.read(64)
    for signature, driver in _SIGNATURES:
        if head.startswith(signature):
            return driver
    if head[:5].lower() in _GRID_WORDS:
        return "AAIGrid"
    known = ", ".join(dict.fromkeys(driver for _, driver in _SIGNATURES))
    raise UnreadableDocument(
        f"the file is not a raster of a format that is read ({known}, AAIGrid): one file that holds"
        " its data itself; virtual datasets and those of several files are not"
    )
