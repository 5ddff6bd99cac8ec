"""Formats of vector data, by what a file begins with; its name may say anything."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from adapters.files.vectors.layers import Refused
from adapters.files.vectors.ogr_layers import Format

_HEAD: Final = 1 << 16
_BLANK: Final = b" \t\r\n\x1e"
"""With the separator of records in a text sequence (RFC 8142)."""
_XML: Final = re.compile(
    rb"(?:(?><\?.*?\?>)|(?><!--.*?-->)|\s)*+(<!DOCTYPE|<(?:[\w.-]+:)?([\w.-]+))", re.S
)
_GML: Final = b"opengis.net/gml"
_TOPOLOGY: Final = re.compile(rb'"type"\s*:\s*"Topology"')
_GEOJSON: Final = re.compile(
    rb'"type"\s*:\s*"(Feature|FeatureCollection|GeometryCollection|(Multi)?(Point|LineString|Polygon))"'
)
_ESRI: Final = re.compile(rb'"(geometryType|spatialReference|attributes)"\s*:')
_DXF: Final = re.compile(rb"AutoCAD Binary DXF|(\s*999\r?\n.*\r?\n)*\s*0\r?\n\s*SECTION\s", re.I)
_MAPINFO: Final = re.compile(rb"\s*(!table|version\s+\d+)\s", re.I)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_READ: Final = (
    "Shapefile, MapInfo or file geodatabase (zipped), GeoPackage, GeoJSON, TopoJSON, Esri JSON,"
    " KML, KMZ, GML, GPX, FlatGeobuf, GeoParquet, DXF, CSV with coordinates"
)


class VectorFormat(StrEnum):
    """What is read; the value is the suffix it is read under."""

    ARCHIVE = "zip"
    GZIP = "gz"
    GEOPACKAGE = "gpkg"
    GEOJSON = "geojson"
    TOPOJSON = "topojson"
    ESRI_JSON = "json"
    KML = "kml"
    GML = "gml"
    GPX = "gpx"
    FLATGEOBUF = "fgb"
    GEOPARQUET = "parquet"
    DXF = "dxf"
    CSV = "csv"


XML: Final = frozenset({VectorFormat.KML, VectorFormat.GML, VectorFormat.GPX})
JSON: Final = frozenset({VectorFormat.GEOJSON, VectorFormat.TOPOJSON, VectorFormat.ESRI_JSON})
MAPINFO: Final = Format("MapInfo", "MapInfo File")
GEODATABASE: Final = Format("file geodatabase", "OpenFileGDB", has_zones=False)
GENERIC: Final[Mapping[VectorFormat, Format]] = {
    VectorFormat.TOPOJSON: Format("TopoJSON", "TopoJSON"),
    VectorFormat.ESRI_JSON: Format("Esri JSON", "ESRIJSON"),
    VectorFormat.GML: Format("GML", "GML", has_types=False),
    VectorFormat.GPX: Format("GPX", "GPX", is_fixed=True),
    VectorFormat.FLATGEOBUF: Format("FlatGeobuf", "FlatGeobuf"),
    VectorFormat.DXF: Format("DXF", "DXF"),
}
"""Those that GDAL alone reads, from one file."""
_MAGIC: Final[Mapping[bytes, VectorFormat]] = {
    b"SQLite format 3\0": VectorFormat.GEOPACKAGE,
    b"PK\x03\x04": VectorFormat.ARCHIVE,
    b"PK\x05\x06": VectorFormat.ARCHIVE,
    b"\x1f\x8b": VectorFormat.GZIP,
    b"fgb\x03": VectorFormat.FLATGEOBUF,
    b"PAR1": VectorFormat.GEOPARQUET,
}


def format_of(path: Path) -> VectorFormat:
    """The format of a file.

    Raises:
        Refused: It is none of those that are read.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    if head[:4] == b"\0\0\x27\x0a":
        raise Refused("a .shp alone is a part of a Shapefile; zip it with its .shx, .dbf and .prj")
    if head[:2] in _UTF16:
        head = head.decode("utf-16", errors="replace").encode()
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    if text.startswith(b"{"):
        return _json(text)
    if text.startswith(b"<"):
        return _xml(text)
    if _DXF.match(head):
        return VectorFormat.DXF
    if _MAPINFO.match(head):
        raise Refused("a .tab or .mif alone is a part of its data; zip all files of its name")
    if text and b"\0" not in text and any(each in text.splitlines()[0] for each in b",;\t|"):
        return VectorFormat.CSV
    raise Refused(f"the file is none of those that are read: {_READ}")


def _json(text: bytes) -> VectorFormat:
    if _TOPOLOGY.search(text):
        return VectorFormat.TOPOJSON
    is_esri = _ESRI.search(text) and not _GEOJSON.search(text)
    return VectorFormat.ESRI_JSON if is_esri else VectorFormat.GEOJSON


def _xml(text: bytes) -> VectorFormat:
    found = _XML.match(text)
    if found is None or found[2] is None:
        if found is not None:
            raise Refused(
                "the file holds an XML document type, which is not read; save it again with the"
                " program that it comes from"
            )
        raise Refused("the file is XML, but no KML, GML or GPX")
    if found[2] == b"kml":
        return VectorFormat.KML
    if found[2] == b"gpx":
        return VectorFormat.GPX
    if _GML in text:
        return VectorFormat.GML
    raise Refused("the file is XML, but no KML, GML or GPX")
