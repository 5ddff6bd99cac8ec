"""What may not enter the catalogue."""

from collections.abc import Mapping
from typing import Any

import pytest

from activities.jobs.stac_items import ITEM_IDS, build_item, check_collection, check_item
from adapters.files.footprints import footprint
from tests.support.jobs.stac import altered, collection, facts, item
from workflows.jobs.datasets import GridInfo
from workflows.shared.errors import InvalidDocument

BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}
WRONG_WAY = {
    "type": "Polygon",
    "coordinates": [[[170, 0], [-170, 0], [-170, 10.5], [170, 10], [170, 0]]],
}
FAR = {"type": "Point", "coordinates": [500000, 5600000]}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("id", "a/b", "ids of this collection match"),
        ("collection", "others", "is not 'scenes'"),
        ("stac_version", "1.0.0", "stac_version"),
        ("geometry", None, "geometry"),
        ("geometry", BOW_TIE, "Self-intersection"),
        ("geometry", WRONG_WAY, "cut it at the antimeridian"),
        ("geometry", FAR, "not within the Earth's degrees"),
        ("geometry", {"type": "Polygon", "coordinates": []}, "geometry"),
        ("geometry", {"type": "Circle", "coordinates": [1]}, "geometry"),
        ("bbox", [0, 0, 1, 1], "is not that of the geometry"),
        ("properties datetime", None, "start_datetime"),
        ("properties datetime", "2024", "datetime"),
        ("properties created", "2024-13-01T00:00:00Z", "created"),
        ("properties docflow:cover", float("nan"), "strict JSON"),
        ("properties docflow:long", "x" * 1_000_000, "is the most"),
        ("assets data", {"type": "image/tiff"}, "'href' is a required property"),
        ("assets data file:checksum", "SHA", "file:checksum: SHA is not what its extension allows"),
        ("assets data file:size", -1, "file:size: -1 is not"),
        ("assets data file:size", True, "file:size: True is not"),
        ("properties proj:epsg_", "32631", "projection.*is used and missing"),
        ("properties proj:code", "32631", "proj:code: 32631 is not"),
        ("properties proj:shape", [1], r"proj:shape: \[1\] is not"),
        ("properties proj:transform", [1, 2], "proj:transform"),
        ("properties eo:cloud_cover", 101, "eo:cloud_cover: 101 is not"),
        ("properties processing:software", {"gdal": 3}, "processing:software"),
        ("properties table:columns", [{"type": "text"}], "table:columns"),
        ("properties classification:classes", [{"value": 1, "name": "a b"}], "classes"),
        ("assets data bands", [{"raster:scale": "1"}], "bands.0.raster:scale: 1 is not"),
    ],
)
def test_a_wrong_item_is_refused_with_its_reason(path: str, value: Any, says: str) -> None:
    check_item(item(), collection())
    with pytest.raises(InvalidDocument, match=says):
        check_item(altered(item(), path, value), collection())


def test_an_item_elsewhere_than_its_file_is_refused() -> None:
    grid = GridInfo(code="EPSG:32631", shape=(9, 9), transform=(10, 0, 500000, 0, -10, 5600000))
    right = build_item(facts(grid=grid, geometry=footprint(grid)))
    check_item(right, collection())
    with pytest.raises(InvalidDocument, match="reaches beyond the raster"):
        check_item(build_item(facts(grid=grid, box=(103, 50, 104, 51))), collection())


def test_ids_follow_the_pattern_that_their_collection_declares() -> None:
    tiles = collection(item_ids=r"^scene-\d+-tile-x\d+-y\d+$")
    assert tiles[ITEM_IDS]
    check_collection(tiles)
    check_item(item("scene-1-tile-x0-y12"), tiles)
    with pytest.raises(InvalidDocument, match="tile-x"):
        check_item(item("scene-1"), tiles)
    kept = altered(tiles, ITEM_IDS, "(?=scene).*")
    with pytest.raises(InvalidDocument, match=r"look-around.*correct the collection"):
        check_item(item("scene-1"), kept)


def test_a_pattern_of_a_collection_takes_linear_time() -> None:
    tiles = altered(collection(), ITEM_IDS, "(a|a)*b")
    check_collection(tiles)
    with pytest.raises(InvalidDocument, match="ids of this collection match"):
        check_item(item("a" * 40), tiles)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("id", "With spaces", "id"),
        ("extent", {}, "extent"),
        (ITEM_IDS, "(", "is not a pattern"),
        (ITEM_IDS, ["a"], "is not a pattern: write it as a text"),
        (ITEM_IDS, "(?=a)", "look-around, including"),
        ("license", None, "license"),
    ],
)
def test_a_wrong_collection_is_refused_with_its_reason(path: str, value: Any, says: str) -> None:
    with pytest.raises(InvalidDocument, match=says):
        check_collection(altered(collection(), path, value))


def test_every_problem_is_named() -> None:
    wrong: Mapping[str, Any] = altered(altered(item(), "id", "a b"), "bbox", [0, 0, 1, 1])
    with pytest.raises(InvalidDocument, match=r"ids of this collection.*not that of the geometry"):
        check_item(wrong, collection())
