"""Boxes of searches, and extents of collections."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from domain.errors import RuleViolation

JsonObject = dict[str, Any]
Box = tuple[float, float, float, float]


def split_box(box: Sequence[float]) -> Sequence[Box]:
    """West, south, east, north: the box itself, or its two parts where it crosses 180 degrees.

    Raises:
        RuleViolation: It is not a box in degrees.
    """
    west, south, east, north = box
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
        raise RuleViolation(
            f"bbox {', '.join(f'{value:g}' for value in box)} is not a box in degrees: "
            "west, south, east, north with longitudes from -180 to 180 and south not above north"
        )
    if west <= east:
        return [(west, south, east, north)]
    return [(west, south, 180.0, north), (-180.0, south, east, north)]


def box_geometry(boxes: Sequence[Box]) -> JsonObject:
    """GeoJSON of boxes that do not cross the antimeridian."""
    rings = [
        [[[west, south], [east, south], [east, north], [west, north], [west, south]]]
        for west, south, east, north in boxes
    ]
    if len(rings) == 1:
        return {"type": "Polygon", "coordinates": rings[0]}
    return {"type": "MultiPolygon", "coordinates": rings}


def widened(collection: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> JsonObject | None:
    """The collection with an extent that holds items too; None: it holds them already.

    The first items replace the extent of a collection that has none, which is the whole Earth at
    any time.
    """
    extent = collection["extent"]
    boxes = [tuple(item["bbox"]) for item in items]
    times = [_times(item["properties"]) for item in items]
    if not boxes:
        return None
    known = extent["temporal"]["interval"][0]
    if known != [None, None]:
        boxes.append(tuple(extent["spatial"]["bbox"][0]))
        times.append((known[0], known[1]))
    made = {
        "spatial": {"bbox": [list(_around(boxes))]},
        "temporal": {"interval": [[min(t[0] for t in times), max(t[1] for t in times)]]},
    }
    return None if made == extent else {**collection, "extent": made}


def _times(properties: Mapping[str, Any]) -> tuple[str, str]:
    """First and last moment; all are in UTC and of one form, so that texts are in order."""
    moment = properties["datetime"]
    return properties.get("start_datetime") or moment, properties.get("end_datetime") or moment


def _around(boxes: Sequence[Sequence[float]]) -> Box:
    wests, souths, easts, norths = zip(*(_without_height(box) for box in boxes), strict=True)
    if any(west > east for west, east in zip(wests, easts, strict=True)):
        return (-180.0, min(souths), 180.0, max(norths))
    return (min(wests), min(souths), max(easts), max(norths))


def _without_height(box: Sequence[float]) -> Sequence[float]:
    return (box[0], box[1], box[3], box[4]) if len(box) == 6 else box
