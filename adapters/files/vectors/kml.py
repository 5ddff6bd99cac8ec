"""KML: placemarks with the folders that they lie in.

Source: OGC 12-007r2. Everything that is not data of a placemark (styles, links, overlays) is named
and left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, TreeBuilder

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from adapters.files.package import XmlStream, parse
from adapters.files.vectors.layers import (
    Columns,
    Layer,
    Source,
    SourceField,
    bounds_of,
    in_chunks,
    typed,
)
from workflows.jobs.vectors import ColumnType, FeatureProblem, text_column

_BLOCK: Final = 1 << 16
_FOLDERS: Final = frozenset({"Document", "Folder"})
_PLAIN: Final = {
    "Placemark": frozenset({"name", "description", "address", "phoneNumber", "snippet", "Snippet"}),
    "TimeStamp": frozenset({"when"}),
    "TimeSpan": frozenset({"begin", "end"}),
}
"""Elements of a placemark that become columns of their name, by the element that they lie in."""
_MULTIPLES: Final = frozenset(
    {"MultiGeometry", "MultiPoint", "MultiLineString", "MultiPolygon", "MultiTrack"}
)
"""Those that KML knows, and those that programs write by the names of other formats."""
_SHAPES: Final = frozenset({"Point", "LineString", "LinearRing", "Polygon", "Track", *_MULTIPLES})
_READ: Final = frozenset(
    {
        *_SHAPES,
        *("outerBoundaryIs", "innerBoundaryIs", "coordinates"),
        *("ExtendedData", "SchemaData", "Data", "SimpleData", "value"),
        *("TimeStamp", "TimeSpan", "open", "Schema", "SimpleField"),
    }
)
"""Other elements of a placemark that are read, or say nothing of its data."""
_LISTED: Final = 10
_LEFT_OUT: Final = {
    "Style": "styles",
    "StyleMap": "styles",
    "styleUrl": "styles",
    "NetworkLink": "links to other files",
    "GroundOverlay": "overlays",
    "PhotoOverlay": "overlays",
    "ScreenOverlay": "overlays",
    "Model": "models",
    "LookAt": "views",
    "Camera": "views",
    "Region": "regions",
    "Tour": "tours",
    "altitudeMode": "modes of altitude",
    "extrude": "extrusions",
    "tessellate": "tessellations",
    "visibility": "marks of being hidden",
}
_SOMETIMES: Final = {
    "altitudeMode": "absolute",
    "extrude": "0",
    "tessellate": "0",
    "visibility": "1",
}
"""Of those left out: elements that say something only if their text is another one."""


_KINDS: Final = {
    **dict.fromkeys(("int", "uint", "short", "ushort"), ColumnType.INTEGER),
    **dict.fromkeys(("float", "double"), ColumnType.REAL),
    "bool": ColumnType.BOOLEAN,
}
"""Types of fields in a schema; others are text."""


class _Invalid(Exception):
    """A geometry is not one of KML."""


def open_kml(path: Path) -> Source:
    """Read a file.

    Raises:
        Refused: It has more different data than a table has columns.
        UnreadableDocument: It is not XML, damaged or hostile.
    """
    reader = _Reader()
    stream = XmlStream(reader.start, reader.end, reader.text, "KML file")
    with path.open("rb") as file:
        parse(iter(lambda: file.read(_BLOCK), b""), stream)
    left_out = [f"{count:,} {what}" for what, count in sorted((+reader.left_out).items())]
    if reader.unread:
        named = ", ".join(map(repr, sorted(reader.unread)[:_LISTED]))
        left_out.append(f"{reader.unread.total():,} other elements, such as {named}")
    return Source("KML", [reader.layer()], left_out)


class _Reader:
    """Takes the elements as they come, and each placemark as a tree."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        """Elements that are none of those known here."""
        self._path: list[str] = []
        self._skipped = 0
        """Open elements below one that is left out."""
        self._folders: list[str] = []
        self._text: list[str] = []
        self._placemark: TreeBuilder | None = None
        self._depth = 0
        """Open elements of the placemark."""
        self._schema = ""
        self._kinds: dict[tuple[str, str], ColumnType] = {}
        """Types by schema and field."""
        self._typed: dict[str, set[ColumnType]] = {}
        """Column to what the schemas of its values say."""
        self._filled = 0
        """Lists of coordinates of which some lack a height."""
        self._geometries: list[BaseGeometry | None] = []
        self._columns = Columns({"folder": [], "name": []})
        self._problems: list[FeatureProblem] = []
        self._document: str | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._text.clear()
        if self._skipped:
            self._skipped += 1
        elif self._placemark is not None or name == "Placemark":
            self._placemark = self._placemark or TreeBuilder()
            self._placemark.start(name, attributes)
            self._depth += 1
        elif name in _LEFT_OUT and name not in _SOMETIMES:
            self.left_out[_LEFT_OUT[name]] += 1
            self._skipped = 1
        else:
            self._path.append(name)
            if name in _FOLDERS:
                self._folders.append("")
            elif name == "Schema":
                self._schema = attributes.get("id") or attributes.get("name", "")
            elif name == "SimpleField" and (kind := _KINDS.get(attributes.get("type", ""))):
                self._kinds[self._schema, attributes.get("name", "")] = kind

    def text(self, text: str) -> None:
        """Some text of the open element."""
        if self._placemark is not None:
            self._placemark.data(text)
        elif not self._skipped:
            self._text.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        if self._skipped:
            self._skipped -= 1
            return
        if self._placemark is not None:
            self._placemark.end(name)
            self._depth -= 1
            if not self._depth:
                placemark, self._placemark = self._placemark.close(), None
                self._sort_out(placemark)
                self._take(placemark)
            return
        text = "".join(self._text).strip()
        self._text.clear()
        self._path.pop()
        if name in _FOLDERS:
            self._folders.pop()
        elif name == "name" and self._path and self._path[-1] in _FOLDERS:
            self._folders[-1] = text
            if len(self._folders) == 1 and self._document is None:
                self._document = text
        elif name in _LEFT_OUT:
            self._count(name, text)
        elif text and name not in _READ:
            self.unread[name[:100]] += 1

    def _count(self, name: str, text: str) -> None:
        if name not in _SOMETIMES or text not in ("", _SOMETIMES[name]):
            self.left_out[_LEFT_OUT[name]] += 1

    def _sort_out(self, element: Element) -> None:
        """Count and remove what is not read of a placemark."""
        kept: list[Element] = []
        plain = _PLAIN.get(element.tag, frozenset())
        for child in element:
            if child.tag in _LEFT_OUT:
                self._count(child.tag, _text_of(child))
            elif child.tag in _READ or child.tag in plain or element.tag == "Track":
                self._sort_out(child)
                kept.append(child)
            else:
                self.unread[child.tag[:100]] += 1
        element[:] = kept

    def _take(self, placemark: Element) -> None:
        """Add the feature of a placemark."""
        values = {"folder": "/".join(self._folders) or None}
        if identity := placemark.get("id"):
            values["id"] = identity
        shapes: list[BaseGeometry | None] = []
        number = len(self._geometries) + 1
        try:
            for child in placemark:
                if child.tag in _SHAPES:
                    shapes.append(self._shape(child))
        except _Invalid as error:
            self._problems.append(FeatureProblem(feature=number, reason=str(error)))
        for child in placemark:
            if child.tag in _PLAIN["Placemark"]:
                _keep(values, child.tag, child)
            elif child.tag in _PLAIN:
                for each in child:
                    _keep(values, each.tag, each)
            elif child.tag == "ExtendedData":
                self._data(values, child, None)
        moments = [_text_of(each) for each in placemark.iter("when") if "when" not in values]
        if moments:
            # Those of a track; the columns are the ones of a span.
            values = {"begin": moments[0], "end": moments[-1], **values}
            self.left_out["moments of tracks between their ends"] += max(len(moments) - 2, 0)
        self._columns.add(values)
        self._geometries.append(shapes[0] if len(shapes) == 1 else _collected(shapes))

    def _data(self, values: dict[str, str | None], element: Element, schema: str | None) -> None:
        for each in element:
            if each.tag == "SchemaData":
                self._data(values, each, each.get("schemaUrl", "").rpartition("#")[2])
                continue
            name = each.get("name")
            for value in [each] if each.tag == "SimpleData" else each:
                if name is None:
                    self.unread[value.tag] += 1
                    continue
                # A name of its own, so that data called "name" are not the placemark's.
                key = _keep(values, f"\0{name}", value)
                kind = self._kinds.get((schema or "", name), ColumnType.TEXT)
                self._typed.setdefault(key, set()).add(kind)

    def _shape(self, element: Element) -> BaseGeometry | None:
        """A geometry of KML; None: it has no coordinates.

        Raises:
            _Invalid: It is none.
        """
        # Its functions take one geometry or many, and their types do not say which.
        make: Any = shapely
        name = element.tag
        try:
            if name in _MULTIPLES:
                return _collected([self._shape(each) for each in element])
            if name == "Polygon":
                outer, holes = self._rings(element, "outer"), self._rings(element, "inner")
                if len(outer) > 1 or (holes and not outer):
                    raise ValueError("a polygon has one outer ring")
                rings = [make.linearrings(ring) for ring in [*outer, *holes] if len(ring)]
                return make.polygons(rings[0], rings[1:] or None) if rings else None
            if name == "Track":
                # Its moments and angles are no data of the placemark.
                coords = (_text_of(each) for each in element if each.tag == "coord")
                points = self._points(" ".join(",".join(each.split()) for each in coords))
            elif (found := element.find("coordinates")) is None:
                return None
            else:
                points = self._points(_text_of(found))
            if name == "Point" and len(points) > 1:
                raise ValueError("a point has one place")
            if len(points) == 0:
                return make.Point() if name == "Point" else make.LineString()
            if name == "Point" or (name == "Track" and len(points) == 1):
                return make.points(points[0])
            return make.linestrings(points)
        except (ValueError, shapely.errors.GEOSException) as error:
            raise _Invalid(f"its {name} is not a geometry: {error}") from error

    def _rings(self, polygon: Element, place: str) -> list[np.ndarray[Any, Any]]:
        found = polygon.iterfind(f"{place}BoundaryIs/LinearRing/coordinates")
        return [self._points(_text_of(each)) for each in found]

    def _points(self, text: str) -> np.ndarray[Any, Any]:
        try:
            # Some programs write a comma too many, or a measure behind the height.
            tuples = [
                [float(part) for part in each.rstrip(",").split(",")[:3]] for each in text.split()
            ]
            widths = {len(each) for each in tuples}
            if widths - {2, 3}:
                raise ValueError
        except ValueError:
            raise _Invalid(f"coordinates {text[:40]!r} cannot be read") from None
        width = max(widths, default=2)
        self._filled += len(widths) > 1
        # KML: a height that is not given is 0.
        return np.array([[*each, 0.0][:width] for each in tuples]).reshape(-1, width)

    def layer(self) -> Layer:
        """All placemarks."""
        fields: list[SourceField] = []
        values: list[list[Any]] = []
        notes: list[str] = []
        for key, column in self._columns.values.items():
            name = key.removeprefix("\0").partition("\0")[0]
            kind, converted, note = ColumnType.TEXT, column, None
            kinds = self._typed.get(key, {ColumnType.TEXT})
            if len(kinds) == 1 and ColumnType.TEXT not in kinds:
                (kind,) = kinds
                converted = typed(kind, name, column, self._problems)
            elif key.startswith("\0") or key in ("when", "begin", "end"):
                kind, converted, note = text_column(column)
            fields.append(SourceField(name, kind, all(value is None for value in converted)))
            values.append(converted)
            if note is not None:
                notes.append(f"{name!r}: {note}")
        if self._filled:
            notes.append(
                f"{self._filled:,} lists of coordinates have heights (Z) at some of their places;"
                " the others get height 0"
            )
        geometries = np.array([*self._geometries, None], dtype=object)[:-1]
        return Layer(
            name=self._document or "placemarks",
            crs="OGC:CRS84",
            fields=fields,
            chunks=lambda: in_chunks(geometries, fields, values, self._problems),
            bounds=bounds_of(geometries),
            features=len(self._geometries),
            notes=notes,
        )


def _text_of(element: Element) -> str:
    return (element.text or "").strip()


def _keep(values: dict[str, str | None], key: str, element: Element) -> str:
    """Add a value; a second one of the same name gets a column of its own."""
    text = _text_of(element)
    if not text and not key.startswith("\0"):
        return key
    place, number = key, 1
    while place in values:
        number += 1
        place = f"{key}\0{number}"
    values[place] = text
    return place


def _collected(parts: Iterable[BaseGeometry | None]) -> BaseGeometry | None:
    """Several parts as one geometry: a multiple one where all are of a kind."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    kinds = {part.geom_type for part in found}
    build = _MULTIPLE.get(kinds.pop()) if len(kinds) == 1 else None
    return (build or shapely.geometrycollections)(found)


_MULTIPLE: Final[dict[str, Callable[[Any], Any]]] = {
    "Point": shapely.multipoints,
    "LineString": shapely.multilinestrings,
    "Polygon": shapely.multipolygons,
}
