"""The documents of the STAC API, with their links.

Follows STAC API 1.0.0 with its classes core, collections, features, item search, filter, fields and
sort.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from adapters.ports.catalogue import CataloguePage, JsonObject
from domain.jobs.stac.items import VERSION
from workers.gateway.jobs.stac_fields import FieldSelection
from workers.gateway.jobs.stac_requests import SearchBody, addressed

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

Json = dict[str, Any]


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
