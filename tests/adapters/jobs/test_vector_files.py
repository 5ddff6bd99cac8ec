"""What becomes of vector data when they are read: kept, named, asked for, or refused."""

import struct
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from adapters.ports.spatial import QuestionOpen
from tests.support.jobs.vector_files import (
    BOW_TIE,
    SQUARE,
    dbf,
    geojson,
    geopackage,
    set_blob,
    shapefile,
)
from tests.support.jobs.vector_reading import Reading
from workflows.jobs.vectors import ColumnType, GeometryType

pytestmark = pytest.mark.asyncio(loop_scope="module")

POINT = "POINT (9 48)"


# Shapefiles


async def test_a_shapefile_is_read_as_it_is(read: Reading, tmp_path: Path) -> None:
    fields = [(b"NAME", "C", 10, 0), (b"N", "N", 9, 0), (b"R", "N", 9, 3), (b"L", "L", 1, 0)]
    table = dbf(
        [*fields, (b"D", "D", 8, 0)],
        [[b"Stra\xdfe", b"7", b"1.250", b"T", b"20240229"], [b"", b"", b"", b"?", b"00000000"]],
        language=0x57,
    )
    found = await read(shapefile(tmp_path / "a.zip", [SQUARE, None], table))
    assert found.rows() == [
        ("Straße", 7, 1.25, True, date(2024, 2, 29), SQUARE),
        (None, None, None, None, None, None),
    ]
    assert found.layer.encoding == "cp1252 (language byte 0x57)"
    assert found.layer.null_geometries == 1 and found.noted("1 features have no geometry")


@pytest.mark.parametrize(
    ("text", "language", "more", "expected"),
    [
        ("Straße".encode(), 0x57, {"cpg": b"UTF-8\n"}, "utf-8 (.cpg)"),
        ("Straße".encode("cp850"), 0, {"cst": b"850"}, "cp850 (.cst)"),
        ("Straße".encode("cp1252"), 0x03, {}, "cp1252 (language byte 0x03)"),
        ("Straße".encode("latin-1"), 0, {"cpg": b"ISO 88591"}, "iso8859-1 (.cpg)"),
        (b"Strasse", 0, {}, "ascii (nothing says one"),
    ],
)
async def test_the_encoding_is_what_the_file_says(
    read: Reading, tmp_path: Path, text: bytes, language: int, more: Any, expected: str
) -> None:
    table = dbf([(b"NAME", "C", 10, 0)], [[text]], language)
    found = await read(shapefile(tmp_path / "a.zip", [POINT], table, more=more))
    assert found.rows()[0][0] in ("Straße", "Strasse")
    assert found.layer.encoding is not None and found.layer.encoding.startswith(expected)


@pytest.mark.parametrize(("width", "decimals"), [(10, 3), (44, 1)])
async def test_decimals_of_a_text_are_part_of_its_width_or_nothing(
    read: Reading, tmp_path: Path, width: int, decimals: int
) -> None:
    length = 10 if width == 10 else 300
    table = bytearray(dbf([(b"NAME", "C", width, decimals)], [[b"x".ljust(length)]]))
    table[10:12] = (1 + length).to_bytes(2, "little")
    found = await read(shapefile(tmp_path / "a", [POINT], bytes(table)))
    assert found.rows() == [("x", POINT)]


async def test_an_encoding_that_nothing_says_is_asked_for(read: Reading, tmp_path: Path) -> None:
    table = dbf([(b"NAME", "C", 10, 0)], [[b"plain"], ["Straße".encode("cp1252")]])
    path = shapefile(tmp_path / "a.zip", [POINT, POINT], table)
    with pytest.raises(QuestionOpen, match=r"'NAME' of row 2 .*cp1252: 'Straße'") as caught:
        await read(path)
    assert caught.value.parameter == "encoding"


async def test_an_invalid_byte_names_its_row_and_field(read: Reading, tmp_path: Path) -> None:
    table = dbf([(b"NAME", "C", 10, 0)], [[b"good"], [b"b\xfcd"]])
    path = shapefile(tmp_path / "a.zip", [POINT, POINT], table, more={"cpg": b"UTF-8"})
    found = await read(path)
    assert found.layer.rejected == 1 and [row[0] for row in found.rows()] == ["good"]
    (problem,) = found.layer.problems
    assert (problem.feature, problem.field) == (2, "NAME")
    assert problem.reason == "byte 0xfc at place 2 is not valid in utf-8"


async def test_a_character_that_the_width_has_cut_is_named(read: Reading, tmp_path: Path) -> None:
    table = dbf([(b"NAME", "C", 3, 0)], [["abß".encode()[:3]]])
    path = shapefile(tmp_path / "a.zip", [POINT], table, more={"cpg": b"UTF-8"})
    found = await read(path)
    assert found.rows()[0][0] == "ab" and found.noted("end within a character")


async def test_names_that_are_cut_or_double_are_distinguished(
    read: Reading, tmp_path: Path
) -> None:
    fields = [(b"POPULATION", "C", 1, 0), (b"name", "C", 1, 0), (b"NAME", "C", 1, 0)]
    table = dbf([*fields, (b"fid", "C", 1, 0)], [[b"1", b"2", b"3", b"4"]])
    found = await read(shapefile(tmp_path / "a.zip", [POINT], table))
    assert found.names == ["population", "name", "name_2", "fid_2"]
    assert found.noted("'POPULATION'", "it may be cut")
    assert found.noted("field 'NAME' is there twice", "'name_2'")
    assert [column.source for column in found.layer.table.columns][2] == "NAME"


async def test_numbers_keep_every_digit(read: Reading, tmp_path: Path) -> None:
    fields = [(b"BIG", "N", 19, 0), (b"HUGE", "N", 22, 0), (b"EXACT", "N", 24, 9)]
    rows = [[b"9007199254740993", b"9223372036854775808", b"12345678901234.123456789"]]
    rows.append([b"*" * 19, b"1", b"1.5"])
    found = await read(shapefile(tmp_path / "a.zip", [POINT] * 2, dbf(fields, rows)))
    assert found.types == {
        "big": ColumnType.INTEGER,
        "huge": ColumnType.TEXT,
        "exact": ColumnType.TEXT,
    }
    assert [row[:3] for row in found.rows()] == [
        (9007199254740993, "9223372036854775808", "12345678901234.123456789"),
        (None, "1", "1.5"),
    ]
    assert found.noted("'BIG'", "asterisks") and found.noted("'EXACT'", "kept as text")


async def test_values_of_another_type_are_named_and_left_empty(
    read: Reading, tmp_path: Path
) -> None:
    fields = [(b"N", "N", 5, 0), (b"D", "D", 8, 0), (b"L", "L", 1, 0), (b"M", "M", 10, 0)]
    table = dbf(fields, [[b"12x", b"20240230", b"7", b"1"]])
    found = await read(shapefile(tmp_path / "a.zip", [POINT], table))
    assert found.rows() == [(None, None, None, POINT)]
    assert found.problems() == [
        "1: '12x' is not a number; left empty",
        "1: '20240230' is not a date; left empty",
        "1: '7' is not a logical value; left empty",
    ]
    assert found.noted("'M'", "left out")


async def test_deleted_rows_and_missing_parts_are_named(read: Reading, tmp_path: Path) -> None:
    table = dbf([(b"A", "C", 1, 0)], [[b"1"], [b"2"], [b"3"]], deleted=[1])
    path = shapefile(tmp_path / "a.zip", [POINT] * 3, table, more={"lyr": b"?"}, without=["shx"])
    found = await read(path)
    assert [row[0] for row in found.rows()] == ["1", "3"]
    assert found.noted("1 features are marked as deleted") and found.noted(".shx is missing")
    assert found.report.left_out == ("file 'parcels.lyr' is left out",)


async def test_all_shapefiles_of_an_archive_are_layers(read: Reading, tmp_path: Path) -> None:
    path = shapefile(tmp_path / "a.zip", [POINT], name="one/Wege")
    (tmp_path / "a.zip-parts").rename(tmp_path / "first")
    shapefile(path, [SQUARE], name="two/Flächen")
    found = await read(path)
    assert [each.layer for each in found.report.layers] == ["Wege", "Flächen"]
    assert [each.table.name for each in found.report.layers] == ["test_wege", "test_flächen"]
    assert found.report.layers[0].notes[0] == "there is no .dbf: features have no attributes"


async def test_a_missing_crs_is_asked_for_and_taken(read: Reading, tmp_path: Path) -> None:
    path = shapefile(tmp_path / "a.zip", ["POINT (500000 5400000)"], crs=None)
    copy = path.read_bytes()
    with pytest.raises(QuestionOpen, match="500000") as caught:
        await read(path)
    assert caught.value.parameter == "source_crs"

    def again() -> Path:
        for name in ("in", "out"):
            (tmp_path / name).rename(tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}")
        path.write_bytes(copy)
        return path

    with pytest.raises(QuestionOpen, match="99999") as caught:
        await read(again(), source_crs="EPSG:99999")
    assert caught.value.parameter == "source_crs"
    found = await read(again(), source_crs="EPSG:32632")
    assert found.layer.projection.source.startswith("EPSG:32632")
    assert found.rows()[0][0].startswith("POINT (9 48.7")


# GeoPackages


async def test_layers_beyond_the_first_are_read_and_others_named(
    read: Reading, tmp_path: Path
) -> None:
    path = geopackage(tmp_path / "a.gpkg", [SQUARE], {"n": [1]}, layer="one")
    geopackage(path, [POINT], {"n": [2]}, layer="two", crs="EPSG:4258")
    geopackage(path, [POINT], layer="three")
    found = await read(path, layers=("two", "one"))
    assert [each.layer for each in found.report.layers] == ["two", "one"]
    assert found.rows(1) == [(1, SQUARE)]
    assert found.report.left_out == ("layer 'three' was not asked for",)
    first = found.report.layers[0].projection
    assert first.operation is not None and "ETRS89 to WGS 84" in first.operation
    assert first.accuracy == 1.0


async def test_dates_and_times_are_kept(read: Reading, tmp_path: Path) -> None:
    moments = np.array(["2024-01-02T03:04:05.678", "NaT"], dtype="datetime64[ms]")
    days = np.array(["2024-02-29", "NaT"], dtype="datetime64[D]")
    found = await read(
        geopackage(tmp_path / "a.gpkg", [POINT] * 2, {"moment": moments, "day": days})
    )
    assert found.types["day"] is ColumnType.DATE
    first, second = found.rows()
    assert first[0].replace(tzinfo=UTC) == datetime(2024, 1, 2, 3, 4, 5, 678000, UTC)
    assert first[1] == date(2024, 2, 29) and second[:2] == (None, None)


async def test_curves_become_lines_and_say_so(read: Reading, tmp_path: Path) -> None:
    path = geopackage(tmp_path / "a.gpkg", [POINT, "LINESTRING (0 0, 1 1)"])
    set_blob(path, 2, 4326, struct.pack("<BII6d", 1, 8, 3, 0, 0, 1, 1, 2, 0))
    found = await read(path)
    assert found.noted("arcs of 1 curved geometries")
    assert found.rows()[1][0].startswith("LINESTRING (0 0, 0.0")


async def test_a_geometry_in_another_srs_is_rejected(read: Reading, tmp_path: Path) -> None:
    path = geopackage(tmp_path / "a.gpkg", [POINT, POINT])
    set_blob(path, 2, 3857, shapely.to_wkb(shapely.from_wkt(POINT)))
    found = await read(path)
    assert found.problems() == ["2: its geometry is in the SRS 3857, unlike its layer"]
    assert len(found.rows()) == 1


async def test_damaged_geometries_are_rejected_and_open_rings_closed(
    read: Reading, tmp_path: Path
) -> None:
    path = geopackage(tmp_path / "a.gpkg", [POINT] * 3)
    ring = struct.pack("<BIII8d", 1, 3, 1, 4, 0, 0, 0, 1, 1, 1, 1, 0)
    set_blob(path, 2, 4326, ring)
    set_blob(path, 3, 4326, ring[:-5])
    found = await read(path)
    assert found.rows()[1] == ("POLYGON ((0 0, 0 1, 1 1, 1 0, 0 0))",)
    assert found.problems()[0] == "2: its ring was open and was closed"
    assert found.layer.rejected == len(found.problems()) - 1


async def test_heights_are_kept_and_measures_named(read: Reading, tmp_path: Path) -> None:
    path = geopackage(tmp_path / "a.gpkg", [POINT] * 3, geometry_type="Unknown")
    set_blob(path, 1, 4326, struct.pack("<BI4d", 1, 3001, 9, 48, 7, 5))
    set_blob(path, 2, 4326, struct.pack("<BI3d", 1, 1001, 9, 48, 8))
    found = await read(path)
    assert [row[0] for row in found.rows()] == ["POINT Z (9 48 7)", "POINT Z (9 48 8)", POINT]
    assert found.layer.table.has_z
    assert found.noted("M values of 1 geometries") and found.noted("the others get height 0")


# Geometries


async def test_repairs_are_reported_and_large_ones_rejected(read: Reading, tmp_path: Path) -> None:
    partly = "MULTIPOLYGON (((0 0, 0 4, 4 4, 4 0, 0 0)), ((5 5, 6 6, 7 7, 5 5)))"
    flat = "POLYGON ((0 0, 1 1, 2 2, 0 0))"
    path = geojson(tmp_path / "a", [(partly, {}), (BOW_TIE, {}), (flat, {})])
    found = await read(path)
    assert found.layer.repaired == 1 and found.layer.rejected == 2
    assert found.layer.area_change == 0 and found.layer.collapsed_parts == 1
    assert "a repair changed its area by 0.00% and 1 parts collapsed" in found.problems()[0]
    assert "a repair changes its area by 100.0%" in found.problems()[1]
    assert "nothing is left when repaired" in found.problems()[2]


async def test_a_large_repair_is_kept_where_it_may_be(read: Reading, tmp_path: Path) -> None:
    found = await read(geojson(tmp_path / "a", [(BOW_TIE, {})]), max_area_change=1)
    assert found.layer.table.geometry is GeometryType.MULTI_POLYGON
    assert found.layer.area_change == 1 and found.layer.repaired == 1


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([SQUARE, f"MULTIPOLYGON ({SQUARE[8:]})"], GeometryType.MULTI_POLYGON),
        (["POINT (1 1)", "POINT (2 2)"], GeometryType.POINT),
        (["POINT (1 1)", SQUARE], GeometryType.GEOMETRY),
    ],
)
async def test_mixed_types_become_multiple_ones(
    read: Reading, tmp_path: Path, shapes: list[str], expected: GeometryType
) -> None:
    found = await read(geojson(tmp_path / "a", [(shape, {}) for shape in shapes]))
    assert found.layer.table.geometry is expected
    assert found.noted("geometries are of several types") == (expected is not GeometryType.POINT)


async def test_null_and_empty_geometries_are_kept_and_named(read: Reading, tmp_path: Path) -> None:
    features = [(None, {"a": 1}), ("POLYGON EMPTY", {"a": 2}), (SQUARE, {"a": 3})]
    found = await read(geojson(tmp_path / "a", features))
    assert [row[0] for row in found.rows()] == [1, 2, 3]
    assert found.noted("1 features have no geometry") and found.noted("1 features have an empty")


async def test_what_crosses_the_antimeridian_is_cut(read: Reading, tmp_path: Path) -> None:
    # UTM zone 60 reaches beyond 180 degrees.
    across = "POLYGON ((820000 0, 820000 90000, 850000 90000, 850000 0, 820000 0))"
    path = shapefile(tmp_path / "a.zip", [across], crs="EPSG:32660")
    found = await read(path)
    assert found.problems() == ["1: it crosses the antimeridian and was cut there"]
    (row,) = found.rows()
    assert row[0].startswith("MULTIPOLYGON") and shapely.from_wkt(row[0]).area < 1


@pytest.mark.parametrize(
    ("given", "kept", "options"),
    [
        (
            "POLYGON Z ((179 1 5, -179 1 5, -179 2 5, 179 2 5, 179 1 5))",
            "MULTIPOLYGON (((179 1, 180 1, 180 2, 179 2, 179 1)),"
            " ((-180 1, -179 1, -179 2, -180 2, -180 1)))",
            {},
        ),
        (
            "POLYGON ((170 0, -170 0, -170 9, 170 9, 170 0), (-178 2, -176 2, -176 3, -178 2))",
            "MULTIPOLYGON (((170 0, 180 0, 180 9, 170 9, 170 0)), ((-180 0, -170 0, -170 9,"
            " -180 9, -180 0), (-178 2, -176 2, -176 3, -178 2)))",
            {},
        ),
        (
            "LINESTRING (170 0, -170 0)",
            "MULTILINESTRING ((170 0, 180 0), (-180 0, -170 0))",
            {},
        ),
        (
            "POLYGON ((-170 70, 70 70, 170 70, 170 80, -170 80, -170 70))",
            "POLYGON ((-170 70, 70 70, 170 70, 170 80, -170 80, -170 70))",
            {"antimeridian": "keep"},
        ),
        (
            "POLYGON ((-180 -9, 180 -9, 180 9, -180 9, -180 -9))",
            "POLYGON ((-180 -9, 180 -9, 180 9, -180 9, -180 -9))",
            {},
        ),
    ],
)
async def test_long_edges_in_degrees_are_cut_at_the_antimeridian(
    read: Reading, tmp_path: Path, given: str, kept: str, options: Any
) -> None:
    found = await read(geojson(tmp_path / "a", [(given, {})]), **options)
    assert shapely.from_wkt(found.rows()[0][-1]).equals(shapely.from_wkt(kept))
    assert len(found.problems()) == (given != kept)
    assert found.layer.table.has_z == ("Z" in given) and found.layer.rejected == 0


async def test_the_whole_world_is_not_cut(read: Reading, tmp_path: Path) -> None:
    edge = 20037508.342789244
    world = shapely.box(-edge, -edge, edge, edge).wkt
    found = await read(shapefile(tmp_path / "a.zip", [world], crs="EPSG:3857"))
    assert found.problems() == [] and found.layer.extent is not None
    assert found.layer.extent[2] - found.layer.extent[0] == pytest.approx(360)


async def test_coordinates_outside_of_the_world_are_rejected(read: Reading, tmp_path: Path) -> None:
    found = await read(geojson(tmp_path / "a", [("POINT (500000 5400000)", {}), (POINT, {})]))
    assert found.layer.rejected == 1 and "is its CRS right?" in found.problems()[0]
