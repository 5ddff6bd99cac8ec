"""The fields of items that a client asks for, and the order of items, as STAC API has them.

Follows the extensions fields 1.0.0 and sort 1.0.0.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from pydantic import ConfigDict, Field

from contracts.base import Contract
from domain.jobs.stac.queries import order_of_text

_WHOLE: Final = (
    "type",
    "stac_version",
    "id",
    "collection",
    "geometry",
    "bbox",
    "links",
    "assets",
    "properties.datetime",
)
"""What makes an item, where a client names no field."""

Json = dict[str, Any]


class FieldSelection(Contract):
    """Fields of items, with dots for fields within others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    include: list[str] | None = Field(default=None, max_length=200)
    exclude: list[str] | None = Field(default=None, max_length=200)

    def of(self, item: Json) -> Json:
        """The selected part of an item."""
        include, exclude = self.include or [], self.exclude or []
        made = item if exclude and not include else _picked(item, include or _WHOLE)
        for path in exclude:
            if path not in include:
                made = _without(made, path.split("."))
        return made


class SortField(Contract):
    """A field that items are ordered by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: str = Field(min_length=1, max_length=200)
    direction: Literal["asc", "desc"] = "asc"


def fields_of_text(text: str) -> Json:
    """`id,-geometry` as a selection."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    return {
        "include": [name.removeprefix("+") for name in names if not name.startswith("-")],
        "exclude": [name[1:] for name in names if name.startswith("-")],
    }


def sort_of_text(text: str) -> Sequence[Json]:
    """`+datetime,-id` as an order."""
    return [
        {"field": name, "direction": "desc" if falls else "asc"}
        for name, falls in order_of_text(text)
    ]


def text_of_fields(value: Mapping[str, Any]) -> str:
    """The reverse of `fields_of_text`."""
    exclude = [f"-{name}" for name in value.get("exclude") or ()]
    return ",".join([*(value.get("include") or ()), *exclude])


def text_of_sort(value: Sequence[Mapping[str, Any]]) -> str:
    """The reverse of `sort_of_text`."""
    signs = {"asc": "+", "desc": "-"}
    return ",".join(f"{signs[each.get('direction', 'asc')]}{each['field']}" for each in value)


def _picked(item: Json, paths: Sequence[str]) -> Json:
    made: Json = {}
    for path in paths:
        *parents, name = path.split(".")
        source: Any = item
        for parent in parents:
            source = cast(Json, source).get(parent) if isinstance(source, dict) else None
        if not isinstance(source, dict) or name not in source:
            continue
        target = made
        for parent in parents:
            target = target.setdefault(parent, {})
        # A field that was picked as a whole stays whole.
        target.setdefault(name, cast(Json, source)[name])
    return made


def _without(item: Json, path: Sequence[str]) -> Json:
    name, *rest = path
    if name not in item:
        return item
    if not rest:
        return {key: value for key, value in item.items() if key != name}
    inner = item[name]
    if not isinstance(inner, dict):
        return item
    return {**item, name: _without(cast(Json, inner), rest)}
