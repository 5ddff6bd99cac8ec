"""What of many results is shown as one, which has a bound."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from contracts.jobs import JsonObject

MOST_BYTES: Final = 30_000
"""Of results that are listed, as JSON: an aggregated result has more to say besides."""
MOST_POSITIONS: Final = 400
"""Of a footprint."""
_SMALL_RING: Final = 8


def fitting(results: Iterable[JsonObject], most: int = MOST_BYTES) -> Sequence[JsonObject]:
    """The first of some results, as many as fit."""
    found: list[JsonObject] = []
    for each in results:
        most -= len(json.dumps(each).encode())
        if most < 0:
            break
        found.append(each)
    return found


def thinned(geometry: JsonObject | None, most: int = MOST_POSITIONS) -> JsonObject | None:
    """A polygon or several with about so many positions: enough for a drawing.

    Args:
        geometry: GeoJSON; another kind of geometry stays as it is.
        most: Positions.
    """
    rings: list[Any]
    match geometry:
        case {"type": "Polygon", "coordinates": rings}:
            parts = [rings]
        case {"type": "MultiPolygon", "coordinates": parts}:
            pass
        case _:
            return geometry
    step = -(-sum(len(ring) for part in parts for ring in part) // most)
    thin = [[_thin(ring, step) for ring in part] for part in parts]
    return {**geometry, "coordinates": thin if geometry["type"] == "MultiPolygon" else thin[0]}


def _thin(ring: Sequence[Any], step: int) -> Sequence[Any]:
    if step == 1 or len(ring) <= _SMALL_RING:
        return ring
    return [*ring[:-1:step], ring[0]] if len(ring) // step >= _SMALL_RING else _thin(ring, step - 1)
