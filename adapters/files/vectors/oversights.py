"""Formats of which GDAL passes over something without a word: it is named, or the file refused.

Only for processes of `adapters.files.vectors.child`.
"""

import csv
import json
import mmap
import re
import struct
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any, Final, cast

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
_PAIR: Final = re.compile(rb"([^\n]*)\n([^\n]*)\n?")
"""A code and its value, of which DXF consists."""
_PLACE: Final = re.compile(rb"<(?:\w+:)?(?:wpt|trkpt|rtept)\b([^>]*)>")
_DEGREES: Final = tuple(
    re.compile(rb"""\s%s\s*=\s*["']\s*[+-]?[0-9]*\.?[0-9]+\.?(?:[eE][+-]?[0-9]+)?\s*["']""" % name)
    for name in (b"lat", b"lon")
)
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
_MIF_SHAPES: Final = frozenset({"point", "line", "rect", "roundrect", "ellipse", "arc"})
_DAY: Final = r"[0-9]{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
_REAL_TEXT: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MID: Final = {
    "integer": re.compile(r"[+-]?[0-9]+"),
    "smallint": re.compile(r"[+-]?[0-9]+"),
    "largeint": re.compile(r"[+-]?[0-9]+"),
    "decimal": re.compile(_REAL_TEXT),
    "float": re.compile(_REAL_TEXT),
    "logical": re.compile(r"T|F|true|false|[01]", re.IGNORECASE),
    "datetime": re.compile(_DAY + r"[0-9]{9}"),
    "date": re.compile(_DAY),
    "time": re.compile(r"[0-9]{9}"),
}
"""How the values of a column are written, by the beginning of its type."""
_WHOLE: Final = re.compile(r"esriFieldType(Small|Big|)(?:OID|Integer)")
_REAL: Final = re.compile(r"esriFieldType(?:Single|Double)")
_BITS: Final = {"Small": 16, "Big": 64}
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
    """Open GPX without extensions, of which GDAL reads some, and some as 0.

    Raises:
        Refused: A point has no latitude or longitude that is a number, for which GDAL takes 0.
    """
    with _mapped(path) as content:
        for point in _PLACE.finditer(content):
            if not all(each.search(point[1]) for each in _DEGREES):
                line = content[: point.start()].count(b"\n") + 1
                shown = point[0][: 2 * _SHOWN].decode(errors="replace")
                raise Refused(f"{shown!r} in line {line:,} has no latitude or longitude in numbers")
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
            pairs = (each.groups() for each in _PAIR.finditer(section[1]))
            kinds.update(
                value.strip().decode(errors="replace").upper()
                for code, value in pairs
                if code.strip() == b"0"
            )
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
        types = {each["name"]: str(each.get("type")) for each in content.get("fields", [])}
        for number, feature in enumerate(content.get("features", []), start=1):
            if reason := next(_faults(feature, types), None):
                raise Refused(f"feature {number:,}: {reason}")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise Refused(f"the file is damaged, or no Esri JSON ({error})") from error
    return open_layers(path, GENERIC[VectorFormat.ESRI_JSON])


def open_topojson(path: Path) -> Source:
    """Open TopoJSON, of which GDAL makes empty geometries where positions are none that it reads.

    Raises:
        Refused: There is one, or the file is damaged.
    """
    try:
        content: Any = json.loads(path.read_bytes())
        arcs: list[Any] = content.get("arcs") or []
        for number, arc in enumerate(arcs):
            if not all(map(_is_position, arc)):
                raise Refused(f"arc {number:,} holds a position that is not two numbers")
        without = 0
        geometries: list[dict[str, Any]] = list(content["objects"].values())
        while geometries:
            each = geometries.pop()
            geometries += each.get("geometries") or ()
            without += each.get("type") is None
            places: list[Any] = each.get("coordinates") or []
            if each.get("type") == "Point":
                places = [places]
            if not all(map(_is_position, places)):
                raise Refused(f"a {each.get('type')} holds a position that is not two numbers")
            known = range(-len(arcs), len(arcs))
            if not all(index in known for index in _numbers_in(each.get("arcs"))):
                raise Refused(f"a {each.get('type')} names an arc that the file does not hold")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise Refused(f"the file is damaged, or no TopoJSON ({error})") from error
    source = open_layers(path, GENERIC[VectorFormat.TOPOJSON])
    if without:
        source.left_out.append(f"{without:,} features without a geometry are left out")
    return source


def _range(bits: int) -> range:
    return range(-(1 << bits - 1), 1 << bits - 1)


def _is_position(place: Any) -> bool:
    if not isinstance(place, list):
        return False
    numbers = cast(list[Any], place)
    return len(numbers) == 2 and all(map(_is_number, numbers))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _numbers_in(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in cast(list[Any], value):
            yield from _numbers_in(each)
    elif value is not None:
        yield value


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


def check_mif(name: str, files: Mapping[str, Path]) -> None:
    """Check the texts of a MIF file and its rows, of which GDAL reads `12x` as 12 and `abc` as 0.

    Args:
        name: Of the layer.
        files: Its parts.

    Raises:
        Refused: A position is no number, or a value is not what its column holds.
    """
    columns: list[tuple[str, str]] = []
    delimiter, declared, in_data = "\t", 0, False
    with files["layer.mif"].open(encoding="latin-1") as file:
        for number, line in enumerate(file, start=1):
            first, *words = line.split() or [""]
            if in_data:
                _check_position(name, number, line)
            elif len(columns) < declared:
                columns.append((first, " ".join(words).lower()))
            elif first.lower() == "delimiter":
                delimiter = line.strip()[-2:-1] or delimiter
            elif first.lower() == "columns" and words and words[0].isdecimal():
                declared = int(words[0])
            in_data = in_data or first.lower() == "data"
    with files["layer.mid"].open(encoding="latin-1", newline="") as file:
        for number, row in enumerate(csv.reader(file, delimiter=delimiter), start=1):
            for value, (column, kind) in zip(row, columns, strict=False):
                expected = next((each for each in _MID if kind.startswith(each)), None)
                if value.strip() and expected and not _MID[expected].fullmatch(value.strip()):
                    raise Refused(
                        f"layer {name!r}, row {number:,}: {value[:_SHOWN]!r} is no {expected}, as"
                        f" column {column!r} has to be"
                    )


def _check_position(name: str, number: int, line: str) -> None:
    first, *words = line.split() or [""]
    if first[:1].isalpha():
        numbers = words if first.lower() in _MIF_SHAPES else []
    else:
        numbers = [] if first.startswith('"') else line.split()
    if not all(map(_is_decimal, numbers)):
        shown = repr(line.strip()[:_SHOWN])
        raise Refused(f"layer {name!r}: {shown} in line {number:,} is no position")


def _is_decimal(text: str) -> bool:
    return _MID["decimal"].fullmatch(text) is not None


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


def _faults(feature: Any, types: Mapping[str, str]) -> Iterator[str]:
    geometry: Any = feature.get("geometry") or {}
    if curve := next((each for each in _CURVES if each in geometry), None):
        yield f"its geometry has arcs ({curve}), which are not read; save them as straight pieces"
    if "x" in geometry and not (_is_number(geometry["x"]) and _is_number(geometry.get("y"))):
        yield "its x and y are not two numbers"
    attributes: dict[str, Any] = feature.get("attributes") or {}
    for name, value in attributes.items():
        shown = repr(value)[:_SHOWN]
        if name not in types:
            yield f"the file does not list field {name!r} among its fields"
        elif value is None:
            continue
        elif found := _WHOLE.fullmatch(types[name]):
            bits = _BITS.get(found[1], 32)
            try:
                is_whole = int(value) == float(value) and int(value) in _range(bits)
            except ValueError:
                is_whole = False
            if not is_whole:
                yield f"{shown} is not a whole number of {bits} bits, as field {name!r} has to be"
        elif _REAL.fullmatch(types[name]):
            try:
                float(value)
            except ValueError:
                yield f"{shown} is not a number, as field {name!r} has to be"
        elif types[name] == "esriFieldTypeDate" and not _is_number(value):
            yield f"{shown} is not a time in milliseconds, as field {name!r} has to be"


@contextmanager
def _mapped(path: Path) -> Generator[mmap.mmap]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content
