"""What becomes of GeoJSON and KML when they are read."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import shapely

from tests.support.jobs.vector_files import (
    geojson,
)
from tests.support.jobs.vector_reading import Read, Reading
from workflows.jobs.vectors import ColumnType

pytestmark = pytest.mark.asyncio(loop_scope="module")

POINT = "POINT (9 48)"


# GeoJSON


async def test_properties_keep_their_types(read: Reading, tmp_path: Path) -> None:
    first = {"i": (1 << 53) + 1, "big": 1 << 64, "b": True, "mixed": 1, "o": {"x": [1]}}
    second = {"i": 2, "big": 1, "b": None, "mixed": "a", "o": None, "r": 0.5, "d": "2024-01-02"}
    third = {"z": "2024-01-02T03:04:05+02:00", "t": "2024-01-02T03:04:05", "none": None}
    found = await read(geojson(tmp_path / "a", [(POINT, {**first, **second, **third})] * 2))
    assert found.types["r"] is ColumnType.REAL and found.types["d"] is ColumnType.DATE
    both = await_rows(found)
    assert both["z"] == datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC) and found.noted("'z'", "UTC")
    assert both["t"] == datetime(2024, 1, 2, 3, 4, 5)
    assert next(c for c in found.layer.table.columns if c.name == "none").is_empty


def await_rows(found: Read) -> dict[str, Any]:
    """The first feature, by column."""
    return dict(zip(found.names, found.rows()[0], strict=False))


async def test_numbers_that_json_has_and_columns_have_not_are_text(
    read: Reading, tmp_path: Path
) -> None:
    features = [(POINT, {"big": 1 << 64, "mixed": 1, "o": {"x": [1]}}), (POINT, {"mixed": "a"})]
    found = await read(geojson(tmp_path / "a", features))
    assert found.rows()[0][:3] == ("18446744073709551616", "1", '{"x":[1]}')
    assert found.noted("'big'", "kept as text") and found.noted("'mixed'", "several types")


@pytest.mark.parametrize(
    "join",
    [b"\n".join, lambda lines: b"".join(b"\x1e" + line + b"\n" for line in lines)],
    ids=["a feature in each line", "text sequence"],
)
async def test_sequences_of_features_are_read(
    read: Reading, tmp_path: Path, join: Callable[[list[bytes]], bytes]
) -> None:
    place = {"type": "Point", "coordinates": [9.0, 48.0]}
    records = [
        {"type": "Feature", "id": 7, "geometry": place, "properties": {"n": number}}
        for number in range(3)
    ]
    path = tmp_path / "a"
    path.write_bytes(join([json.dumps(each).encode() for each in [*records, place]]))
    found = await read(path)
    assert found.layer.features == 4
    columns = [found.names.index(name) for name in ("id", "n")]
    rows = [tuple(row[at] for at in columns) for row in found.rows()]
    assert rows == [(7, 0), (7, 1), (7, 2), (None, None)]
    assert [row[-1] for row in found.rows()] == ["POINT (9 48)"] * 4


async def test_what_geojson_readers_drop_is_named(read: Reading, tmp_path: Path) -> None:
    feature = {
        "type": "Feature",
        "id": "f7",
        "title": "x",
        "geometry": {"type": "Point", "coordinates": [9, 48, 1, 5]},
        "properties": {"id": 3, "v": float("nan")},
    }
    found = await read(geojson(tmp_path / "a", [feature], owner="me"))
    assert found.names == ["id", "v", "id_2"] and found.rows() == [
        (3, None, "f7", "POINT Z (9 48 1)")
    ]
    assert found.noted("left out: 'title'") and found.noted("left out: 'owner'")
    assert found.noted("more than three ordinates") and found.noted("NaN")


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        ({"type": "LineString", "coordinates": [[9, 48], [9, 49, 7, 5]]}, "(9 48 0, 9 49 7)"),
        (
            {
                "type": "GeometryCollection",
                "geometries": [{"type": "Point", "coordinates": [9, 48, 7, 5]}],
            },
            "GEOMETRYCOLLECTION Z (POINT Z (9 48 7))",
        ),
    ],
)
async def test_ordinates_behind_the_height_are_left_out_wherever_they_are(
    read: Reading, tmp_path: Path, geometry: dict[str, Any], expected: str
) -> None:
    feature = {"type": "Feature", "properties": {}, "geometry": geometry}
    found = await read(geojson(tmp_path / "a", [feature]))
    assert [row[-1].endswith(expected) for row in found.rows()] == [True]
    assert found.noted("1 features have more than three ordinates")


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        (
            {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Point", "coordinates": [9, 48]},
                    {"type": "Point", "coordinates": [9, 49, 7]},
                ],
            },
            "GEOMETRYCOLLECTION Z (POINT Z (9 48 0), POINT Z (9 49 7))",
        ),
        (
            {"type": "LineString", "coordinates": [[9, 48, 5], [9, 49]]},
            "LINESTRING Z (9 48 5, 9 49 0)",
        ),
    ],
)
async def test_places_without_a_height_get_one_and_are_named(
    read: Reading, tmp_path: Path, geometry: dict[str, Any], expected: str
) -> None:
    feature = {"type": "Feature", "properties": {}, "geometry": geometry}
    found = await read(geojson(tmp_path / "a", [feature]))
    assert [row[-1] for row in found.rows()] == [expected]
    assert found.noted("1 geometries have heights (Z) at some of their places")


async def test_halves_of_characters_are_replaced_and_named(read: Reading, tmp_path: Path) -> None:
    feature = {
        "type": "Feature",
        "id": "\udc00",
        "geometry": {"type": "Point", "coordinates": [9, 48], "datum": "x"},
        "properties": {"a\ud800": ["\udfff"], "b": "\U0001f600"},
    }
    found = await read(geojson(tmp_path / "a", [feature]))
    assert found.names == ["a", "b", "id"]
    assert found.rows() == [('["\ufffd"]', "\U0001f600", "\ufffd", "POINT (9 48)")]
    assert found.noted("3 texts hold half a character") and found.noted("left out: 'datum'")


async def test_numbers_beyond_all_others_are_text(read: Reading, tmp_path: Path) -> None:
    path = geojson(tmp_path / "a", [("POINT (9 48)", {"v": 123456.5})])
    path.write_text(path.read_text().replace("123456.5", "1e999"))
    found = await read(path)
    assert found.rows() == [("inf", "POINT (9 48)")] and found.noted("kept as text")


async def test_a_crs_of_a_feature_rejects_it_and_that_of_the_file_is_taken(
    read: Reading, tmp_path: Path
) -> None:
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}
    odd = {"type": "Feature", "crs": crs, "geometry": None, "properties": {}}
    found = await read(geojson(tmp_path / "a", [("POINT (0 0)", {}), odd], crs=crs))
    assert found.layer.projection.source.startswith("EPSG:3857")
    assert found.problems() == ["2: it has a CRS of its own, beside that of the layer"]


# KML


KML = """<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document>
<name>Town</name><Style id="s"/>
<Folder><name>Roads</name><Folder><name>Minor</name><Placemark id="p1"><name>A</name>
<styleUrl>#s</styleUrl><ExtendedData><Data name="Name"><value>own</value></Data></ExtendedData>
<LineString><coordinates>9,48 9.5,48.5</coordinates></LineString></Placemark></Folder></Folder>
<Placemark><name>B</name><TimeStamp><when>2024-01-02</when></TimeStamp>
<Polygon><outerBoundaryIs><LinearRing><coordinates>0,0 4,0 4,4 0,4 0,0</coordinates></LinearRing>
</outerBoundaryIs><innerBoundaryIs><LinearRing><coordinates>1,1 2,1 2,2 1,2 1,1</coordinates>
</LinearRing></innerBoundaryIs></Polygon></Placemark>
<Placemark><Point><coordinates>a,b</coordinates></Point></Placemark>
<NetworkLink><Link><href>http://127.0.0.1/x.kml</href></Link></NetworkLink>
</Document></kml>"""


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("<visibility>0</visibility>", ("1 marks of being hidden",)),
        ("<visibility>1</visibility>", ()),
    ],
)
async def test_hidden_features_of_kml_are_named(
    read: Reading, tmp_path: Path, text: str, left_out: tuple[str, ...]
) -> None:
    path = tmp_path / "a"
    path.write_text(
        KML.split("<Document>")[0] + f"<Document><Placemark>{text}"
        "<Point><extrude>0</extrude><coordinates>9,48</coordinates></Point></Placemark></Document></kml>"
    )
    found = await read(path)
    assert found.report.left_out == left_out and found.layer.kept == 1


async def test_folders_and_data_of_kml_become_columns(read: Reading, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(KML)
    found = await read(path)
    rows = [dict(zip([*found.names, "geom"], row, strict=True)) for row in found.rows()]
    assert rows[0]["folder"] == "Town/Roads/Minor" and rows[1]["folder"] == "Town"
    assert rows[0]["name"] == "A" and rows[0]["name_2"] == "own" and rows[0]["id"] == "p1"
    assert rows[1]["when"] == date(2024, 1, 2) and shapely.from_wkt(rows[1]["geom"]).area == 15
    assert found.report.left_out == ("1 links to other files", "2 styles")
    assert found.problems() == ["3: coordinates 'a,b' cannot be read"]
