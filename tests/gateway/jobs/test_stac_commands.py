"""`docflow stac` at a gateway."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from activities.jobs.catalogue import Catalogue
from tests.gateway.test_commands import ADMIN, OPERATOR, Terminal
from tests.support.fresh_database import administer
from tests.support.gateway import build_app, served, token
from tests.support.jobs.stac import PARIS, collection, ids, item, put_scenes
from workers.shared.resources import open_resources

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Scenes:
    """A gateway with a catalogue of its own, and those who ask it."""

    address: str
    catalogue: Catalogue
    olga: Terminal

    async def found(self, *options: str) -> list[str]:
        """Ids that a search prints as JSON."""
        said = await self.olga.says("stac", "search", *options, "-o", "json")
        found = json.loads(said[said.index("{") :])
        assert found["type"] == "FeatureCollection"
        return ids(found["features"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scenes(
    temporal: WorkflowEnvironment, one_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Scenes]:
    folder = tmp_path_factory.mktemp("catalogue")
    settings = {
        "DATABASE_URL": one_url,
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
    }
    async with open_resources(settings) as resources:
        catalogue = await put_scenes(Catalogue(resources.database))
        await catalogue.put_items("scenes", [item("paris-2", days=0.4, box=PARIS)])
        app, _ = build_app(temporal.client, resources, allowed_hosts=("127.0.0.1",))
        async with served(app) as address:
            yield Scenes(address, catalogue, Terminal(address, OPERATOR))


async def test_a_search_takes_place_time_filter_and_limit(scenes: Scenes) -> None:
    found = scenes.found
    assert await found() == ["fiji", "season", "east", "paris-2", "paris"]
    assert await found("--bbox", "2,48,3,49") == ["paris-2", "paris"]
    assert await found("--bbox", "-180,-30,-170,0") == ["fiji"]
    assert await found("--datetime", "2024-05-01") == ["paris-2", "paris"]
    assert await found("--datetime", "2024-05-02/2024-05-03") == ["season", "east"]
    assert await found("--datetime", "2024-05-03/..") == ["fiji", "season"]
    assert await found("--filter", "eo:cloud_cover > 20") == ["east"]
    assert await found("--collection", "others") == []
    assert await found("--sort", "+id", "--limit", "2") == ["east", "fiji"]
    assert await found("--limit", "2") == ["fiji", "season"]


async def test_people_see_a_table(scenes: Scenes) -> None:
    searched = await scenes.olga.says("stac", "search", "--limit", "2")
    assert "177, -20, -178, -15" in searched
    assert "2024-05-03T10:00:00Z to 2024-07-30" in searched
    assert "there are more than 2; --limit shows them" in searched
    names = await scenes.olga.says("stac", "search", "--bbox", "2,48,3,49", "-o", "name")
    assert names == "scenes/paris-2\nscenes/paris\n"
    none = await scenes.olga.says("stac", "search", "--collection", "others")
    assert none == "no item is found\n"


async def test_more_items_than_a_page_has_are_found(scenes: Scenes) -> None:
    await scenes.catalogue.put_collection(collection("many"))
    await scenes.catalogue.put_items(
        "many", [item(f"s{at:03}", collection="many", box=PARIS) for at in range(203)]
    )
    wanted = ("--collection", "many", "--sort", "id", "--limit", "300")
    found = await scenes.found(*wanted)
    assert found == [f"s{at:03}" for at in range(203)]
    for id in found:
        await scenes.catalogue.delete_item("many", id)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--bbox", "1,2,3"], "four numbers"),
        (["--bbox", "0,10,1,5"], "is not a box in degrees"),
        (["--datetime", "yesterday"], "RFC 3339"),
        (["--filter", "avg(x) = 1"], "'avg' is not supported"),
        (["--filter", "x ="], "not CQL2"),
    ],
)
async def test_what_means_nothing_is_a_mistake_in_usage(
    scenes: Scenes, options: list[str], says: str
) -> None:
    assert says in await scenes.olga.says("stac", "search", *options, code=2)


async def test_an_item_and_a_collection_are_shown(scenes: Scenes) -> None:
    shown = await scenes.olga.says("stac", "show", "scenes", "paris")
    address = f"{scenes.address}/api/stac/collections/scenes/items/paris/assets/data"
    assert "eo:cloud_cover" in shown and address in shown
    assert (await scenes.olga.json("stac", "show", "scenes", "paris"))["id"] == "paris"
    shown = await scenes.olga.says("stac", "show", "scenes")
    assert "-180, -20, 180, 49" in shown and "2024-05-01T10:00:00Z to" in shown
    missing = await scenes.olga.says("stac", "show", "scenes", "london", code=1)
    assert "there is no item 'london'" in missing
    assert "no collection 'nosuch'" in await scenes.olga.says("stac", "show", "nosuch", code=1)


async def test_an_item_is_taken_out_and_the_audit_says_by_whom(scenes: Scenes) -> None:
    await scenes.catalogue.put_items("scenes", [item("wrong", box=(50, 10, 51, 11))])
    delete = ("stac", "remove", "scenes", "wrong")
    await scenes.olga.says(*delete, code=1)
    viewer = Terminal(scenes.address, token("vera", 1, "viewer"))
    assert "ask for the role operator" in await viewer.says(*delete, "--yes", code=1)
    assert "wrong" in await scenes.found()
    said = await scenes.olga.says(*delete, "--yes")
    assert said == "wrong is no longer in the collection scenes\n"
    assert "there is no item 'wrong'" in await scenes.olga.says(*delete, "--yes", code=1)
    assert not await scenes.catalogue.delete_item("scenes", "wrong\0")
    assert "wrong" not in await scenes.found()
    alma = Terminal(scenes.address, ADMIN)
    noted = await alma.json("audit", "--object", "scenes/wrong")
    assert [(each["who"], each["status"]) for each in noted] == [
        ("olga", 404),
        ("olga", 204),
        ("vera", 403),
    ]


@pytest.mark.postgis
async def test_pgstac_finds_what_was_exported(scenes: Scenes, bare_postgis_url: str) -> None:
    await scenes.catalogue.put_collection(collection("others"))
    export = ("stac", "export", bare_postgis_url)
    refused = await scenes.olga.says(*export, code=1)
    assert "run `pypgstac migrate`" in refused
    place = Path(str(distribution("pypgstac").locate_file("pypgstac/migrations")))
    [script] = place.glob("pgstac.0.10.0.sql")
    await administer(bare_postgis_url, "CREATE EXTENSION postgis; CREATE EXTENSION btree_gist")
    await administer(bare_postgis_url, await asyncio.to_thread(script.read_text))
    unknown = await scenes.olga.says(*export, "--collection", "nosuch", code=1)
    assert "no collection nosuch" in unknown
    for _ in range(2):
        done = await scenes.olga.says(*export, "--collection", "others", "--collection", "scenes")
        assert done == "others: 0 items\nscenes: 5 items\n"
    connection = await asyncpg.connect(
        bare_postgis_url, server_settings={"search_path": "pgstac, public"}
    )
    try:
        near = await connection.fetchval(
            "SELECT search($1)", json.dumps({"bbox": PARIS, "collections": ["scenes"]})
        )
        put = json.loads(await connection.fetchval("SELECT get_item('paris', 'scenes')"))
    finally:
        await connection.close()
    assert set(ids(json.loads(near)["features"])) == {"paris", "paris-2"}
    [asset] = put["assets"].values()
    assert asset["href"].startswith(f"{scenes.address}/api/stac/")
    kept = await scenes.catalogue.item("scenes", "paris")
    assert kept is not None
    # Whoever serves an item adds links to it.
    assert put == {**kept, "links": [], "assets": {"data": {**kept["assets"]["data"], **asset}}}
