"""`docflow stac search | show | delete`."""

import asyncio
import json

import pytest

from activities.jobs.catalogue import Catalogue
from adapters.database.engine import open_database
from tests.support.cli import run_docflow
from tests.support.jobs.stac import ids, item, put_scenes
from workers.shared.cli.context import CliContext


async def _fill(url: str) -> None:
    async with open_database(url) as database:
        catalogue = await put_scenes(Catalogue(database))
        await catalogue.put_items("scenes", [item("paris-2", days=0.4, box=(2, 48, 3, 49))])


@pytest.fixture
def cli(database_url: str) -> CliContext:
    asyncio.run(_fill(database_url))
    return CliContext({"DATABASE_URL": database_url})


def found(cli: CliContext, *options: str) -> list[str]:
    """Ids that a search prints as JSON."""
    done = run_docflow("stac", "search", *options, "--json", context=cli)
    assert done.exit_code == 0, done.output
    return ids(json.loads(done.stdout)["features"])


def test_a_search_takes_place_time_filter_and_limit(cli: CliContext) -> None:
    assert found(cli) == ["fiji", "season", "east", "paris-2", "paris"]
    assert found(cli, "--bbox", "2,48,3,49") == ["paris-2", "paris"]
    assert found(cli, "--bbox", "-180,-30,-170,0") == ["fiji"]
    assert found(cli, "--datetime", "2024-05-01") == ["paris-2", "paris"]
    assert found(cli, "--datetime", "2024-05-02/2024-05-03") == ["season", "east"]
    assert found(cli, "--datetime", "2024-05-03/..") == ["fiji", "season"]
    assert found(cli, "--filter", "eo:cloud_cover > 20") == ["east"]
    assert found(cli, "--collection", "others") == []
    assert found(cli, "--sort", "+id", "--limit", "2") == ["east", "fiji"]
    assert found(cli, "--limit", "2") == ["fiji", "season"]


def test_people_see_a_table(cli: CliContext) -> None:
    searched = run_docflow("stac", "search", "--limit", "2", context=cli)
    shown = searched.stdout
    assert "177, -20, -178, -15" in shown and "2024-05-03T10:00:00Z to 2024-07-30" in shown
    as_json = run_docflow("stac", "search", "--limit", "2", "--json", context=cli)
    for each in (searched, as_json):
        assert "there are more than 2; --limit shows them" in each.stderr
    json.loads(as_json.stdout)
    none = run_docflow("stac", "search", "--collection", "others", context=cli)
    assert none.stdout == "no item is found\n"


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
def test_what_means_nothing_is_a_mistake_in_usage(
    database_url: str, options: list[str], says: str
) -> None:
    context = CliContext({"DATABASE_URL": database_url})
    done = run_docflow("stac", "search", *options, context=context)
    assert done.exit_code == 2 and says in done.stderr


def test_an_item_and_a_collection_are_shown(cli: CliContext) -> None:
    shown = run_docflow("stac", "show", "scenes", "paris", context=cli).stdout
    assert "eo:cloud_cover" in shown and "silver://scene.tif" in shown
    as_json = run_docflow("stac", "show", "scenes", "paris", "--json", context=cli).stdout
    assert json.loads(as_json)["id"] == "paris"
    collection = run_docflow("stac", "show", "scenes", context=cli).stdout
    assert "-180, -20, 180, 49" in collection and "2024-05-01T10:00:00Z to" in collection
    missing = run_docflow("stac", "show", "scenes", "london", context=cli)
    assert missing.exit_code == 1 and "no item london" in missing.stderr
    missing = run_docflow("stac", "show", "others", context=cli)
    assert "there are: scenes" in missing.stderr


def test_an_item_is_taken_out(cli: CliContext) -> None:
    kept = run_docflow("stac", "delete", "scenes", "paris", context=cli)
    assert kept.exit_code == 1 and "paris" in found(cli)
    done = run_docflow("stac", "delete", "scenes", "paris", "--yes", context=cli)
    again = run_docflow("stac", "delete", "scenes", "paris", "--yes", context=cli)
    assert done.stdout == "paris is no longer in the collection scenes\n"
    assert (again.exit_code, "there is no item paris" in again.stderr) == (1, True)
    assert "paris" not in found(cli)
