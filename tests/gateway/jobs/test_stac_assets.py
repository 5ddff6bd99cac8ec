"""Clients of STAC read the files of assets from the API."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pystac_client
import pytest
import pytest_asyncio
from fastapi import FastAPI

from activities.jobs.catalogue import Catalogue
from adapters.database.engine import open_database
from adapters.files.blobs import FolderBlobs
from tests.support.gateway import TOKENS, served, token
from tests.support.jobs.stac import asset, collection, item
from workers.jobs.stac_api import stac_router
from workers.shared.gateway.http.auth import Tokens
from workers.shared.gateway.http.problems import handle_problems

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONTENT = bytes(range(256)) * 8_192
"""Two blocks of the store."""
ASSETS = "/api/stac/collections/scenes/items/s/assets"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(one_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    folder: Path = tmp_path_factory.mktemp("assets")
    (folder / "silver").mkdir()
    (folder / "silver" / "scene.tif").write_bytes(CONTENT)
    (folder / "silver" / "empty.txt").touch()
    async with open_database(one_url) as database:
        catalogue = Catalogue(database)
        await catalogue.put_collection(collection())
        assets = {
            "data": asset(size=len(CONTENT)),
            "empty": asset(href="silver://empty.txt", media_type="text/plain"),
            "gone": asset(href="silver://gone.tif"),
            "source": asset(href="bronze://source.tif"),
            "table": asset(href="postgresql:geo.roads"),
        }
        await catalogue.put_items("scenes", [item("s", assets=assets)])
        app = FastAPI()
        app.state.tokens = Tokens(TOKENS)
        app.include_router(stac_router(catalogue, None, {"silver": FolderBlobs(folder / "silver")}))
        handle_problems(app, {})
        async with served(app) as address:
            yield address


@pytest_asyncio.fixture(loop_scope="module")
async def client(site: str) -> AsyncGenerator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {token()}"}
    async with httpx.AsyncClient(base_url=site, headers=headers, timeout=60) as opened:
        yield opened


async def test_an_asset_is_read_at_its_address(site: str, client: httpx.AsyncClient) -> None:
    def found() -> dict[str, str]:
        headers = {"Authorization": f"Bearer {token()}"}
        opened = pystac_client.Client.open(f"{site}/api/stac", headers=headers)
        (shown,) = opened.search(ids=["s"]).items()
        return {key: each.href for key, each in shown.assets.items()}

    addresses = await asyncio.to_thread(found)
    assert addresses["source"] == "bronze://source.tif"
    assert addresses["table"] == "postgresql:geo.roads"
    answer = await client.get(addresses["data"])
    assert answer.status_code == 200 and answer.content == CONTENT
    assert answer.headers["content-type"] == asset().media_type
    assert answer.headers["content-length"] == f"{len(CONTENT)}"
    assert "attachment" in answer.headers["content-disposition"]
    empty = await client.get(addresses["empty"], headers={"range": "bytes=0-"})
    assert empty.status_code == 416


@pytest.mark.parametrize(
    ("asked", "begin", "end"),
    [
        ("bytes=0-15", 0, 16),
        ("bytes=1048570-1048585", 1_048_570, 1_048_586),
        ("bytes=2097150-", 2_097_150, 2_097_152),
        ("bytes=-3", 2_097_149, 2_097_152),
        ("bytes=10-99999999999", 10, 2_097_152),
        ("bytes=-99999999999", 0, 2_097_152),
    ],
)
async def test_a_range_of_a_file_is_read(
    client: httpx.AsyncClient, asked: str, begin: int, end: int
) -> None:
    answer = await client.get(f"{ASSETS}/data", headers={"range": asked})
    assert answer.status_code == 206 and answer.content == CONTENT[begin:end]
    assert answer.headers["content-range"] == f"bytes {begin}-{end - 1}/{len(CONTENT)}"


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "lines=1-2", "bytes=5-2", "bytes=-", "x"])
async def test_what_is_no_single_range_is_answered_with_the_whole(
    client: httpx.AsyncClient, asked: str
) -> None:
    answer = await client.get(f"{ASSETS}/data", headers={"range": asked})
    assert answer.status_code == 200 and len(answer.content) == len(CONTENT)


async def test_conditions_and_head_are_understood(client: httpx.AsyncClient) -> None:
    head = await client.head(f"{ASSETS}/data")
    assert (head.status_code, head.headers["content-length"]) == (200, f"{len(CONTENT)}")
    assert head.headers["accept-ranges"] == "bytes"
    tag = head.headers["etag"]
    known = await client.get(f"{ASSETS}/data", headers={"if-none-match": f'"x", {tag}'})
    assert (known.status_code, known.content) == (304, b"")
    ranged = {"range": "bytes=0-3"}
    same = await client.get(f"{ASSETS}/data", headers={**ranged, "if-range": tag})
    other = await client.get(f"{ASSETS}/data", headers={**ranged, "if-range": '"x"'})
    assert (same.status_code, other.status_code) == (206, 200)
    beyond = await client.get(f"{ASSETS}/data", headers={"range": "bytes=2097152-"})
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{len(CONTENT)}"


async def test_what_is_not_served_is_not_found(client: httpx.AsyncClient) -> None:
    for path in ("gone", "source", "table", "none", "%00"):
        answer = await client.get(f"{ASSETS}/{path}")
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
    assert "has been removed" in (await client.get(f"{ASSETS}/gone")).json()["detail"]
    async with httpx.AsyncClient(base_url=client.base_url) as anonymous:
        assert (await anonymous.get(f"{ASSETS}/data")).status_code == 401
