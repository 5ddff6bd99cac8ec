"""The JSON of items and collections."""

import json

import pytest
from pydantic import ValidationError

from activities.jobs.stac_items import build_item, check_item
from adapters.files.footprints import footprint
from tests.support.jobs.stac import asset, collection, facts, item, ranged
from workflows.jobs.datasets import (
    BandInfo,
    BandStatistics,
    ColumnInfo,
    GridInfo,
    LinkInfo,
    TableInfo,
    widened,
)

UTM = GridInfo(code="EPSG:32631", shape=(900, 1000), transform=(10, 0, 500000, 0, -10, 5600000))
BAND = BandInfo(
    name="red",
    data_type="uint16",
    nodata=0,
    scale=0.5,
    statistics=BandStatistics(minimum=1, maximum=9, mean=4.5, stddev=2, count=80, valid_percent=80),
    more={"eo:common_name": "red"},
)


def test_a_raster_says_where_its_pixels_are_and_what_is_in_them() -> None:
    made = build_item(
        facts(
            geometry=footprint(UTM),
            grid=UTM,
            gsd=10,
            assets={"data": asset(bands=(BAND,))},
            software={"docflow": "0.1.0", "gdal": "3.10"},
            lineage="warped to EPSG:32631",
            links=(LinkInfo(rel="via", href="bronze://scene.tif"),),
        )
    )
    check_item(made, collection())
    properties = made["properties"]
    assert properties["proj:code"] == "EPSG:32631"
    assert properties["proj:shape"] == [900, 1000]
    assert properties["proj:transform"][:3] == [10, 0, 500000]
    assert properties["processing:software"] == {"docflow": "0.1.0", "gdal": "3.10"}
    data = made["assets"]["data"]
    assert data["file:checksum"] == "1220" + "ab" * 32 and data["file:size"] == 5
    (band,) = data["bands"]
    assert (band["data_type"], band["nodata"], band["raster:scale"]) == ("uint16", 0, 0.5)
    assert band["statistics"]["valid_percent"] == 80
    used = {url.split("/")[3] for url in made["stac_extensions"]}
    assert used == {"projection", "raster", "file", "processing", "eo"}
    assert made["links"][1] == {"rel": "via", "href": "bronze://scene.tif"}


def test_a_system_without_a_code_is_given_by_its_text() -> None:
    assert UTM.code is not None
    local = GridInfo(wkt2='LOCAL_CS["site"]', shape=(1, 1), transform=(1, 0, 0, 0, -1, 0))
    properties = build_item(facts(grid=local))["properties"]
    assert properties["proj:code"] is None and properties["proj:wkt2"] == 'LOCAL_CS["site"]'


def test_a_table_names_its_columns() -> None:
    table = TableInfo(
        columns=(ColumnInfo(name="geom", type="Polygon"), ColumnInfo(name="name", type="text")),
        primary_geometry="geom",
        row_count=3,
    )
    made = build_item(facts(table=table))
    check_item(made, collection())
    assert made["properties"]["table:row_count"] == 3
    assert made["properties"]["table:columns"][1] == {"name": "name", "type": "text"}


def test_a_range_has_no_single_moment() -> None:
    made = ranged("r", 0, 2)
    check_item(made, collection())
    assert made["properties"]["datetime"] is None
    assert made["properties"]["end_datetime"] == "2024-05-03T10:00:00Z"


@pytest.mark.parametrize(
    "changes",
    [
        {"datetime": None},
        {"start": "2024-05-01T00:00:00Z"},
        {"start": "2024-05-02T00:00:00Z", "end": "2024-05-01T00:00:00Z"},
        {"datetime": "2024-05-01T00:00:00"},
        {"id": "a/b"},
        {"assets": {}},
        {"bbox": (0, 0, float("nan"), 1)},
    ],
)
def test_facts_without_time_id_or_assets_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        facts(**changes)  # type: ignore[arg-type]


def test_nodata_that_is_no_number_stays_strict_json() -> None:
    band = BandInfo(name="b", data_type="float32", nodata="nan")
    made = build_item(facts(assets={"data": asset(bands=(band,))}))
    check_item(made, collection())
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    with pytest.raises(ValidationError):
        BandStatistics(minimum=float("nan"), maximum=1)


def test_a_collection_widens_with_its_items() -> None:
    made = widened(collection(), [item("a"), item("b", days=2, box=(10, 40, 11, 41))])
    assert made is not None
    assert made["extent"]["spatial"]["bbox"] == [[3, 40, 11, 51]]
    assert made["extent"]["temporal"]["interval"] == [
        ["2024-05-01T10:00:00Z", "2024-05-03T10:00:00Z"]
    ]
    assert widened(made, [item("c", days=1)]) is None
    around = widened(made, [item("d", box=(170, -10, -170, 10))])
    assert around is not None and around["extent"]["spatial"]["bbox"] == [[-180, -10, 180, 51]]
