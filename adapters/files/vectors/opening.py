"""A file of any format as a source of layers: found out, unpacked, brought to UTF-8, opened."""

import mmap
import re
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.archives.gzips import unzipped
from adapters.files.vectors.archive import open_archive
from adapters.files.vectors.formats import GENERIC, JSON, XML, VectorFormat, format_of
from adapters.files.vectors.geojson import open_geojson
from adapters.files.vectors.geopackage import open_geopackage
from adapters.files.vectors.geoparquet_source import open_geoparquet
from adapters.files.vectors.kml import open_kml
from adapters.files.vectors.layers import Refused, Source
from adapters.files.vectors.ogr_layers import open_layers
from adapters.files.vectors.points import open_points
from adapters.files.vectors.texts import in_utf8

_WRONG: Final = re.compile(
    rb"<(?:\w+:)?(?:pos|posList|coordinates)(?:\s[^>]*)?>([^<]*[^<\s\d.,eE+-][^<]*)<"
)
_SYSTEM: Final = re.compile(rb"""\ssrsName\s*=\s*["']([^"']+)""")
_POINT: Final = re.compile(rb"<(?:\w+:)?(?:trkpt|rtept)\s")
_HEIGHT: Final = re.compile(rb"<(?:\w+:)?(?:trkpt|rtept)\s[^>]*[^/]>\s*<(?:\w+:)?ele\W")
_BINARY: Final = b"AutoCAD Binary DXF"
_DXF_END: Final = 64
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
    if format in XML | JSON:
        named, said = in_utf8(named, own / f"utf8.{format.value}", encoding)
    source = _opened(named, format, encoding)
    for layer in source.layers:
        layer.encoding = said or layer.encoding
    return source


def _opened(path: Path, format: VectorFormat, encoding: str | None) -> Source:
    match format:
        case VectorFormat.GEOPACKAGE:
            return open_geopackage(path)
        case VectorFormat.GEOJSON:
            return open_geojson(path)
        case VectorFormat.KML:
            return open_kml(path)
        case VectorFormat.GEOPARQUET:
            return open_geoparquet(path)
        case VectorFormat.GML:
            return _gml(path)
        case VectorFormat.GPX:
            return _gpx(path)
        case VectorFormat.DXF:
            return _dxf(path)
        case VectorFormat.CSV:
            return open_points(path, encoding)
        case _:
            return open_layers(path, GENERIC[format])


def _gml(path: Path) -> Source:
    """Open GML, of which GDAL takes positions that are no numbers for 0, and any mixture of CRS.

    Raises:
        Refused: There is one.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if found := _WRONG.search(content):
            line = content[: found.start()].count(b"\n") + 1
            shown = found[1][:40].decode(errors="replace")
            raise Refused(f"a position of the GML file, {shown!r} in line {line:,}, is no number")
        systems = {found[1].decode(errors="replace") for found in _SYSTEM.finditer(content)}
    source = open_layers(path, GENERIC[VectorFormat.GML])
    if len(systems) > 1 and (layer := next((each for each in source.layers if not each.crs), None)):
        listed = ", ".join(map(repr, sorted(systems)[:5]))
        raise Refused(
            f"features of layer {layer.name!r} are in several coordinate reference systems"
            f" ({listed}); send them in files of their own"
        )
    return source


def _dxf(path: Path) -> Source:
    """Open DXF, of which GDAL reads what is left of a file that was cut off.

    Raises:
        Refused: It was.
    """
    with path.open("rb") as file:
        is_binary = file.read(len(_BINARY)) == _BINARY
        file.seek(max(path.stat().st_size - _DXF_END, 0))
        if not is_binary and b"EOF" not in file.read():
            raise Refused("the DXF file is cut off: its end mark is missing; save it again")
    return open_layers(path, GENERIC[VectorFormat.DXF])


def _gpx(path: Path) -> Source:
    """Open GPX; points without a height get 0 in a track whose others have one."""
    source = open_layers(path, GENERIC[VectorFormat.GPX])
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        points = sum(1 for _ in _POINT.finditer(content))
        heights = sum(1 for _ in _HEIGHT.finditer(content))
    if 0 < heights < points:
        source.left_out.append(f"{points - heights:,} points have no height (ele), and get 0")
    return source


def _inflated(path: Path, target: Path) -> Path:
    size = 0
    with path.open("rb") as packed, target.open("xb") as file:
        for piece in unzipped(packed):
            size += len(piece)
            if size > limits.VECTOR_BYTES:
                raise Refused(f"the file unpacks to more than {limits.VECTOR_BYTES:,} bytes")
            file.write(piece)
    return target
