"""Surfaces that GEOS does not know, as polygons: TINs, polyhedral surfaces, MultiPatch.

Source: OGC 06-103r4, 8.2 (well-known binary), with the numbers of ISO 19125 and of PostGIS.
"""

import struct
from typing import Any, Final

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from adapters.files.vectors.layers import Refused

_POLYGONS: Final = frozenset({3, 17})
"""Polygon and triangle."""
_PARTS: Final = frozenset({6, 7, 15, 16})
"""Multipolygon, collection, polyhedral surface and TIN."""
_DEPTH: Final = 8
_HAS_Z: Final = 0x80000000
_HAS_M: Final = 0x40000000


def without_loss(
    binary: np.ndarray[Any, Any], shapes: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return geometries of which none is missing that was there.

    Args:
        binary: Well-known binary of each feature; None: it has no geometry.
        shapes: What GEOS has made of it.

    Raises:
        Refused: A geometry has no equivalent.
    """
    for place, content in enumerate(binary):
        if content is not None and shapes[place] is None:
            shapes[place] = _surface(bytes(content), place + 1)
    return shapes


def _surface(content: bytes, number: int) -> BaseGeometry:
    try:
        polygons, _ = _polygons(content, 0, 0)
    except (struct.error, ValueError, IndexError, shapely.errors.GEOSException) as error:
        kind = struct.unpack_from("<I" if content[:1] == b"\1" else ">I", content, 1)[0]
        raise Refused(
            f"the geometry of feature {number:,} is of the kind {kind} (well-known binary), which "
            "has no equivalent; save it as polygons, lines or points"
        ) from error
    made: Any = shapely.multipolygons(polygons)
    return made


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
