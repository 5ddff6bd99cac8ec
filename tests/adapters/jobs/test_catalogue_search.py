"""What the catalogue promises about searching."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from activities.jobs.catalogue import Catalogue
from activities.jobs.stac_queries import filter_of_text
from adapters.database.engine import open_database
from tests.support.fresh_database import fresh_url
from tests.support.jobs.stac import EVERYWHERE, found, put_scenes
from workflows.shared.errors import RuleViolation

AT_PARIS = {"type": "Point", "coordinates": [2.5, 48.5]}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scenes() -> AsyncGenerator[Catalogue]:
    """For all tests of the module, none of which writes."""
    async with open_database(fresh_url()) as database:
        yield await put_scenes(Catalogue(database))


async def test_the_newest_comes_first(scenes: Catalogue) -> None:
    assert await found(scenes) == ["fiji", "season", "east", "paris"]
    assert await found(scenes, collections=["others"]) == []
    assert await found(scenes, ids=["east", "paris"], collections=["scenes"]) == ["east", "paris"]


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((2.5, 48.5, 2.6, 48.6), ["paris"]),
        ((-180, -90, 180, 90), ["fiji", "season", "east", "paris"]),
        ((10, 30, 25, 50), ["season", "east"]),
        ((170, -30, -170, 0), ["fiji"]),
        ((179, -18, 180, -17), ["fiji"]),
        ((-180, -18, -179, -17), ["fiji"]),
        ((-10, -30, 10, 0), []),
        ((100, -30, -100, 60), ["fiji"]),
        ((3, 49, 4, 50), ["paris"]),
        ((3.001, 49, 4, 50), []),
    ],
)
async def test_a_box_finds_what_it_touches(
    scenes: Catalogue, box: tuple[float, float, float, float], expected: list[str]
) -> None:
    assert await found(scenes, bbox=box) == expected


async def test_a_geometry_finds_what_it_touches_and_not_its_bounds(scenes: Catalogue) -> None:
    triangle = {"type": "Polygon", "coordinates": [[[0, 44], [20.5, 44], [20.5, 40.5], [0, 44]]]}
    assert await found(scenes, intersects=triangle) == ["east"]
    line = {"type": "LineString", "coordinates": [[2.5, 40], [2.5, 60]]}
    assert await found(scenes, intersects=line) == ["paris"]


@pytest.mark.parametrize(
    ("datetime", "expected"),
    [
        ("2024-05-01T10:00:00Z", ["paris"]),
        ("2024-05-01T12:00:00+02:00", ["paris"]),
        ("2024-05-01T10:00:01Z", []),
        ("../2024-05-02T10:00:00Z", ["east", "paris"]),
        ("2024-05-03T00:00:00Z/..", ["fiji", "season"]),
        ("2024-06-01T00:00:00Z", ["season"]),
        ("/2024-05-01T23:00:00Z", ["paris"]),
        ("2024-05-02T00:00:00Z/2024-05-03T11:00:00Z", ["season", "east"]),
    ],
)
async def test_times_find_instants_and_ranges(
    scenes: Catalogue, datetime: str, expected: list[str]
) -> None:
    assert await found(scenes, datetime=datetime) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eo:cloud_cover < 20", ["paris"]),
        ("eo:cloud_cover >= 12.5", ["east", "paris"]),
        ("properties.eo:cloud_cover < 20", ["paris"]),
        ("eo:cloud_cover BETWEEN 50 AND 90", ["east"]),
        ("eo:cloud_cover <> 80", ["paris"]),
        ("NOT eo:cloud_cover < 20", ["east"]),
        ("eo:cloud_cover IS NULL", ["fiji", "season"]),
        ("NOT eo:cloud_cover IS NULL", ["east", "paris"]),
        ("platform = 'kestrel' OR eo:cloud_cover > 50", ["east", "paris"]),
        ("platform = 'kestrel' AND eo:cloud_cover > 50", []),
        ("platform LIKE 'kes%'", ["paris"]),
        ("platform LIKE 'K%'", []),
        ("casei(platform) = casei('MERLIN')", ["season"]),
        ("platform IN ('kestrel', 'Merlin')", ["season", "paris"]),
        ("id = 'fiji'", ["fiji"]),
        ("id IN ('fiji', 'east')", ["fiji", "east"]),
        ("collection = 'scenes' AND id = 'east'", ["east"]),
        ("missing = 'a'", []),
        ("missing < 3", []),
        ("datetime > TIMESTAMP('2024-05-02T00:00:00Z')", ["fiji", "season", "east"]),
        ("datetime = TIMESTAMP('2024-05-03T10:00:00Z')", ["season"]),
        ("end_datetime > TIMESTAMP('2024-06-01T00:00:00Z')", ["season"]),
        ("t_before(datetime, TIMESTAMP('2024-05-02T00:00:00Z'))", ["paris"]),
        (
            "t_during(datetime, INTERVAL('2024-05-01T00:00:00Z', '2024-05-03T00:00:00Z'))",
            ["east", "paris"],
        ),
        ("t_intersects(datetime, INTERVAL('2024-05-04T00:00:00Z', '..'))", ["fiji"]),
        # A function is about the property that it names; all of these were created on one day.
        ("t_after(created, TIMESTAMP('2024-05-02T00:00:00Z'))", []),
        ("t_before(created, DATE('2024-05-02'))", ["fiji", "season", "east", "paris"]),
        ("updated >= TIMESTAMP('2024-05-01T12:00:00+02:00')", ["fiji", "season", "east", "paris"]),
        ("created < TIMESTAMP('2024-05-01T10:00:00Z')", []),
        ("t_before(datetime, TIMESTAMP('2024-05-03T12:00:00Z'))", ["season", "east", "paris"]),
        ("t_after(end_datetime, TIMESTAMP('2024-07-01T00:00:00Z'))", ["season"]),
        ("t_after(start_datetime, TIMESTAMP('2024-05-03T00:00:00Z'))", ["fiji", "season"]),
        ("t_after(TIMESTAMP('2024-05-02T12:00:00Z'), datetime)", ["east", "paris"]),
        ("t_meets(datetime, INTERVAL('2024-05-01T10:00:00Z', '2024-05-02T00:00:00Z'))", ["paris"]),
        (
            "t_overlaps(INTERVAL(start_datetime, end_datetime), "
            "INTERVAL('2024-06-01T00:00:00Z', '2024-09-01T00:00:00Z'))",
            ["season"],
        ),
        ("t_disjoint(datetime, INTERVAL('2024-05-02T00:00:00Z', '..'))", ["paris"]),
        ("t_equals(datetime, INTERVAL('..', '..'))", []),
        ("t_intersects(datetime, INTERVAL('..', '..')) AND id = 'east'", ["east"]),
        ("NOT t_starts(datetime, INTERVAL('..', '..')) AND id = 'east'", ["east"]),
        ("datetime IN (TIMESTAMP('2024-05-01T10:00:00Z'), DATE('2024-05-04'))", ["fiji", "paris"]),
        ("datetime BETWEEN DATE('2024-05-02') AND DATE('2024-05-03')", ["season", "east"]),
        ("datetime = DATE('2024-05-03')", ["season"]),
        ("datetime > DATE('2024-05-03')", ["fiji"]),
        ("DATE('2024-05-03') > datetime", ["east", "paris"]),
        ("datetime <> DATE('2024-05-03')", ["fiji", "east", "paris"]),
        ("s_intersects(geometry, POINT(2.5 48.5))", ["paris"]),
        ("s_intersects(geometry, BBOX(10, 30, 25, 50))", ["season", "east"]),
        ("s_intersects(geometry, BBOX(170, -30, -170, 0))", ["fiji"]),
        ("s_within(geometry, POLYGON((0 0, 19 0, 19 60, 0 60, 0 0)))", ["paris"]),
        ("s_disjoint(geometry, POLYGON((0 0, 60 0, 60 60, 0 60, 0 0)))", ["fiji"]),
    ],
)
async def test_filters_find_what_they_say(
    scenes: Catalogue, text: str, expected: list[str]
) -> None:
    assert await found(scenes, filter=filter_of_text(text)) == expected


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"bbox": (0, 10, 1, 5)}, "is not a box in degrees"),
        ({"bbox": (0, 0, 1, 1), "intersects": {"type": "Point", "coordinates": [0, 0]}}, "exclude"),
        ({"intersects": {"type": "Circle"}}, "intersects"),
        ({"datetime": "yesterday"}, "not a time of RFC 3339"),
        ({"datetime": "2024-05-01"}, "not a time of RFC 3339"),
        ({"datetime": "../.."}, "one end"),
        ({"datetime": "2024-05-02T00:00:00Z/2024-05-01T00:00:00Z"}, "before it begins"),
        ({"filter": {"op": "avg", "args": [1]}}, "'avg' is not supported"),
        ({"filter": {"op": "=", "args": [{"property": "a'; DROP TABLE x"}, 1]}}, "is not the name"),
        ({"filter": {"op": "="}}, "list of arguments"),
        ({"filter": {"op": "not", "args": [{"nothing": 1}]}}, "not CQL2"),
        ({"filter": {"op": "s_within", "args": [{"property": "id"}, 3]}}, "compares `geometry`"),
        ({"filter": {"op": "=", "args": [{"property": "geometry"}, 1]}}, "spatial functions alone"),
        ({"filter": {"op": "t_after", "args": [{"property": "datetime"}]}}, "two times"),
        ({"filter": {"op": "t_after", "args": [{"property": "datetime"}, 3]}}, "t_after compares"),
        (
            {"filter": {"op": "<", "args": [{"property": "datetime"}, {"date": "2024-13-01"}]}},
            "month must be",
        ),
        ({"intersects": {"type": "Feature", "geometry": AT_PARIS}}, "the type is none of"),
        ({"limit": 0}, "1 is the least"),
        ({"token": "nonsense"}, "token"),
        ({"token": "next:zz:zz"}, "token"),
    ],
)
async def test_a_search_that_means_nothing_is_refused(
    scenes: Catalogue, query: dict[str, Any], says: str
) -> None:
    with pytest.raises(RuleViolation, match=says):
        await scenes.search(replace(EVERYWHERE, **query))


async def test_text_that_is_no_filter_says_where() -> None:
    with pytest.raises(RuleViolation, match="expected"):
        filter_of_text("eo:cloud_cover <")
    with pytest.raises(RuleViolation, match="parentheses"):
        filter_of_text("(" * 10_000)
