"""The STAC API over a real server, with the clients that people use."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import httpx
import pystac_client
import pytest
import pytest_asyncio
from fastapi import FastAPI
from pystac.validation.local_validator import get_local_schema_cache
from stac_api_validator.validations import QueryConfig, validate_api
from stac_validator import utilities

from activities.jobs.catalogue import Catalogue
from adapters.database.engine import open_database
from tests.support.gateway import TOKENS, served, token
from tests.support.jobs.stac import PARIS, ids, item, put_scenes
from tests.support.memory.blobs import MemoryBlobs
from workers.jobs.stac_api import stac_router
from workers.shared.gateway.http.auth import Tokens
from workers.shared.gateway.http.problems import handle_problems

pytestmark = pytest.mark.asyncio(loop_scope="module")
AROUND_PARIS = {
    "type": "Polygon",
    "coordinates": [[[2, 48], [3, 48], [3, 49], [2, 49], [2, 48]]],
}


@dataclass(frozen=True)
class Api:
    """A served catalogue of scenes."""

    site: str

    @property
    def root(self) -> str:
        """Address of the landing page."""
        return f"{self.site}/api/stac"

    async def get(self, path: str, **parameters: str) -> httpx.Response:
        """Ask for a document with a token."""
        async with self._client() as client:
            return await client.get(path, params=parameters or None)

    async def post(self, path: str, body: Any) -> httpx.Response:
        """Search by a body."""
        async with self._client() as client:
            if isinstance(body, bytes):
                return await client.post(path, content=body)
            return await client.post(path, json=body)

    def _client(self) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {token()}"}
        return httpx.AsyncClient(base_url=self.root, headers=headers, timeout=60)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(one_url: str) -> AsyncGenerator[Api]:
    async with open_database(one_url) as database:
        catalogue = await put_scenes(Catalogue(database))
        more = [item(f"s{at:02}", days=10 + at, box=(60, 10, 61, 11)) for at in range(12)]
        await catalogue.put_items("scenes", more)
        app = FastAPI()
        app.state.tokens = Tokens(TOKENS)
        app.include_router(stac_router(catalogue))
        handle_problems(app, {})
        async with served(app) as site:
            yield Api(site)


async def test_clients_open_it_and_search(api: Api) -> None:
    def ask() -> None:
        headers = {"authorization": f"Bearer {token()}"}
        client = pystac_client.Client.open(api.root, headers=headers)
        assert [each.id for each in client.get_collections()] == ["scenes"]
        assert client.get_collection("scenes").extent.spatial.bboxes[0][3] == 49
        near = client.search(bbox=list(PARIS), datetime="2024-05-01")
        assert [each.id for each in near.items()] == ["paris"]
        every = client.search(collections=["scenes"], limit=5)
        assert len(list(every.items())) == 16
        assert [len(page.items) for page in every.pages()] == [5, 5, 5, 1]
        by_address = client.search(collections=["scenes"], limit=5, method="GET")
        assert len(list(by_address.items())) == 16
        cloudy = client.search(filter="eo:cloud_cover > 20")
        assert [each.id for each in cloudy.items()] == ["east"]
        shape = client.search(
            intersects=AROUND_PARIS, filter={"op": "=", "args": [{"property": "id"}, "paris"]}
        )
        found = next(iter(shape.items()))
        assert found.get_collection().id == "scenes" and found.assets["data"].media_type
        assert found.get_parent().id == "scenes" and found.get_root().id == "docflow"

    await asyncio.to_thread(ask)


@pytest.fixture
def offline_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The validator reads the schemas that pystac brings; those of extensions hold nothing."""
    known = get_local_schema_cache()
    fetch = utilities.fetch_and_parse_file

    def read(path: str, headers: Any = None) -> Any:
        if path.startswith("https://stac-extensions.github.io/"):
            return {"$id": path}
        return known[path] if path in known else fetch(path, headers)

    monkeypatch.setattr(utilities, "fetch_and_parse_file", read)


@pytest.mark.filterwarnings("ignore:get_all_items is deprecated")
async def test_the_validator_finds_no_fault(api: Api, offline_schemas: None) -> None:
    warnings, errors = await asyncio.to_thread(
        validate_api,
        root_url=api.root,
        ccs_to_validate=[
            *("core", "collections", "features", "item-search"),
            *("filter", "fields", "sort"),
        ],
        collection="scenes",
        geometry=json.dumps(AROUND_PARIS),
        auth_bearer_token=token(),
        auth_query_parameter=None,
        fields_nested_property="properties.datetime",
        validate_pagination=True,
        query_config=QueryConfig(*[None] * 13),
        transaction_collection=None,
        headers={"Authorization": f"Bearer {token()}"},
    )
    assert list(errors) == []
    # What is left are recommendations; nothing is declared that is not there.
    assert all("should" in str(each) or "returned 0 results" in str(each) for each in warnings)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"bbox": "1,2,3"}, "four numbers"),
        ({"bbox": "a,b,c,d"}, "bbox"),
        ({"bbox": "0,10,1,5"}, "is not a box in degrees"),
        ({"datetime": "2024-05-01"}, "RFC 3339"),
        ({"datetime": "9999-12-31T23:59:59-12:00"}, "beyond the years"),
        ({"datetime": "../0001-01-01T00:00:00+12:00"}, "beyond the years"),
        ({"filter": r"id like '%\'"}, "escape"),
        ({"limit": "0"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"filter": "eo:cloud_cover <"}, "not CQL2"),
        ({"filter": "avg(eo:cloud_cover) > 1"}, "'avg' is not supported"),
        ({"filter": "not " * 4_900 + "a = 1"}, "in a row"),
        ({"filter": "a = " + "-" * 19_000 + "1"}, "in a row"),
        ({"filter": "{", "filter-lang": "cql2-json"}, "not JSON"),
        ({"filter": "1 = 1", "filter-lang": "cql-text"}, "filter-lang"),
        ({"intersects": "[]"}, "not a JSON object"),
        ({"token": "nonsense"}, "token"),
        ({"sortby": "a b"}, "is not a property"),
        ({"sortby": "geometry"}, "has no order"),
        ({"sortby": "id,-id"}, "given twice"),
        ({"sortby": "id", "token": "c29ydGVkOi0x.."}, "token"),
    ],
)
async def test_what_means_nothing_is_a_bad_request(
    api: Api, parameters: dict[str, str], says: str
) -> None:
    answer = await api.get("/search", **parameters)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert says in answer.json()["detail"]


async def test_a_parameter_that_is_given_twice_is_a_bad_request(api: Api) -> None:
    for path in ("/search?ids=a&ids=b", "/collections/scenes/items?limit=1&limit=2"):
        answer = await api.get(path)
        assert answer.status_code == 400, answer.text
        assert "given more than once" in answer.json()["detail"]


async def test_a_name_with_a_nul_names_nothing(api: Api) -> None:
    for path in ("/collections/%00", "/collections/scenes/items/%00"):
        assert (await api.get(path)).status_code == 404, path


async def test_bodies_that_are_no_search_are_bad_requests(api: Api) -> None:
    for body in ([], {"limit": -1}, {"bbox": [1]}, {"filter": {"op": "avg"}}, {"nothing": 1}):
        assert (await api.post("/search", body)).status_code == 400, body
    both = {"bbox": [0, 0, 1, 1], "intersects": AROUND_PARIS}
    assert "exclude each other" in (await api.post("/search", both)).json()["detail"]


async def test_a_body_that_readers_would_take_differently_is_a_bad_request(api: Api) -> None:
    for body, says in (
        (b'{"ids": ["paris"], "ids": ["fiji"]}', "'ids' is given more than once"),
        (b'{"fields": {"include": ["\\ud800"]}, "sortby": [{"field": "id"}]}', "surrogate"),
    ):
        answer = await api.post("/search", body)
        assert answer.status_code == 400, answer.text
        assert says in answer.json()["detail"]


async def test_items_are_served_with_their_links_and_types(api: Api) -> None:
    answer = await api.get("/collections/scenes/items/paris")
    assert answer.headers["content-type"] == "application/geo+json"
    links = {link["rel"]: link["href"] for link in answer.json()["links"]}
    assert links["self"] == f"{api.root}/collections/scenes/items/paris"
    assert links["collection"] == f"{api.root}/collections/scenes"
    page = (await api.get("/collections/scenes/items", bbox="2,48,3,49", limit="5")).json()
    assert ids(page["features"]) == ["paris"]
    assert (await api.get("/collections/scenes/items", ids="paris")).status_code == 400
    for path in ("/collections/others", "/collections/others/items", "/collections/scenes/items/x"):
        missing = await api.get(path)
        assert missing.status_code == 404, path
        assert missing.headers["content-type"] == "application/problem+json"


async def test_a_box_across_the_antimeridian_and_a_filter_as_json(api: Api) -> None:
    asked = {
        "bbox": [170, -30, 0, -170, 0, 100],
        "filter-lang": "cql2-json",
        "filter": {"op": "like", "args": [{"property": "id"}, "f%"]},
    }
    assert ids((await api.post("/search", asked)).json()["features"]) == ["fiji"]
    by_address = await api.get("/search", bbox="170,-30,-170,0", filter="id LIKE 'f%'")
    assert ids(by_address.json()["features"]) == ["fiji"]


async def test_without_a_token_nothing_is_shown(api: Api) -> None:
    async with httpx.AsyncClient(base_url=api.root) as client:
        for path in ("", "/conformance", "/collections", "/search"):
            assert (await client.get(path)).status_code == 401, path
        assert (await client.post("/search", json={})).status_code == 401


async def test_addresses_are_those_that_users_know(one_url: str) -> None:
    async with open_database(one_url) as database:
        router = stac_router(
            Catalogue(database),
            "https://maps.example.org",
            {"silver": MemoryBlobs()},
        )
        app = FastAPI()
        app.state.tokens = Tokens(TOKENS)
        app.include_router(router)
        transport = httpx.ASGITransport(app)
        headers = {"authorization": f"Bearer {token()}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://inside", headers=headers
        ) as client:
            found = (await client.get("/api/stac/search", params={"limit": "1"})).json()
    (shown,) = found["features"]
    own = f"https://maps.example.org/api/stac/collections/scenes/items/{shown['id']}"
    assert shown["assets"]["data"]["href"] == f"{own}/assets/data"
    assert all("inside" not in link["href"] for link in [*found["links"], *shown["links"]])


async def test_items_are_counted(api: Api) -> None:
    every = (await api.get("/search", limit="5")).json()
    few = (await api.get("/search", bbox="2,48,3,49", limit="5")).json()
    assert (every["numberMatched"], every["numberReturned"]) == (16, 5)
    assert (few["numberMatched"], few["numberReturned"]) == (1, 1)


async def test_items_come_in_the_order_that_is_asked_for(api: Api) -> None:
    first = (await api.get("/search", sortby="-id", limit="9")).json()
    links = {link["rel"]: link["href"] for link in first["links"]}
    second = (await api.get("/search", **dict(httpx.URL(links["next"]).params))).json()
    by_address = [*ids(first["features"]), *ids(second["features"])]
    rising = {"sortby": [{"field": "properties.datetime"}, {"field": "id"}], "limit": 100}
    by_time = (await api.post("/search", rising)).json()["features"]
    # An item over a range has no moment, and is ordered by its first one.
    known = [each["properties"] for each in by_time]
    assert all("datetime" in each for each in known)
    times = [each["datetime"] or each["start_datetime"] for each in known]
    cloudy = {
        "sortby": [{"field": "eo:cloud_cover"}, {"field": "id"}],
        "filter": {"op": ">", "args": [{"property": "eo:cloud_cover"}, 0]},
        "limit": 1,
    }
    body = (await api.post("/search", cloudy)).json()
    falling = {**cloudy, "sortby": [{"field": "eo:cloud_cover", "direction": "desc"}], "limit": 9}
    back = (await api.post("/search", falling)).json()
    [following] = [link["body"] for link in body["links"] if link["rel"] == "next"]
    rest = (await api.post("/search", {**following, "limit": 9})).json()
    assert len(by_address) == 16 and by_address == sorted(by_address, reverse=True)
    assert times == sorted(times) and len(times) == 16
    rising_ids = [*ids(body["features"]), *ids(rest["features"])]
    assert rising_ids[-1] == "east" and rising_ids == ids(back["features"])[::-1]
    assert following["sortby"] == cloudy["sortby"]


async def test_items_have_the_fields_that_are_asked_for(api: Api) -> None:
    found = {"ids": "paris"}
    picked = (await api.get("/search", fields="id,properties.datetime", **found)).json()
    without = (await api.get("/search", fields="-geometry,-properties.created", **found)).json()
    whole = (await api.post("/search", {"ids": ["paris"], "fields": {}})).json()
    both = {"include": ["id", "properties"], "exclude": ["properties.created"]}
    mixed = (await api.post("/search", {"ids": ["paris"], "fields": both})).json()
    listed = (await api.get("/collections/scenes/items", fields="id", limit="1")).json()
    [one], [other], [third], [fourth] = (
        page["features"] for page in (picked, without, whole, mixed)
    )
    assert one.keys() == {"id", "properties"} and one["properties"].keys() == {"datetime"}
    assert "geometry" not in other and "created" not in other["properties"] and other["assets"]
    assert third["properties"].keys() == {"datetime"} and third["links"] and third["bbox"]
    assert fourth.keys() == {"id", "properties"} and "created" not in fourth["properties"]
    assert listed["features"][0].keys() == {"id"}
    [following] = [link["href"] for link in listed["links"] if link["rel"] == "next"]
    assert "fields=id" in following
