"""The STAC API: the catalogue as clients of STAC open it.

The files of assets, as clients of STAC read them: whole, or in ranges, as COGs are made for.

Follows RFC 9110: ranges (14), conditions (13).
"""

import re
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from activities.jobs.catalogue import Catalogue
from activities.jobs.ports import JsonObject
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from workers.jobs.stac_documents import (
    CONFORMANCE,
    GEOJSON,
    JSON,
    OPENAPI,
    ROOT,
    SCHEMA,
    SearchBody,
    StacDocuments,
    body_of,
    parameters_of,
)
from workers.shared.gateway.http.problems import ProblemDescription, problem_responses
from workers.shared.gateway.http.requests import Who
from workers.shared.services.identity import VIEWER, Identity
from workflows.shared.errors import RuleViolation

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_OCTETS: Final = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class _Part:
    """Bytes of a file, from the first to the one behind the last."""

    begin: int
    end: int


class AssetFiles:
    """Serves the files that jobs have made.

    Args:
        tiers: Containers whose files are served, by name: `silver` of `silver://name`.
    """

    def __init__(self, tiers: Mapping[str, Blobs]) -> None:
        self._tiers = tiers

    def serves(self, href: str) -> bool:
        """Whether an address of the catalogue is that of a file that is served."""
        tier, separator, name = href.partition("://")
        return bool(separator and name) and tier in self._tiers

    async def answer(self, request: Request, asset: Mapping[str, Any]) -> Response:
        """The file of an asset, or the part of it that is asked for.

        Raises:
            HTTPException: It has been removed, or has not the part.
        """
        tier, _, name = str(asset["href"]).partition("://")
        blobs = self._tiers[tier]
        try:
            found = await blobs.stat(name)
        except BlobNotFound as error:
            raise HTTPException(404, "the file of this asset has been removed") from error
        tag = _quoted(found.etag)
        headers = {
            "accept-ranges": "bytes",
            "content-disposition": f"attachment; filename*=utf-8''{quote(name.rsplit('/', 1)[-1])}",
            **({"etag": tag} if tag else {}),
        }
        if tag is not None and _is_known(tag, request.headers.get("if-none-match")):
            return Response(status_code=304, headers=headers)
        part = _asked(request, found.size, tag)
        status = 200 if part is None else 206
        part = part or _Part(0, found.size)
        length = part.end - part.begin
        headers["content-length"] = f"{length}"
        if status == 206:
            headers["content-range"] = f"bytes {part.begin}-{part.end - 1}/{found.size}"
        media_type = str(asset.get("type") or _OCTETS)
        if request.method == "HEAD" or length == 0:
            return Response(status_code=status, headers=headers, media_type=media_type)
        content = _content(blobs, name, part.begin, length)
        return StreamingResponse(content, status, headers, media_type)


async def _content(blobs: Blobs, name: str, begin: int, length: int) -> AsyncGenerator[bytes]:
    async with aclosing(blobs.read(name, start=begin, length=length)) as pieces:
        async for piece in pieces:
            yield piece


def _asked(request: Request, size: int, tag: str | None) -> _Part | None:
    """The part that is asked for; None: all, also where several parts or other units are.

    Raises:
        HTTPException: The file ends before it.
    """
    unless = request.headers.get("if-range")
    found = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if found is None or (unless is not None and unless != tag):
        return None
    first, last = found.groups()
    if first and last and int(last) < int(first):
        return None
    if first:
        part = _Part(int(first), min(int(last) + 1, size) if last else size)
    elif last:
        part = _Part(max(size - int(last), 0), size)
    else:
        return None
    if part.begin >= size:
        text = f"the file has {size:,} bytes, and none where the range begins"
        raise HTTPException(416, text, {"content-range": f"bytes */{size}"})
    return part


def _is_known(tag: str, header: str | None) -> bool:
    """Whether a client names the tag of a file as one that it has."""
    if header is None:
        return False
    given = {each.strip().removeprefix("W/") for each in header.split(",")}
    return "*" in given or tag in given


def _quoted(etag: str | None) -> str | None:
    if etag is None:
        return None
    return etag if etag.startswith('"') else f'"{etag}"'


_MISSING: Final = problem_responses(
    404, further={404: ProblemDescription("not-found", "there is no such collection or item")}
)


_PARTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The file", "content": {"application/octet-stream": {}}},
    206: {"description": "The range of it that was asked for"},
    304: {"description": "The client has it"},
    **problem_responses(
        416, further={416: ProblemDescription("range", "the file ends before the range")}
    ),
}


class _GeoJson(JSONResponse):
    media_type = GEOJSON


class _JsonSchema(JSONResponse):
    media_type = SCHEMA


def stac_router(
    catalogue: Catalogue,
    public_url: str | None = None,
    tiers: Mapping[str, Blobs] | None = None,
) -> APIRouter:
    """The API over a catalogue, below `/api/stac`, for every caller with a token.

    Callers see what belongs to their organisations, and what belongs to none.

    Args:
        catalogue: What is served.
        public_url: Address of the gateway for its users; None: as each request was addressed.
        tiers: Containers whose files it serves, by name; None: none.
    """
    api = _Api(catalogue, public_url, AssetFiles(tiers or {}))
    router = APIRouter(
        prefix=ROOT, tags=["stac"], responses=problem_responses(400, 401, 403, 422, 503)
    )
    add = router.add_api_route
    add("", api.landing_page)
    add("/", api.landing_page, include_in_schema=False)
    add("/openapi.json", api.description, include_in_schema=False)
    add("/conformance", api.conformance)
    add("/queryables", api.queryables, response_class=_JsonSchema)
    add("/collections", api.collections)
    add("/collections/{collection}", api.collection, responses=_MISSING)
    add(
        "/collections/{collection}/queryables",
        api.collection_queryables,
        responses=_MISSING,
        response_class=_JsonSchema,
    )
    add(
        "/collections/{collection}/items",
        api.items,
        responses=_MISSING,
        response_class=_GeoJson,
        openapi_extra=_parameters(),
    )
    add(
        "/collections/{collection}/items/{item}",
        api.item,
        responses=_MISSING,
        response_class=_GeoJson,
    )
    path = "/collections/{collection}/items/{item}/assets/{asset}"
    add(path, api.asset, responses={**_MISSING, **_PARTS}, response_class=StreamingResponse)
    add(path, api.asset, methods=["HEAD"], include_in_schema=False)
    parameters = _parameters(("collections", "ids", "intersects"))
    add("/search", api.search, response_class=_GeoJson, openapi_extra=parameters)
    add(
        "/search",
        api.search_by_body,
        methods=["POST"],
        response_class=_GeoJson,
        openapi_extra=_search_body(),
    )
    return router


class _Api:
    """The endpoints."""

    def __init__(self, catalogue: Catalogue, public_url: str | None, files: AssetFiles) -> None:
        self._catalogue = catalogue
        self._public_url = public_url
        self._files = files

    async def landing_page(self, request: Request, who: Who) -> JSONResponse:
        """Where clients begin: what is here, and where."""
        return JSONResponse(self._documents(request).landing(await self._of(who).collections()))

    async def description(self, request: Request) -> JSONResponse:
        """The OpenAPI document of the gateway, in the type that clients of STAC ask for."""
        app: FastAPI = request.app
        return JSONResponse(app.openapi(), media_type=OPENAPI)

    async def conformance(self, who: Who) -> JSONResponse:
        """What of the standards is implemented."""
        return JSONResponse({"conformsTo": list(CONFORMANCE)})

    async def queryables(self, request: Request, who: Who) -> JSONResponse:
        """What filters may ask for, in any collection."""
        return _JsonSchema(self._documents(request).queryables(None))

    async def collections(self, request: Request, who: Who) -> JSONResponse:
        """All collections."""
        found = await self._of(who).collections()
        return JSONResponse(self._documents(request).collections(found))

    async def collection(self, request: Request, who: Who, collection: str) -> JSONResponse:
        """One collection."""
        known = await self._known(who, collection)
        return JSONResponse(self._documents(request).collection(known))

    async def collection_queryables(
        self, request: Request, who: Who, collection: str
    ) -> JSONResponse:
        """What filters may ask for, in one collection."""
        await self._known(who, collection)
        return _JsonSchema(self._documents(request).queryables(collection))

    async def items(self, request: Request, who: Who, collection: str) -> JSONResponse:
        """Items of a collection, the newest first."""
        await self._known(who, collection)
        with _refusals():
            asked = parameters_of(_once(request))
            if asked.collections is not None or asked.ids is not None or asked.intersects:
                raise RuleViolation("collections, ids and intersects belong to /search")
            searched = asked.model_copy(update={"collections": [collection]})
            page = await self._of(who).search(searched.query())
        documents = self._documents(request)
        path = f"collections/{quote(collection)}/items"
        paging = documents.by_address(path, asked, page)
        return _GeoJson(documents.page(page, paging, path, request.url.query, asked.fields))

    async def item(self, request: Request, who: Who, collection: str, item: str) -> JSONResponse:
        """One item."""
        known = await self._of(who).item(collection, item)
        if known is None:
            raise HTTPException(404, f"there is no item {item!r} in the collection {collection!r}")
        return _GeoJson(self._documents(request).item(known))

    async def asset(
        self, request: Request, who: Who, collection: str, item: str, asset: str
    ) -> Response:
        """The file of an asset, or a range of it."""
        known = await self._of(who).item(collection, item)
        found = None if known is None else known["assets"].get(asset)
        if found is None or not self._files.serves(found["href"]):
            raise HTTPException(
                404, f"there is no file {asset!r} of an item {item!r} in {collection!r}"
            )
        return await self._files.answer(request, found)

    async def search(self, request: Request, who: Who) -> JSONResponse:
        """Items of all collections that meet the parameters, the newest first."""
        with _refusals():
            asked = parameters_of(_once(request))
            page = await self._of(who).search(asked.query())
        documents = self._documents(request)
        paging = documents.by_address("search", asked, page)
        return _GeoJson(documents.page(page, paging, "search", request.url.query, asked.fields))

    async def search_by_body(self, request: Request, who: Who) -> JSONResponse:
        """The same by a body, whose filter may be CQL2 as JSON."""
        with _refusals():
            asked = body_of(await request.body())
            page = await self._of(who).search(asked.query())
        documents = self._documents(request)
        return _GeoJson(
            documents.page(page, documents.by_body(asked, page), "search", fields=asked.fields)
        )

    def _documents(self, request: Request) -> StacDocuments:
        base = self._public_url or str(request.base_url)
        return StacDocuments(base.rstrip("/"), self._files.serves)

    def _of(self, who: Identity) -> Catalogue:
        """What a caller may see."""
        return self._catalogue.seen_by(who.where(VIEWER))

    async def _known(self, who: Identity, id: str) -> JsonObject:
        known = await self._of(who).collection(id)
        if known is None:
            raise HTTPException(404, f"there is no collection {id!r}")
        return known


def _once(request: Request) -> Mapping[str, str]:
    """The parameters of an address.

    Raises:
        RuleViolation: One is given twice: either value alone would be another search.
    """
    given = request.query_params
    for name in given:
        if len(given.getlist(name)) > 1:
            raise RuleViolation(f"{name[:50]!r} is given more than once; separate lists by commas")
    return dict(given)


@contextmanager
def _refusals() -> Generator[None]:
    """A search that means nothing is a bad request."""
    try:
        yield
    except RuleViolation as error:
        raise HTTPException(400, str(error)) from error


def _parameters(more: Sequence[str] = ()) -> dict[str, Any]:
    """The parameters of a search, for the OpenAPI document: texts, read by `parameters_of`."""
    names = (
        "bbox",
        "datetime",
        "filter",
        "filter-lang",
        "filter-crs",
        "fields",
        "sortby",
        "limit",
        "token",
    )
    return {
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in (*names, *more)
        ]
    }


def _search_body() -> dict[str, Any]:
    schema = SearchBody.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    return {"requestBody": {"content": {JSON: {"schema": _inlined(schema, definitions)}}}}


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references: those of a body mean nothing within the whole document."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    named = cast(dict[str, Any], schema)
    if isinstance(reference := named.get("$ref"), str):
        return _inlined(definitions[reference.rpartition("/")[2]], definitions)
    return {key: _inlined(value, definitions) for key, value in named.items()}
