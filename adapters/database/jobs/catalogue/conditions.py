"""Which items of the catalogue in SQLite a query finds: what SQL decides, and what is left."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import cql2
import shapely
from sqlalchemy import text

from adapters.ports.catalogue import CatalogueQuery, JsonObject
from domain.errors import RuleViolation
from domain.jobs.stac.footprints import read
from domain.jobs.stac.queries import checked_filter, interval

_IN_BOXES: Final = """
key IN (
  SELECT found.id / 2 FROM stac_boxes AS found, json_each(:boxes) AS asked
  WHERE found.east >= asked.value ->> 'west' AND found.west <= asked.value ->> 'east'
  AND found.north >= asked.value ->> 'south' AND found.south <= asked.value ->> 'north'
)
"""
_SIDES: Final = ("west", "south", "east", "north")
_PARTS: Final = 20
"""Parts of a geometry that are looked for one by one."""


Place = tuple[str, str, str]
"""Where an item stands in the order of results: its first moment, collection and id."""


@dataclass(frozen=True)
class Conditions:
    """What SQLite decides: rows that may be found."""

    clauses: Sequence[str]
    values: Mapping[str, Any]

    def count(self) -> tuple[Any, dict[str, Any]]:
        """How many rows there are."""
        where = " AND ".join(self.clauses) or "1"
        return text(f"SELECT count(*) FROM stac_items WHERE {where}"), dict(self.values)  # noqa: S608

    def statement(
        self, place: Place | None, backwards: bool, size: int
    ) -> tuple[Any, dict[str, Any]]:
        """The next rows behind a place, as many as `size`."""
        clauses, values = list(self.clauses), dict(self.values)
        order = "ASC" if backwards else "DESC"
        if place is not None:
            sign = ">" if backwards else "<"
            clauses.append(f"(starts, collection, id) {sign} (:starts, :collection, :id)")
            values |= dict(zip(("starts", "collection", "id"), place, strict=True))
        where = " AND ".join(clauses) or "1"
        return (
            text(
                f"SELECT starts, collection, id, content FROM stac_items WHERE {where} "  # noqa: S608
                f"ORDER BY starts {order}, collection {order}, id {order} LIMIT {size}"
            ),
            values,
        )


class Decision:
    """What is left to decide about rows: the exact geometry, and the filter."""

    def __init__(self, query: CatalogueQuery, area: Mapping[str, Any] | None) -> None:
        self._area = None if area is None else read(area)
        self._filter = None
        if query.filter is not None:
            self._filter = cql2.parse_json(json.dumps(checked_filter(query.filter)))

    @property
    def decides(self) -> bool:
        """Whether anything is left to decide."""
        return self._area is not None or self._filter is not None

    def those_of(self, rows: Sequence[tuple[Any, str]]) -> list[tuple[Any, JsonObject]]:
        """The rows that are found, with their items."""
        items = [(place, json.loads(content)) for place, content in rows]
        return [(place, item) for place, item in items if self._accepts(item)]

    def _accepts(self, item: JsonObject) -> bool:
        if self._area is not None:
            shape = read(item["geometry"])
            if not shapely.intersects(shape, self._area):
                return False
        return self._filter is None or _matches(self._filter, item)


def _matches(expression: Any, item: JsonObject) -> bool:
    """Whether a filter is true; one about a property that the item has not is not."""
    begins, ends = ends_of(item["properties"])
    properties = {
        **item["properties"],
        # Filters see a range as it is searched: by its two ends.
        "datetime": begins,
        "start_datetime": begins,
        "end_datetime": ends,
    }
    try:
        return expression.matches({**item, "properties": properties})
    except Exception as error:
        # The library has no type of its own for this.
        if "reduce" in str(error):
            return False
        raise RuleViolation(f"filter: {' '.join(str(error).split())[:500]}") from error


def conditions_of(query: CatalogueQuery, area: Mapping[str, Any] | None) -> Conditions:
    """The part of a query that SQL decides; `area` is the geometry it is about, if any."""
    clauses: list[str] = []
    values: dict[str, Any] = {}
    if query.collections is not None:
        clauses.append("collection IN (SELECT value FROM json_each(:collections))")
        values["collections"] = json.dumps(list(query.collections))
    if query.ids is not None:
        clauses.append("id IN (SELECT value FROM json_each(:ids))")
        values["ids"] = json.dumps(list(query.ids))
    if query.datetime is not None:
        first, last = interval(query.datetime)
        if first is not None:
            clauses.append("ends >= :first")
            values["first"] = sortable(first)
        if last is not None:
            clauses.append("starts <= :last")
            values["last"] = sortable(last)
    if area is not None:
        boxes = [dict(zip(_SIDES, box, strict=True)) for box in _boxes_of(area)]
        clauses.append(_IN_BOXES)
        values["boxes"] = json.dumps(boxes)
    return Conditions(clauses, values)


def _boxes_of(area: Mapping[str, Any]) -> Sequence[tuple[float, float, float, float]]:
    """Around the parts of a geometry, which may lie on both sides of the antimeridian."""
    shape = read(area)
    parts = getattr(shape, "geoms", [shape])
    return [part.bounds for part in parts] if len(parts) <= _PARTS else [shape.bounds]


def ends_of(properties: Mapping[str, Any]) -> tuple[str, str]:
    """First and last moment of an item."""
    moment = properties["datetime"]
    begins, ends = properties.get("start_datetime"), properties.get("end_datetime")
    return (begins, ends) if begins and ends else (moment, moment)


def sortable(value: datetime) -> str:
    """A moment as text that sorts by time."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
