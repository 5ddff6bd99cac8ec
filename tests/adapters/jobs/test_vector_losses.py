"""What readers of vector data are apt to lose: it is kept, or named."""

import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest
import shapely

from adapters.ports.errors import UnreadableDocument
from adapters.ports.spatial import QuestionOpen
from tests.support.jobs.vector_files import SQUARE, dbf, geojson, geopackage, shapefile
from tests.support.jobs.vector_reading import Reading
from workflows.jobs.vectors import ColumnType

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = dbf([(b"name", "C", 5, 0)], [[b"a"]])
DAMAGED = {"prj": b"PROJCS[made by hand"}
POINT = "<Point><coordinates>9,48</coordinates></Point>"


def kml(path: Path, placemark: str, document: str = "") -> Path:
    """One placemark, named "own"."""
    path.write_text(
        '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:atom="http://www.w3.org/2005/Atom">'
        f"<Document>{document}<Placemark><name>own</name>{placemark}</Placemark></Document></kml>"
    )
    return path


async def test_other_elements_of_kml_replace_nothing_and_are_named(
    read: Reading, tmp_path: Path
) -> None:
    author = "<atom:author><atom:name>Ann</atom:name></atom:author>"
    more = "<Snippet>short</Snippet><Metadata><name>x</name></Metadata>"
    found = await read(
        kml(tmp_path / "a", f"{author}{more}{POINT}", "<description>about all</description>")
    )
    (row,) = found.rows()
    assert dict(zip(found.names, row, strict=False))["name"] == "own"
    assert dict(zip(found.names, row, strict=False))["snippet"] == "short"
    assert found.report.left_out == (
        "3 other elements, such as 'Metadata', 'author', 'description'",
    )


async def test_data_of_kml_of_one_name_have_columns_of_their_own(
    read: Reading, tmp_path: Path
) -> None:
    values = "".join(f'<Data name="k"><value>{n}</value></Data>' for n in (1, 2))
    nameless = "<Data><value>3</value></Data>"
    data = f"<ExtendedData>{values}{nameless}</ExtendedData>"
    found = await read(kml(tmp_path / "a", f"{POINT}{data}"))
    (row,) = found.rows()
    assert found.names == ["folder", "name", "k", "k_2"] and row[2:4] == ("1", "2")
    assert found.noted("'k'", "twice")
    assert found.report.left_out == ("1 other elements, such as 'value'",)


async def test_values_that_a_schema_of_kml_denies_are_named(read: Reading, tmp_path: Path) -> None:
    schema = '<Schema id="s"><SimpleField type="int" name="n"/></Schema>'
    values = '<SimpleData name="n">12x</SimpleData><SimpleData name="free">1</SimpleData>'
    data = f'<ExtendedData><SchemaData schemaUrl="#s">{values}</SchemaData></ExtendedData>'
    found = await read(kml(tmp_path / "a", f"<Point><coordinates/></Point>{data}", schema))
    assert found.rows() == [(None, "own", None, "1", "POINT EMPTY")]
    assert found.problems() == ["1: '12x' is not a whole number; left empty"]


async def test_heights_of_kml_that_some_places_lack_are_kept_for_the_others(
    read: Reading, tmp_path: Path
) -> None:
    line = "<LineString><coordinates>9,48,100 9,49 9,50,300</coordinates></LineString>"
    found = await read(kml(tmp_path / "a", line))
    assert found.rows()[0][-1] == "LINESTRING Z (9 48 100, 9 49 0, 9 50 300)"
    assert found.noted("heights", "get height 0")


async def test_rings_of_kml_are_what_they_are_called(read: Reading, tmp_path: Path) -> None:
    ring = "<LinearRing><coordinates>{}</coordinates></LinearRing>"
    hole = ring.format("1,1 2,1 2,2 1,2 1,1")
    shell = ring.format("0,0 9,0 9,9 0,9 0,0")
    inner, outer = (
        f"<{n}>{r}</{n}>" for n, r in (("innerBoundaryIs", hole), ("outerBoundaryIs", shell))
    )
    found = await read(kml(tmp_path / "a", f"<Polygon>{inner}{outer}</Polygon>"))
    assert found.rows()[0][-1] == ("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))")


async def test_a_polygon_of_kml_without_one_outer_ring_is_rejected(
    read: Reading, tmp_path: Path
) -> None:
    ring = "<LinearRing><coordinates>1,1 2,1 2,2 1,1</coordinates></LinearRing>"
    outer = f"<outerBoundaryIs>{ring}</outerBoundaryIs>"
    found = await read(kml(tmp_path / "a", f"<Polygon>{outer}{outer}</Polygon>"))
    assert found.layer.rejected == 1
    assert found.problems() == ["1: its Polygon is not a geometry: a polygon has one outer ring"]


async def test_second_files_of_macos_are_no_layers(read: Reading, tmp_path: Path) -> None:
    path = shapefile(tmp_path / "a", [SQUARE], NAMES)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/._parcels.shp", b"\0\5\x16\7")
    found = await read(path)
    assert found.layer.layer == "parcels" and found.layer.kept == 1
    assert found.report.left_out == ("file '__MACOSX/._parcels.shp' is left out",)


async def test_shapefiles_of_one_name_but_for_case_are_refused(
    read: Reading, tmp_path: Path
) -> None:
    path = shapefile(tmp_path / "a", [SQUARE], NAMES, name="Parcels")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("parcels.shp", b"another")
    with pytest.raises(UnreadableDocument, match=r"'Parcels\.shp' and 'parcels\.shp'"):
        await read(path)


async def test_an_empty_prj_says_no_crs(read: Reading, tmp_path: Path) -> None:
    path = shapefile(tmp_path / "a", [SQUARE], NAMES, crs=None, more={"prj": b" \r\n"})
    with pytest.raises(QuestionOpen) as asked:
        await read(path)
    assert asked.value.parameter == "source_crs"


@pytest.mark.parametrize("given", [None, "nonsense"])
async def test_a_crs_that_cannot_be_understood_is_asked_for(
    read: Reading, tmp_path: Path, given: str | None
) -> None:
    path = shapefile(tmp_path / "a", [SQUARE], NAMES, crs=None, more=DAMAGED)
    with pytest.raises(QuestionOpen, match=f"{given or 'made by hand'}.*understood") as asked:
        await read(path, source_crs=given)
    assert asked.value.parameter == "source_crs"


async def test_a_crs_can_be_given_where_that_of_the_file_cannot_be_understood(
    read: Reading, tmp_path: Path
) -> None:
    path = shapefile(tmp_path / "a", [SQUARE], NAMES, crs=None, more=DAMAGED)
    found = await read(path, source_crs="EPSG:4326")
    assert found.rows()[0][-1].startswith("POLYGON ((9 48")
    assert found.noted("made by hand", "cannot be understood", "source_crs='EPSG:4326' is used")


@pytest.mark.parametrize(
    ("codec", "given", "name", "is_noted"),
    [
        ("utf-8", None, "Köln", True),
        ("utf-8", "utf-8", "Köln", False),
        ("cp1252", None, "Köln", False),
    ],
)
async def test_utf_8_under_another_declared_encoding_is_named(
    read: Reading, tmp_path: Path, codec: str, given: str | None, name: str, is_noted: bool
) -> None:
    rows = [[text.encode(codec)] for text in ("Köln", "Café", "Bonn")]
    table = dbf([(b"name", "C", 8, 0)], rows, language=0x57)
    found = await read(shapefile(tmp_path / "a", [SQUARE] * 3, table), encoding=given)
    assert found.rows()[0][0] == name
    assert found.noted("valid UTF-8", "0x57", "encoding=cp1252") is is_noted


async def test_a_number_of_a_dbf_that_is_not_finite_is_named(read: Reading, tmp_path: Path) -> None:
    values = [[b"1.5"], [b"nan"], [b"snan"], [b"1_0"]]
    path = shapefile(tmp_path / "a", [SQUARE] * 4, dbf([(b"n", "N", 18, 4)], values))
    found = await read(path)
    assert found.types["n"] is ColumnType.REAL
    assert [row[0] for row in found.rows()] == [1.5, None, None, None]
    assert found.problems() == [
        "2: 'nan' is not a number; left empty",
        "3: 'snan' is not a number; left empty",
        "4: '1_0' is not a number; left empty",
    ]


async def test_a_number_of_a_dbf_beyond_what_a_real_holds_is_named(
    read: Reading, tmp_path: Path
) -> None:
    table = dbf([(b"n", "N", 12, 0)], [[b"1E99999999"]])
    found = await read(shapefile(tmp_path / "a", [SQUARE], table))
    assert [row[0] for row in found.rows()] == [None]
    assert found.problems() == ["1: '1E99999999' is not a number; left empty"]


async def test_values_of_a_geopackage_that_its_columns_deny_are_named(
    read: Reading, tmp_path: Path
) -> None:
    columns = {"n": [1, 2], "r": [1.5, 2.5], "b": np.array([True, False]), "t": ["a", "b"]}
    moments = np.array(["2024-01-02T03:04:05"] * 2, dtype="datetime64[ms]")
    path = geopackage(tmp_path / "a.gpkg", [SQUARE] * 2, {**columns, "m": moments})
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    wrong = ("abc", "x", 7, "x\0y", "2024-13-01T00:00:00Z")
    update = "UPDATE parcels SET n = ?, r = ?, b = ?, t = ?, m = ? WHERE fid = 2"
    connection.execute(update, wrong)
    connection.commit()
    connection.close()
    found = await read(path)
    assert found.rows()[0][:4] == (1, 1.5, True, "a")
    assert found.rows()[1][:-1] == (None, None, None, "x\ufffdy", None)
    assert found.problems() == [
        "2: 'abc' is not a whole number; left empty",
        "2: 'x' is not a number; left empty",
        "2: '7' is not a boolean; left empty",
        "2: its text holds NUL, which is replaced by U+FFFD",
        "2: '2024-13-01T00:00:00Z' is not a time; left empty",
    ]


@pytest.mark.parametrize("key", ["fid", "parcel_id"])
async def test_a_key_of_a_geopackage_is_kept_or_named(
    read: Reading, tmp_path: Path, key: str
) -> None:
    path = geopackage(tmp_path / "a.gpkg", [SQUARE] * 2, {"a": [1, 2]})
    connection = sqlite3.connect(path)
    try:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        connection.execute("UPDATE parcels SET fid = fid * 100")
        if key != "fid":
            connection.execute(f"ALTER TABLE parcels RENAME COLUMN fid TO {key}")
        connection.commit()
    finally:
        connection.close()
    found = await read(path)
    if key == "fid":
        assert found.names == ["a"] and found.noted("numbered anew")
    else:
        assert found.names == [key, "a"] and not found.noted("numbered anew")
        assert [row[:2] for row in found.rows()] == [(100, 1), (200, 2)]


@pytest.mark.parametrize(
    ("given", "kept", "reason"),
    [
        ("POINT (180.0000019 1)", "POINT (180 1)", "clipped"),
        ("POINT Z (200 -90.000001 5)", "POINT Z (-160 -90 5)", "clipped"),
        ("POINT (359 1)", "POINT (-1 1)", "shifted"),
        (
            "LINESTRING (170 0, 190 0)",
            "MULTILINESTRING ((170 0, 180 0), (-180 0, -170 0))",
            "shift",
        ),
        (
            "POLYGON ((190 0, 200 0, 200 9, 190 9, 190 0))",
            "POLYGON ((-170 0, -160 0, -160 9, -170 9, -170 0))",
            "shifted",
        ),
        (
            "POLYGON ((0 -9, 360 -9, 360 9, 0 9, 0 -9))",
            "POLYGON ((-180 -9, -180 9, 180 9, 180 -9, -180 -9))",
            "shifted",
        ),
    ],
)
async def test_coordinates_beside_the_world_are_brought_into_it(
    read: Reading, tmp_path: Path, given: str, kept: str, reason: str
) -> None:
    found = await read(geojson(tmp_path / "a", [(given, {})]))
    assert shapely.from_wkt(found.rows()[0][-1]).equals(shapely.from_wkt(kept))
    assert found.layer.rejected == 0 and reason in found.problems()[0]
