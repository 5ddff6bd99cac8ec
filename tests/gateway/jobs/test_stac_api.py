"""The STAC API over a real server, with the clients that people use."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Any

import httpx
import pystac_client
import pytest
import pytest_asyncio
from fastapi import FastAPI
from stac_api_validator.validations import QueryConfig, validate_api

from adapters.database import open_database
from adapters.database.jobs.catalogue import open_catalogue
from tests.support.gateway import TOKENS, served, token
from tests.support.jobs.stac import PARIS, ids, item, put_scenes
from workers.gateway.http.auth import Tokens
from workers.gateway.http.problems import handle_problems
from workers.gateway.jobs.stac import stac_router

pytestmark = pytest.mark.asyncio(loop_scope="module")
STORES = ["sqlite", pytest.param("pgstac", marks=pytest.mark.postgis)]
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
            return await client.get(path, params=parameters)

    async def post(self, path: str, body: Any) -> httpx.Response:
        """Search by a body."""
        async with self._client() as client:
            return await client.post(path, json=body)

    def _client(self) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {token()}"}
        return httpx.AsyncClient(base_url=self.root, headers=headers, timeout=60)


@pytest.fixture(scope="module", params=STORES)
def one_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[str]:
    """URL of a database for all tests of the module, none of which writes."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('catalogue') / 'catalogue.db'}"
        return
    with request.getfixturevalue("postgis").database() as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(one_url: str) -> AsyncGenerator[Api]:
    async with open_database(one_url) as database:
        catalogue = await put_scenes(open_catalogue(database))
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
        shape = client.search(intersects=AROUND_PARIS, filter={"op": "=", "args": [{"property": "id"}, "paris"]})
        found = next(iter(shape.items()))
        assert found.get_collection().id == "scenes" and found.assets["data"].media_type
        assert found.get_parent().id == "scenes" and found.get_root().id == "docflow"

    await asyncio.to_thread(ask)


async def test_the_validator_finds_no_fault(api: Api) -> None:
    warnings, errors = await asyncio.to_thread(
        validate_api,
        root_url=api.root,
        ccs_to_validate=["core", "collections", "features", "item-search", "filter"],
        collection="scenes",
        geometry=str(AROUND_PARIS).replace("'", '"'),
        auth_bearer_token=token(),
        auth_query_parameter=None,
        fields_nested_property=None,
        validate_pagination=True,
        query_config=QueryConfig(*[None] * 11),
        transaction_collection=None,
        headers={},
    )
    assert list(errors) == [], list(errors)
    print(list(warnings))
