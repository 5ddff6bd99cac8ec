"""KML: placemarks with the folders that they lie in.

Source: OGC 12-007r2. Everything that is not data of a placemark (styles, links, overlays) is named
and left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from adapters.files import limits
from adapters.files.vectors.layers import Layer, Refused, Source, SourceField, bounds_of, in_chunks
from adapters.files.xml import XmlStream, parse
from adapters.ports import UnreadableDocument
from contracts.jobs.vectors import COLUMNS, ColumnType, FeatureProblem
from domain.jobs.vectors.values import text_column

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
        *("TimeStamp", "TimeSpan", "open"),
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


class _Invalid(Exception):
    """A geometry is not one of KML."""


def open_kml(path: Path) -> Source:
    """Read a file.

    Raises:
        Refused: It is too large.
        UnreadableDocument: It is not XML, damaged or hostile.
    """
    if path.stat().st_size > limits.KML_BYTES:
        raise Refused(
            f"the file is larger than {limits.KML_BYTES // limits.MB:,} MB; send it as GeoPackage"
        )
    reader = _Reader()
    stream = XmlStream(reader.start, reader.end, reader.text, "KML file")
    with path.open("rb") as file:
        parse(iter(lambda: file.read(_BLOCK), b""), stream)
    if not reader.is_kml:
        raise UnreadableDocument("the file is XML, but no KML")
    left_out = [f"{count:,} {what}" for what, count in sorted(reader.left_out.items())]
    if reader.unread:
        named = ", ".join(map(repr, sorted(reader.unread_names)))
        left_out.append(f"{reader.unread:,} other elements, such as {named}")
    return Source("KML", [reader.layer()], left_out)


class _Reader:
    """Takes the elements as they come."""

    def __init__(self) -> None:
        self.is_kml = False
        self.left_out: Counter[str] = Counter()
        self.unread = 0
        """Elements that are none of those known here."""
        self.unread_names: set[str] = set()
        self._path: list[str] = []
        self._skipped = 0
        """Open elements below one that is left out."""
        self._folders: list[str] = []
        self._text: list[str] = []
        self._values: dict[str, str] | None = None
        """Of the placemark that is open."""
        self._key: str | None = None
        self._shapes: list[list[BaseGeometry | None]] = []
        """Open multiple geometries; the first is the placemark."""
        self._outer: list[np.ndarray[Any, Any]] = []
        self._holes: list[np.ndarray[Any, Any]] = []
        self._filled = 0
        """Lists of coordinates of which some lack a height."""
        self._coordinates: np.ndarray[Any, Any] | None = None
        self._reason: str | None = None
        self._track: list[str] = []
        self._geometries: list[BaseGeometry | None] = []
        self._columns: dict[str, list[str | None]] = {"folder": [], "name": []}
        self._problems: list[FeatureProblem] = []
        self._document: str | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._text.clear()
        if self._skipped:
            self._skipped += 1
            return
        if name in _LEFT_OUT and name not in _SOMETIMES:
            self.left_out[_LEFT_OUT[name]] += 1
            self._skipped = 1
            return
        if self._values is not None and not self._is_read(name):
            self._leave(name)
            self._skipped = 1
            return
        self._path.append(name)
        match name:
            case "kml":
                self.is_kml = True
            case "Document" | "Folder":
                self._folders.append("")
            case "Placemark":
                self._values, self._shapes, self._reason = {}, [[]], None
                if identity := attributes.get("id"):
                    self._values["id"] = identity
            case "Data" | "SimpleData":
                self._key = attributes.get("name")
            case _ if name in _MULTIPLES:
                self._shapes.append([])
            case "Track":
                self._track = []
            case "Polygon":
                self._outer, self._holes = [], []
            case _:
                pass

    def _is_read(self, name: str) -> bool:
        """Whether an element of the open placemark is one that is known where it lies."""
        plain = _PLAIN.get(self._path[-1], frozenset())
        return name in _READ or name in _LEFT_OUT or name in plain or self._path[-1] == "Track"

    def _leave(self, name: str) -> None:
        self.unread += 1
        if len(self.unread_names) < _LISTED:
            self.unread_names.add(name[:100])

    def text(self, text: str) -> None:
        """Some text of the open element."""
        if not self._skipped:
            self._text.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        if self._skipped:
            self._skipped -= 1
            return
        text = "".join(self._text).strip()
        self._text.clear()
        self._path.pop()
        if name in _FOLDERS:
            self._folders.pop()
        elif self._values is None:
            self._named(name, text)
        elif name == "Placemark":
            self._finish()
        elif name == "coordinates":
            self._coordinates = self._parsed(text)
        elif self._path[-1] == "Track":
            # Its moments and angles are no data of the placemark.
            self._track += [",".join(text.split())] if name == "coord" else []
        elif name in _SHAPES:
            self._shape(name)
        else:
            self._value(name, text)

    def _named(self, name: str, text: str) -> None:
        if name == "name" and self._path and self._path[-1] in _FOLDERS:
            self._folders[-1] = text
            if len(self._folders) == 1 and self._document is None:
                self._document = text
        elif name in _LEFT_OUT:
            self._count(name, text)
        elif text and name not in _READ:
            self._leave(name)

    def _value(self, name: str, text: str) -> None:
        assert self._values is not None
        if name in ("value", "SimpleData"):
            if self._key is None:
                self._leave(name)
            else:
                # A name of its own, so that data called "name" are not the placemark's.
                self._keep(f"\0{self._key}", text)
        elif name in _LEFT_OUT:
            self._count(name, text)
        elif text and name not in _READ:
            self._keep(name, text)

    def _keep(self, key: str, text: str) -> None:
        """Add a value; a second one of the same name gets a column of its own."""
        assert self._values is not None
        place, number = key, 1
        while place in self._values:
            number += 1
            place = f"{key}\0{number}"
        self._values[place] = text

    def _count(self, name: str, text: str) -> None:
        if text not in ("", _SOMETIMES.get(name)):
            self.left_out[_LEFT_OUT[name]] += 1

    def _parsed(self, text: str) -> np.ndarray[Any, Any] | None:
        try:
            # Some programs write a comma too many, or a measure behind the height.
            tuples = [
                [float(part) for part in each.rstrip(",").split(",")[:3]] for each in text.split()
            ]
            widths = {len(each) for each in tuples}
            if widths - {2, 3}:
                raise ValueError
            width = max(widths, default=2)
            self._filled += len(widths) > 1
            # KML: a height that is not given is 0.
            full = [[*each, 0.0][:width] for each in tuples]
            return np.array(full).reshape(-1, width)
        except ValueError:
            self._reason = f"coordinates {text[:40]!r} cannot be read"
            return None

    def _shape(self, name: str) -> None:
        points, self._coordinates = self._coordinates, None
        # Its functions take one geometry or many, and their types do not say which.
        make: Any = shapely
        try:
            match name:
                case "Point" if points is not None:
                    if len(points) != 1:
                        raise _Invalid("a point has one place")
                    self._shapes[-1].append(make.points(points[0]))
                case "LineString" if points is not None:
                    self._shapes[-1].append(make.linestrings(points))
                case "Track" if (track := self._parsed(" ".join(self._track))) is not None:
                    if len(track) == 1:
                        self._shapes[-1].append(make.points(track[0]))
                    elif len(track):
                        self._shapes[-1].append(make.linestrings(track))
                case "LinearRing" if points is not None:
                    if "innerBoundaryIs" in self._path:
                        self._holes.append(points)
                    elif "Polygon" in self._path:
                        self._outer.append(points)
                    else:
                        self._shapes[-1].append(make.linestrings(points))
                case "Polygon" if self._outer or self._holes:
                    if len(self._outer) != 1:
                        raise _Invalid("a polygon has one outer ring")
                    outer = make.linearrings(self._outer[0])
                    holes = [make.linearrings(ring) for ring in self._holes]
                    self._shapes[-1].append(make.polygons(outer, holes or None))
                case _ if name in _MULTIPLES:
                    parts = self._shapes.pop()
                    self._shapes[-1].append(_collected(parts))
                case _:
                    pass
        except (_Invalid, ValueError, shapely.errors.GEOSException) as error:
            self._reason = f"its {name} is not a geometry: {error}"

    def _finish(self) -> None:
        assert self._values is not None
        number = len(self._geometries) + 1
        values = {"folder": "/".join(self._folders) or None, **self._values}
        for name, value in values.items():
            if (column := self._columns.get(name)) is None:
                column = self._columns[name] = [None] * (number - 1)
                if len(self._columns) > COLUMNS:
                    raise Refused(f"placemarks have more than {COLUMNS:,} different data")
            column.append(value)
        for column in self._columns.values():
            if len(column) < number:
                column.append(None)
        if self._reason is not None:
            self._problems.append(FeatureProblem(feature=number, reason=self._reason))
        parts = self._shapes[0]
        self._geometries.append(parts[0] if len(parts) == 1 else _collected(parts))
        self._values = None

    def layer(self) -> Layer:
        """All placemarks."""
        fields: list[SourceField] = []
        values: list[list[Any]] = []
        notes: list[str] = []
        for key, column in self._columns.items():
            name = key.removeprefix("\0").partition("\0")[0]
            kind, converted, note = ColumnType.TEXT, list[Any](column), None
            if key.startswith("\0") or key in ("when", "begin", "end"):
                kind, converted, note = text_column(column)
            fields.append(SourceField(name, kind, all(value is None for value in column)))
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
            is_empty=not self._geometries,
            notes=notes,
        )


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
