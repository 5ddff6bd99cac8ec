"""Formats of which GDAL passes over something without a word: it is named, or the file refused.

Only for processes of `adapters.files.vectors.child`.
"""

import json
import mmap
import re
import struct
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from adapters.files.vectors.formats import GENERIC, VectorFormat
from adapters.files.vectors.layers import Refused, Source
from adapters.files.vectors.ogr_layers import open_layers

_SHOWN: Final = 40
_LISTED: Final = 5
_WRONG: Final = re.compile(
    rb"<(?:\w+:)?(?:pos|posList|coordinates)(?:\s[^>]*)?>([^<]*[^<\s\d.,eE+-][^<]*)<"
)
_SYSTEM: Final = re.compile(rb"""\ssrsName\s*=\s*["']([^"']+)""")
_POINT: Final = re.compile(rb"<(?:\w+:)?(?:trkpt|rtept)\s")
_HEIGHT: Final = re.compile(rb"<(?:\w+:)?(?:trkpt|rtept)\s[^>]*[^/]>\s*<(?:\w+:)?ele\W")
_EXTENSIONS: Final = re.compile(rb"<(?:\w+:)?extensions[\s>]")
_LAST: Final = ("dgpsid", "type")
"""The last field that GPX itself has, of points and of lines."""
_ENTITIES: Final = re.compile(rb"^\s*2\r?\n\s*ENTITIES\r?\n(.*?)^\s*0\r?\n\s*ENDSEC", re.M | re.S)
_ENTITY: Final = re.compile(rb"^[ \t]*0\r?\n[ \t]*([^\r\n]+?)[ \t]*\r?$", re.M)
_ENTITIES_READ: Final = frozenset(
    {
        *("POINT", "LINE", "LWPOLYLINE", "POLYLINE", "VERTEX", "SEQEND", "CIRCLE", "ELLIPSE"),
        *("ARC", "SPLINE", "HELIX", "HATCH", "3DFACE", "SOLID", "TRACE", "TEXT", "MTEXT"),
        *("INSERT", "ATTRIB", "DIMENSION", "LEADER", "MULTILEADER", "MLEADER"),
    }
)
_BINARY: Final = b"AutoCAD Binary DXF"
_DXF_END: Final = 64
_TABLE: Final = struct.Struct("<4xLHH")
"""Rows, bytes of the header and of a row in a .dat."""
_ID_BYTES: Final = 4
_GDB_HEAD: Final = 32
_NUMBERS: Final = re.compile(r"esriFieldType(OID|(Small|Big)?Integer|Single|Double)")
_CURVES: Final = ("curveRings", "curvePaths")


def open_gml(path: Path) -> Source:
    """Open GML, of which GDAL takes positions that are no numbers for 0, and any mixture of CRS.

    Raises:
        Refused: There is one.
    """
    with _mapped(path) as content:
        if found := _WRONG.search(content):
            line = content[: found.start()].count(b"\n") + 1
            shown = found[1][:_SHOWN].decode(errors="replace")
            raise Refused(f"a position of the GML file, {shown!r} in line {line:,}, is no number")
        systems = {found[1].decode(errors="replace") for found in _SYSTEM.finditer(content)}
    source = open_layers(path, GENERIC[VectorFormat.GML])
    if len(systems) > 1 and (layer := next((each for each in source.layers if not each.crs), None)):
        listed = ", ".join(map(repr, sorted(systems)[:_LISTED]))
        raise Refused(
            f"features of layer {layer.name!r} are in several coordinate reference systems"
            f" ({listed}); send them in files of their own"
        )
    return source


def open_gpx(path: Path) -> Source:
    """Open GPX without extensions, of which GDAL reads some, and some as 0."""
    source = open_layers(path, GENERIC[VectorFormat.GPX])
    for layer in source.layers:
        names = [each.name for each in layer.fields]
        last = max(names.index(name) for name in _LAST if name in names)
        layer.fields = layer.fields[: last + 1]
    with _mapped(path) as content:
        points = sum(1 for _ in _POINT.finditer(content))
        heights = sum(1 for _ in _HEIGHT.finditer(content))
        extensions = sum(1 for _ in _EXTENSIONS.finditer(content))
    if 0 < heights < points:
        source.left_out.append(f"{points - heights:,} points have no height (ele), and get 0")
    if extensions:
        source.left_out.append(f"extensions of {extensions:,} elements are left out")
    return source


def open_dxf(path: Path) -> Source:
    """Open DXF, of which GDAL reads what is left of a file, and the kinds of entities it knows.

    Raises:
        Refused: It was cut off.
    """
    with _mapped(path) as content:
        is_binary = content[: len(_BINARY)] == _BINARY
        if not is_binary and b"EOF" not in content[-_DXF_END:]:
            raise Refused("the DXF file is cut off: its end mark is missing; save it again")
        kinds: Counter[str] = Counter()
        for section in _ENTITIES.finditer(content):
            found = _ENTITY.finditer(section[1])
            kinds.update(each[1].decode(errors="replace").upper() for each in found)
    source = open_layers(path, GENERIC[VectorFormat.DXF])
    source.left_out += [
        f"{count:,} entities of the kind {kind[:_SHOWN]} are left out"
        for kind, count in sorted(kinds.items())
        if kind not in _ENTITIES_READ
    ]
    return source


def open_esri_json(path: Path) -> Source:
    """Open Esri JSON, of which GDAL takes texts in numbers for 0, and curves for no geometry.

    Raises:
        Refused: There is one, or the file is damaged.
    """
    try:
        content: Any = json.loads(path.read_bytes())
        numbers = [
            each["name"]
            for each in content.get("fields", [])
            if _NUMBERS.fullmatch(str(each.get("type")))
        ]
        for number, feature in enumerate(content.get("features", []), start=1):
            if reason := next(_faults(feature, numbers), None):
                raise Refused(f"feature {number:,}: {reason}")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise Refused(f"the file is damaged, or no Esri JSON ({error})") from error
    return open_layers(path, GENERIC[VectorFormat.ESRI_JSON])


def mapinfo_rows(name: str, files: Mapping[str, Path]) -> int:
    """Return how many rows a table has, each of which has its shape.

    Args:
        name: Of the layer.
        files: Its parts.

    Raises:
        Refused: A part is missing, or was cut off.
    """
    table = files.get("layer.dat")
    if table is not None and table.stat().st_size >= _TABLE.size:
        with _mapped(table) as content:
            records, start, length = _TABLE.unpack(content[: _TABLE.size])
            deleted = content[start : start + records * length : length or 1].count(b"*")
            is_whole = len(content) >= start + records * length
        if (index := files.get("layer.id")) is not None:
            is_whole = is_whole and index.stat().st_size >= _ID_BYTES * records
        if is_whole:
            return records - deleted
    elif rows := files.get("layer.mid"):
        with rows.open("rb") as file:
            return sum(1 for line in file if line.strip())
    raise Refused(f"layer {name!r} lacks a part, or rows of one; save it again")


def check_geodatabase(path: Path) -> None:
    """Check that a table of a file geodatabase, or its index, is as long as it says.

    Raises:
        Refused: It was cut off.
    """
    with path.open("rb") as file:
        head = file.read(_GDB_HEAD)
    stated = 0
    if path.suffix == ".gdbtable":
        stated = int.from_bytes(head[24:32], "little")
    elif path.suffix == ".gdbtablx" and head[:4] == b"\3\0\0\0":
        blocks, width = (int.from_bytes(head[at : at + 4], "little") for at in (4, 12))
        stated = 16 + 1024 * blocks * width
    if path.stat().st_size < stated:
        raise Refused(f"{path.name} of the geodatabase is cut off; save it again")


def _faults(feature: Any, numbers: list[str]) -> Iterator[str]:
    geometry: Any = feature.get("geometry") or ()
    if curve := next((each for each in _CURVES if each in geometry), None):
        yield f"its geometry has arcs ({curve}), which are not read; save them as straight pieces"
    attributes: dict[str, Any] = feature.get("attributes") or {}
    for name in numbers:
        value = attributes.get(name)
        try:
            float(value or 0)
        except ValueError:
            yield f"{str(value)[:_SHOWN]!r} is not a number, as field {name!r} has to be"


@contextmanager
def _mapped(path: Path) -> Generator[mmap.mmap]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content
