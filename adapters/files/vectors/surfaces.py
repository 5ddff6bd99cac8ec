"""Surfaces that GEOS does not know, as polygons: TINs, polyhedral surfaces, MultiPatch.

Source: OGC 06-103r4, 8.2 (well-known binary), with the numbers of ISO 19125 and of PostGIS.
"""

import struct
from typing import Any, Final

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from workflows.jobs.vectors import FeatureProblem

_POLYGONS: Final = frozenset({3, 17})
"""Polygon and triangle."""
_PARTS: Final = frozenset({6, 7, 15, 16})
"""Multipolygon, collection, polyhedral surface and TIN."""
_DEPTH: Final = 8
_HEAD_BYTES: Final = 5
_KNOWN: Final = frozenset(
    thousands + base for thousands in (0, 1_000, 2_000, 3_000) for base in range(1, 8)
)
"""Kinds that GEOS reads."""
_HAS_Z: Final = 0x80000000
_HAS_M: Final = 0x40000000


def shapes_of(
    binary: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], list[FeatureProblem]]:
    """Return geometries, of which none is missing that was there, or its feature is rejected.

    Args:
        binary: Well-known binary of each feature; None: it has no geometry.
        numbers: Of the features.
    """
    shapes = shapely.from_wkb(binary, on_invalid="ignore")
    problems: list[FeatureProblem] = []
    for place in np.flatnonzero(shapely.is_missing(shapes)):
        if binary[place] is None:
            continue
        shapes[place], reason = _mended(bytes(binary[place]))
        if reason is not None:
            number, is_rejected = int(numbers[place]), shapes[place] is None
            problems.append(FeatureProblem(feature=number, reason=reason, is_rejected=is_rejected))
    return shapes, problems


def _mended(content: bytes) -> tuple[BaseGeometry | None, str | None]:
    """A geometry that GEOS does not read, and what was done to it or why it is none."""
    if len(content) < _HEAD_BYTES:
        return None, "its geometry is damaged"
    (kind,) = struct.unpack_from("<I" if content[0] == 1 else ">I", content, 1)
    try:
        if kind & 0x0FFFFFFF in _KNOWN:
            closed: Any = shapely.from_wkb(content, on_invalid="fix")
            if closed is None or shapely.is_empty(closed):
                return None, "its geometry is damaged"
            return closed, "its ring was open and was closed"
        polygons, _ = _polygons(content, 0, 0)
        made: Any = shapely.multipolygons(polygons)
        return made, None
    except (struct.error, ValueError, IndexError, shapely.errors.GEOSException):
        return None, (
            f"its geometry is damaged, or of the kind {kind} (well-known binary), which has no "
            "equivalent; save it as polygons, lines or points"
        )


def _polygons(content: bytes, start: int, depth: int) -> tuple[list[Any], int]:
    """The polygons of a geometry, and where it ends."""
    order = "<" if content[start] == 1 else ">"
    (kind,) = struct.unpack_from(f"{order}I", content, start + 1)
    flags, kind = kind & 0xF0000000, kind & 0x0FFFFFFF
    base, thousands = kind % 1_000, kind // 1_000
    has_z = thousands in (1, 3) or bool(flags & _HAS_Z)
    width = 2 + has_z + (thousands in (2, 3) or bool(flags & _HAS_M))
    (count,) = struct.unpack_from(f"{order}I", content, start + 5)
    place = start + 9
    if base in _PARTS and depth < _DEPTH:
        found: list[Any] = []
        for _ in range(count):
            polygons, place = _polygons(content, place, depth + 1)
            found += polygons
        return found, place
    if base not in _POLYGONS:
        raise ValueError(f"a geometry of the kind {kind}")
    rings: list[Any] = []
    for _ in range(count):
        (points,) = struct.unpack_from(f"{order}I", content, place)
        numbers = np.frombuffer(content, f"{order}f8", points * width, place + 4)
        rings.append(numbers.reshape(-1, width)[:, : 2 + has_z].astype(float))
        place += 4 + points * width * 8
    made: Any = shapely
    outer, *holes = (made.linearrings(ring) for ring in rings)
    return [made.polygons(outer, holes or None)], place
