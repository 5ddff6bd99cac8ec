"""The catalogue for people: collections, a search by text, time and box, a page of each item."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import Depends, Query, Request, Response

from activities.jobs.catalogue import ORGANISATION, Catalogue
from activities.jobs.ports import CataloguePage, CatalogueQuery, JsonObject
from activities.jobs.stac_items import parsed_moment
from workers.jobs.maps import footprint
from workers.jobs.stac_api import AssetFiles
from workers.shared.gateway.pages.renderer import gettext
from workers.shared.gateway.pages.site import Alert, PageRoute, Site, Visitor, sentence
from workers.shared.services.errors import NotFound, Refused, no_role
from workers.shared.services.identity import VIEWER
from workflows.shared.errors import RuleViolation

_PAGE: Final = 20
_SHORT: Final = 200
_PICTURES: Final = ("image/png", "image/jpeg", "image/webp")
_TIMES: Final = ("datetime", "start_datetime", "end_datetime")
_SIDES: Final = ("west", "south", "east", "north")

_Text = Annotated[str, Query(max_length=_SHORT)]


@dataclass(frozen=True, slots=True)
class CatalogueSearch:
    """What a person has typed."""

    text: str = ""
    collection: str = ""
    since: str = ""
    until: str = ""
    west: str = ""
    south: str = ""
    east: str = ""
    north: str = ""

    @property
    def given(self) -> Mapping[str, str]:
        """What is not blank, by the name of its field."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return {name: text for name, text in named.items() if text}

    def address(self, **more: str) -> str:
        """Address of the search, or of another page of it."""
        query = urlencode({**self.given, **more})
        return f"/catalogue?{query}" if query else "/catalogue"

    def query(self, token: str | None) -> CatalogueQuery:
        """As the catalogue is asked.

        Raises:
            Refused: A field is wrong; the message says which.
        """
        return CatalogueQuery(
            collections=[self.collection] if self.collection else None,
            bbox=self._box(),
            datetime=self._times(),
            filter=_names(self.text) if self.text else None,
            limit=_PAGE,
            token=token,
        )

    def _times(self) -> str | None:
        if not self.since and not self.until:
            return None
        first, last = _day(self.since), _day(self.until)
        if first and last and first > last:
            raise Refused(gettext("the time ends before it begins"))
        begins = f"{first}T00:00:00Z" if first else ".."
        return f"{begins}/{f'{last}T23:59:59.999999Z' if last else '..'}"

    def _box(self) -> tuple[float, float, float, float] | None:
        texts = [getattr(self, name) for name in _SIDES]
        if not any(texts):
            return None
        if not all(texts):
            raise Refused(gettext("give all four sides of the box, in degrees"))
        west, south, east, north = (_degrees(text) for text in texts)
        if abs(west) > 180 or abs(east) > 180 or not -90 <= south <= north <= 90:
            raise Refused(
                gettext(
                    "west and east are from -180 to 180 degrees, south and north from -90 to 90, "
                    "and south is not above north"
                )
            )
        return west, south, east, north


def _search(
    text: _Text = "",
    collection: _Text = "",
    since: _Text = "",
    until: _Text = "",
    west: _Text = "",
    south: _Text = "",
    east: _Text = "",
    north: _Text = "",
) -> CatalogueSearch:
    given = (text, collection, since, until, west, south, east, north)
    return CatalogueSearch(*(each.strip() for each in given))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise Refused(
            gettext("“%(value)s” is not a day: write it like 2026-01-31", value=text)
        ) from error


def _degrees(text: str) -> float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Refused(gettext("“%(value)s” is not a number of degrees", value=text))
    return number


def _names(text: str) -> JsonObject:
    """A filter of CQL2: the id or the title of an item holds a text, in upper or lower case."""
    escaped = "".join(f"\\{each}" if each in "\\%_" else each for each in text)
    pattern = {"op": "casei", "args": [f"%{escaped}%"]}
    parts = [
        {"op": "like", "args": [{"op": "casei", "args": [{"property": name}]}, pattern]}
        for name in ("id", "title")
    ]
    return {"op": "or", "args": parts}


@dataclass(frozen=True, slots=True)
class ListedAsset:
    """A file or a table of an item."""

    key: str
    title: str
    media_type: str
    roles: str
    size: int | None
    address: str | None
    """Where it is downloaded; None: the gateway does not serve it."""
    place: str


class CataloguePages:
    """Finds items, shows one, and serves its files to who is signed in.

    Args:
        site: The context of the pages.
        catalogue: All of it; people see what is of their organisations, and of none.
        files: Serves the files of assets.
    """

    def __init__(self, site: Site, catalogue: Catalogue, files: AssetFiles) -> None:
        self._site = site
        self._catalogue = catalogue
        self._files = files

    async def browse(
        self,
        request: Request,
        asked: Annotated[CatalogueSearch, Depends(_search)],
        token: Annotated[str | None, Query(max_length=1_000)] = None,
    ) -> Response:
        """Collections and items; a search that means nothing is shown as it was typed."""
        visitor = await self._site.visitor(request)
        own = self._of(visitor)
        page, problem, status = CataloguePage(()), None, 200
        try:
            page = await own.search(asked.query(token))
        except (Refused, RuleViolation) as error:
            refused = error if isinstance(error, Refused) else Refused(str(error))
            problem, status = Alert(refused.title, sentence(refused)), refused.status
        shapes = [each["geometry"] for each in page.items if each.get("geometry")]
        return self._site.page(
            request,
            visitor,
            "catalogue.html",
            status,
            search=asked,
            collections=[_collection(each) for each in await own.collections()],
            items=[_listed(each) for each in page.items],
            matched=page.matched,
            drawing=footprint({"type": "GeometryCollection", "geometries": shapes}),
            newer=page.previous and asked.address(token=page.previous),
            older=page.next and asked.address(token=page.next),
            problem=problem,
        )

    async def item(self, request: Request, collection: str, item: str) -> Response:
        """One item."""
        visitor = await self._site.visitor(request)
        known = await self._known(visitor, collection, item)
        of = await self._of(visitor).collection(collection)
        assets = [self._asset(known, key, each) for key, each in known["assets"].items()]
        picture = next((each for each in assets if _is_picture(each)), None)
        others = {
            name: value
            for name, value in sorted(known["properties"].items())
            if name not in (*_TIMES, "title", ORGANISATION)
        }
        return self._site.page(
            request,
            visitor,
            "catalogue_item.html",
            item=_listed(known),
            collection=_collection(of) if of else {"id": collection, "title": collection},
            properties=others,
            assets=assets,
            drawing=footprint(known["geometry"]) if known.get("geometry") else None,
            picture=picture.address if picture else "",
        )

    async def asset(self, request: Request, collection: str, item: str, asset: str) -> Response:
        """The file of an asset."""
        visitor = await self._site.visitor(request)
        found = (await self._known(visitor, collection, item))["assets"].get(asset)
        if found is None or not self._files.serves(found["href"]):
            raise NotFound(gettext("there is no such file"))
        return await self._files.answer(request, found)

    async def _known(self, visitor: Visitor, collection: str, item: str) -> JsonObject:
        known = await self._of(visitor).item(collection, item)
        if known is None:
            raise NotFound(gettext("there is no such item in the catalogue"))
        return known

    def _of(self, visitor: Visitor) -> Catalogue:
        """What a person may see."""
        if not visitor.who.may_read:
            raise no_role()
        return self._catalogue.seen_by(visitor.who.where(VIEWER))

    def _asset(self, item: JsonObject, key: str, asset: Mapping[str, Any]) -> ListedAsset:
        href, size = str(asset["href"]), asset.get("file:size")
        at = f"/catalogue/{_quoted(item['collection'])}/{_quoted(item['id'])}/assets/{_quoted(key)}"
        return ListedAsset(
            key,
            str(asset.get("title") or key),
            str(asset.get("type") or ""),
            ", ".join(map(str, asset.get("roles") or ())),
            size if isinstance(size, int) else None,
            at if self._files.serves(href) else None,
            href,
        )


def _is_picture(asset: ListedAsset) -> bool:
    of_it = {"thumbnail", "overview"} & set(asset.roles.split(", "))
    return bool(of_it) and asset.address is not None and asset.media_type in _PICTURES


def _collection(known: JsonObject) -> Mapping[str, Any]:
    text = str(known.get("description") or "")
    return {
        "id": known["id"],
        "title": str(known.get("title") or known["id"]),
        "description": text if len(text) <= _SHORT else f"{text[:_SHORT]}…",
    }


def _listed(item: JsonObject) -> Mapping[str, Any]:
    """What lists and pages show of an item."""
    properties: Mapping[str, Any] = item["properties"]
    box: Sequence[float] = item.get("bbox") or ()
    sides = box if len(box) == 4 else (*box[:2], *box[3:5])
    return {
        "id": item["id"],
        "collection": item["collection"],
        "title": str(properties.get("title") or item["id"]),
        "address": f"/catalogue/{_quoted(item['collection'])}/{_quoted(item['id'])}",
        "times": [parsed_moment(str(properties[name])) for name in _moments(properties)],
        "box": ", ".join(f"{each:.4f}".rstrip("0").rstrip(".") for each in sides),
    }


def _moments(properties: Mapping[str, Any]) -> Sequence[str]:
    """Names of the properties that say when it was: one moment, or the first and the last."""
    ends = [name for name in _TIMES[1:] if properties.get(name)]
    return ends if len(ends) == 2 else [_TIMES[0]] if properties.get(_TIMES[0]) else []


def _quoted(name: object) -> str:
    return quote(str(name), safe="")


def catalogue_routes(site: Site, catalogue: Catalogue, files: AssetFiles) -> Sequence[PageRoute]:
    """Addresses of these pages; see `CataloguePages` for the arguments."""
    pages, one = CataloguePages(site, catalogue, files), "/catalogue/{collection}/{item}"
    return (
        ("GET", "/catalogue", pages.browse),
        ("GET", one, pages.item),
        ("GET", f"{one}/assets/{{asset}}", pages.asset),
    )
