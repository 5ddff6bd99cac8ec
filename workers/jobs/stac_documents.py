"""What clients ask of the STAC API, and its documents with their links.

The fields of items that a client asks for, and the order of items, as STAC API has them.

Follows the extensions fields 1.0.0 and sort 1.0.0.

The documents of the STAC API, with their links.

Follows STAC API 1.0.0 with its classes core, collections, features, item search, filter, fields and
sort.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast
from urllib.parse import quote, urlencode

from pydantic import ConfigDict, Field, ValidationError, field_validator

from activities.jobs.ports import CataloguePage, CatalogueQuery, JsonObject
from activities.jobs.stac_items import VERSION
from activities.jobs.stac_queries import filter_of_text, order_of_text
from workflows.shared.contracts import Contract, problem_text
from workflows.shared.errors import RuleViolation

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


Number = Annotated[float, Field(allow_inf_nan=False)]


class SearchBody(Contract):
    """Body of `POST /search`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collections: list[str] | None = Field(default=None, max_length=1_000)
    ids: list[str] | None = Field(default=None, max_length=10_000)
    bbox: list[Number] | None = None
    intersects: dict[str, Any] | None = None
    datetime: str | None = Field(default=None, max_length=200)
    filter: dict[str, Any] | str | None = None
    filter_lang: Literal["cql2-json", "cql2-text"] | None = Field(None, alias="filter-lang")
    filter_crs: Literal["http://www.opengis.net/def/crs/OGC/1.3/CRS84"] | None = Field(
        None, alias="filter-crs"
    )
    fields: FieldSelection | None = None
    sortby: list[SortField] | None = Field(default=None, max_length=10)
    limit: int = Field(default=10, ge=1)
    token: str | None = Field(default=None, max_length=1_000)

    @field_validator("bbox")
    @classmethod
    def _has_sides(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and len(value) not in (4, 6):
            raise ValueError("a bbox has four numbers, or six with heights")
        return value

    def query(self) -> CatalogueQuery:
        """As the catalogue is asked.

        Raises:
            RuleViolation: The filter is not what its language says.
        """
        return CatalogueQuery(
            collections=self.collections,
            ids=self.ids,
            bbox=_without_heights(self.bbox),
            intersects=self.intersects,
            datetime=self.datetime,
            filter=self._filter(),
            sort=[(each.field, each.direction == "desc") for each in self.sortby or ()],
            limit=self.limit,
            token=self.token,
        )

    def _filter(self) -> Mapping[str, Any] | None:
        if self.filter is None:
            return None
        if isinstance(self.filter, str):
            if self.filter_lang == "cql2-json":
                return _object(self.filter)
            return filter_of_text(self.filter)
        if self.filter_lang == "cql2-text":
            raise RuleViolation("filter: cql2-text is a text, and not an object")
        return self.filter


def body_of(content: bytes) -> SearchBody:
    """A search by body.

    Raises:
        RuleViolation: It is not JSON, or no search; the message names the field.
    """
    try:
        body = json.loads(content or b"{}", object_pairs_hook=_once)
        json.dumps(body, ensure_ascii=False).encode()
        return _validated(body)
    except UnicodeEncodeError as error:
        raise RuleViolation("the body holds half of a surrogate pair: no text has that") from error
    except ValueError as error:
        raise RuleViolation(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise RuleViolation("the body is nested too deep") from error


def parameters_of(values: Mapping[str, str]) -> SearchBody:
    """A search by the parameters of an address: lists are separated by commas.

    Raises:
        RuleViolation: A parameter cannot be read, or is not known; the message names it.
    """
    given: dict[str, Any] = dict(values)
    for name in ("collections", "ids"):
        if name in given:
            given[name] = [part for part in given[name].split(",") if part]
    if "bbox" in given:
        given["bbox"] = given["bbox"].split(",")
    if "fields" in given:
        given["fields"] = fields_of_text(given["fields"])
    if "sortby" in given:
        given["sortby"] = sort_of_text(given["sortby"])
    if "intersects" in given:
        given["intersects"] = _object(given["intersects"])
    return _validated(given)


def addressed(body: SearchBody, token: str) -> Mapping[str, str]:
    """Parameters of the address of another page of a search."""
    known = body.model_dump(exclude_none=True, exclude_unset=True, by_alias=True)
    made = {name: _parameter(value) for name, value in known.items()}
    if body.fields is not None:
        made["fields"] = text_of_fields(known["fields"])
    if body.sortby is not None:
        made["sortby"] = text_of_sort(known["sortby"])
    return {**made, "token": token}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of two values under one name each alone would be another search."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleViolation(f"{twice[:50]!r} is given more than once")
    return made


def _validated(value: object) -> SearchBody:
    try:
        return SearchBody.model_validate(value)
    except ValidationError as error:
        problems = (
            f"{'.'.join(map(str, each['loc'])) or 'the search'}: {problem_text(each)}"
            for each in error.errors()[:5]
        )
        raise RuleViolation("; ".join(problems)) from error


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleViolation(f"it is not JSON: {text[:100]!r}") from error
    if not isinstance(value, dict):
        raise RuleViolation(f"it is not a JSON object: {text[:100]!r}")
    return cast(dict[str, Any], value)


def _parameter(value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, list):
        return ",".join(str(part) for part in cast(list[Any], value))
    return str(value)


def _without_heights(box: Sequence[float] | None) -> tuple[float, float, float, float] | None:
    if box is None:
        return None
    west, south, east, north = box if len(box) == 4 else (box[0], box[1], box[3], box[4])
    return west, south, east, north


ROOT: Final = "/api/stac"
JSON: Final = "application/json"
GEOJSON: Final = "application/geo+json"
SCHEMA: Final = "application/schema+json"
OPENAPI: Final = "application/vnd.oai.openapi+json;version=3.1"
_QUERYABLES: Final = "http://www.opengis.net/def/rel/ogc/1.0/queryables"
_STAC: Final = "https://api.stacspec.org/v1.0.0"
_OGC: Final = "http://www.opengis.net/spec"
CONFORMANCE: Final = (
    f"{_STAC}/core",
    f"{_STAC}/collections",
    f"{_STAC}/ogcapi-features",
    f"{_STAC}/item-search",
    f"{_STAC}/item-search#filter",
    f"{_STAC}/item-search#fields",
    f"{_STAC}/item-search#sort",
    f"{_STAC}/ogcapi-features#filter",
    f"{_STAC}/ogcapi-features#fields",
    f"{_STAC}/ogcapi-features#sort",
    f"{_OGC}/ogcapi-features-1/1.0/conf/core",
    f"{_OGC}/ogcapi-features-1/1.0/conf/geojson",
    f"{_OGC}/ogcapi-features-3/1.0/conf/filter",
    f"{_OGC}/ogcapi-features-3/1.0/conf/features-filter",
    f"{_OGC}/cql2/1.0/conf/cql2-text",
    f"{_OGC}/cql2/1.0/conf/cql2-json",
    f"{_OGC}/cql2/1.0/conf/basic-cql2",
    f"{_OGC}/cql2/1.0/conf/advanced-comparison-operators",
    f"{_OGC}/cql2/1.0/conf/case-insensitive-comparison",
    f"{_OGC}/cql2/1.0/conf/basic-spatial-functions",
    f"{_OGC}/cql2/1.0/conf/spatial-functions",
    f"{_OGC}/cql2/1.0/conf/temporal-functions",
)
_OWN: Final = frozenset({"self", "root", "parent", "collection", "items"})
"""Links of items and collections that the API makes, whatever is stored."""
_COMMON_QUERYABLES: Final = {
    "id": {"type": "string"},
    "collection": {"type": "string"},
    "geometry": {"$ref": "https://geojson.org/schema/Geometry.json"},
    "datetime": {"type": "string", "format": "date-time"},
    "start_datetime": {"type": "string", "format": "date-time"},
    "end_datetime": {"type": "string", "format": "date-time"},
    "created": {"type": "string", "format": "date-time"},
    "updated": {"type": "string", "format": "date-time"},
    "gsd": {"type": "number"},
    "proj:code": {"type": "string"},
}


class StacDocuments:
    """Makes them for one request.

    Args:
        base: Address of the gateway.
        serves: Whether the API serves the file at an address of the catalogue.
    """

    def __init__(self, base: str, serves: Callable[[str], bool]) -> None:
        self._root = f"{base}{ROOT}"
        self._serves = serves

    def landing(self, collections: Iterable[JsonObject]) -> Json:
        """Where clients begin."""
        search = self._at("search")
        return {
            "type": "Catalog",
            "stac_version": VERSION,
            "id": "docflow",
            "title": "docflow",
            "description": "Spatial data that jobs of docflow have processed.",
            "conformsTo": list(CONFORMANCE),
            "links": [
                _link("self", self._root, JSON),
                _link("root", self._root, JSON),
                _link("conformance", self._at("conformance"), JSON),
                _link("data", self._at("collections"), JSON),
                _link("search", search, GEOJSON, method="GET"),
                _link("search", search, GEOJSON, method="POST"),
                _link(_QUERYABLES, self._at("queryables"), SCHEMA),
                _link("service-desc", self._at("openapi.json"), OPENAPI),
                *(_link("child", self._of_collection(each), JSON) for each in collections),
            ],
        }

    def queryables(self, collection: str | None) -> Json:
        """What filters may ask for; None: in any collection."""
        path = "queryables" if collection is None else f"collections/{quote(collection)}/queryables"
        return {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$id": self._at(path),
            "type": "object",
            "title": "What filters may ask for",
            "properties": dict(_COMMON_QUERYABLES),
            # Any other property of items may be asked for too.
            "additionalProperties": True,
        }

    def collections(self, found: Iterable[JsonObject]) -> Json:
        """All collections."""
        links = [
            _link("self", self._at("collections"), JSON),
            _link("root", self._root, JSON),
        ]
        return {"collections": [self.collection(each) for each in found], "links": links}

    def collection(self, known: JsonObject) -> Json:
        """A collection with its links."""
        own = self._of_collection(known)
        links = [
            _link("self", own, JSON),
            _link("root", self._root, JSON),
            _link("parent", self._root, JSON),
            _link("items", f"{own}/items", GEOJSON),
            _link(_QUERYABLES, f"{own}/queryables", SCHEMA),
        ]
        return {**known, "links": [*links, *_kept(known)]}

    def item(self, known: JsonObject) -> Json:
        """An item with its links, its assets where clients get them."""
        collection = self._at(f"collections/{quote(str(known['collection']))}")
        own = f"{collection}/items/{quote(str(known['id']))}"
        links = [
            _link("self", own, GEOJSON),
            _link("root", self._root, JSON),
            _link("parent", collection, JSON),
            _link("collection", collection, JSON),
        ]
        assets = {
            key: {**asset, "href": f"{own}/assets/{quote(key)}"}
            if self._serves(asset["href"])
            else asset
            for key, asset in known["assets"].items()
        }
        return {**known, "assets": assets, "links": [*links, *_kept(known)]}

    def page(
        self,
        page: CataloguePage,
        paging: Sequence[Json],
        path: str,
        query: str = "",
        fields: FieldSelection | None = None,
    ) -> Json:
        """Items that were found.

        Args:
            page: The items.
            paging: Links to the pages before and after.
            path: Of the request, below the root.
            query: Its parameters.
            fields: Of the items; None: all.
        """
        own = f"{self._at(path)}?{query}" if query else self._at(path)
        links = [_link("self", own, GEOJSON), _link("root", self._root, JSON)]
        if path != "search":
            links.append(_link("collection", self._at(path.removesuffix("/items")), JSON))
        items = [self.item(item) for item in page.items]
        matched = {} if page.matched is None else {"numberMatched": page.matched}
        return {
            "type": "FeatureCollection",
            "features": items if fields is None else [fields.of(item) for item in items],
            "links": [*links, *paging],
            **matched,
            "numberReturned": len(page.items),
        }

    def by_address(self, path: str, asked: SearchBody, page: CataloguePage) -> Sequence[Json]:
        """Links to the pages around one, as addresses."""
        return [
            _link(rel, f"{self._at(path)}?{urlencode(addressed(asked, token))}", GEOJSON)
            | {"method": "GET"}
            for rel, token in _tokens(page)
        ]

    def by_body(self, asked: SearchBody, page: CataloguePage) -> Sequence[Json]:
        """The same, as bodies."""
        body = asked.model_dump(exclude_none=True, exclude_unset=True, by_alias=True)
        return [
            _link(rel, self._at("search"), GEOJSON, method="POST")
            | {"body": {**body, "token": token}, "merge": False}
            for rel, token in _tokens(page)
        ]

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _of_collection(self, collection: JsonObject) -> str:
        return self._at(f"collections/{quote(str(collection['id']))}")


def _kept(known: JsonObject) -> Sequence[Json]:
    return [link for link in known["links"] if link["rel"] not in _OWN]


def _link(rel: str, href: str, type: str, **more: str) -> Json:
    return {"rel": rel, "href": href, "type": type, **more}


def _tokens(page: CataloguePage) -> Iterable[tuple[str, str]]:
    """STAC's name of each neighbouring page, and its token."""
    found = (("next", page.next), ("prev", page.previous))
    return [(rel, token) for rel, token in found if token is not None]
