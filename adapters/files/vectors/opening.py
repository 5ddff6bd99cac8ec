"""A file of any format as a source of layers: found out, unpacked, brought to UTF-8, opened."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.faults import DAMAGE, is_of_disk
from adapters.files.vectors.archive import open_archive
from adapters.files.vectors.formats import GENERIC, JSON, XML, VectorFormat, format_of
from adapters.files.vectors.geojson import open_geojson
from adapters.files.vectors.geopackage import open_geopackage
from adapters.files.vectors.geoparquet_source import open_geoparquet
from adapters.files.vectors.kml import open_kml
from adapters.files.vectors.layers import Refused, Source
from adapters.files.vectors.ogr_layers import open_layers
from adapters.files.vectors.oversights import (
    open_dxf,
    open_esri_json,
    open_gml,
    open_gpx,
    open_topojson,
)
from adapters.files.vectors.points import open_points
from adapters.files.vectors.texts import check_xml, in_utf8

_HELD: Final = JSON | {VectorFormat.KML}
_BLOCK: Final = 1 << 20
_OWN: Final[Mapping[VectorFormat, Callable[[Path], Source]]] = {
    VectorFormat.GEOPACKAGE: open_geopackage,
    VectorFormat.GEOJSON: open_geojson,
    VectorFormat.KML: open_kml,
    VectorFormat.GEOPARQUET: open_geoparquet,
    VectorFormat.GML: open_gml,
    VectorFormat.GPX: open_gpx,
    VectorFormat.DXF: open_dxf,
    VectorFormat.ESRI_JSON: open_esri_json,
    VectorFormat.TOPOJSON: open_topojson,
}
"""Formats with a reader or checks of our own."""
_DEPTH: Final = 2
"""An archive, and a file in it that is packed once more."""


def open_source(path: Path, folder: Path, encoding: str | None, depth: int = _DEPTH) -> Source:
    """Open a file.

    Args:
        path: The file.
        folder: Takes what is unpacked or brought to UTF-8; nothing is written elsewhere.
        encoding: Of its texts, in place of what it says.
        depth: How often it may be packed.

    Raises:
        Refused: It is damaged, or of no format that is read.
        Unsure: Nothing says the encoding, and it matters.
        UnreadableDocument: It is damaged, hostile or too large.
    """
    format = format_of(path)
    if format in (VectorFormat.ARCHIVE, VectorFormat.GZIP):
        if not depth:
            raise Refused("the file is packed more than twice; send it unpacked")
        inside = folder / "unpacked"
        inside.mkdir()

        def open_inside(each: Path) -> Source:
            return open_source(each, each.parent, encoding, depth - 1)

        if format is VectorFormat.ARCHIVE:
            return open_archive(path, inside, encoding, open_inside)
        return open_inside(_inflated(path, inside / "content"))
    # GDAL goes by the suffix here and there, and looks for others beside it: there are none.
    own = folder / "source"
    own.mkdir()
    named = own / f"source.{format.value}"
    named.symlink_to(path)
    said = None
    if format in _HELD and path.stat().st_size > limits.HELD_BYTES:
        most = limits.HELD_BYTES // limits.MB
        raise Refused(f"the file is larger than {most:,} MB; send it as GeoPackage")
    if format in XML | JSON:
        named, said = in_utf8(named, own / f"utf8.{format.value}", encoding)
    if format in (VectorFormat.GML, VectorFormat.GPX):
        check_xml(named)
    source = _opened(named, format, encoding)
    for layer in source.layers:
        layer.encoding = said or layer.encoding
    return source


def _opened(path: Path, format: VectorFormat, encoding: str | None) -> Source:
    if format is VectorFormat.CSV:
        return open_points(path, encoding)
    if (own := _OWN.get(format)) is not None:
        return own(path)
    return open_layers(path, GENERIC[format])


def _inflated(path: Path, target: Path) -> Path:
    size = 0
    try:
        with gzip.open(path) as packed, target.open("xb") as file:
            while piece := packed.read(_BLOCK):
                size += len(piece)
                if size > limits.VECTOR_BYTES:
                    raise Refused(f"the file unpacks to more than {limits.VECTOR_BYTES:,} bytes")
                file.write(piece)
    except DAMAGE as error:
        if is_of_disk(error):
            raise
        raise Refused(f"the gzip file is damaged or cut off ({error}); save it again") from error
    return target
