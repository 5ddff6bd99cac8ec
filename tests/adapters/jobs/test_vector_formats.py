"""Formats that GDAL's one reader takes: what each of them gives."""

import asyncio
import json
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.files import gdal
from adapters.ports.errors import UnreadableDocument
from adapters.ports.spatial import QuestionOpen
from tests.support.jobs.vector_formats import (
    ARC,
    COLUMNS,
    ESRI,
    FEATURE,
    GML,
    GPX,
    LATER,
    PLACE,
    POINT,
    TOPOLOGY,
    VALUES,
    by_gdal,
    geo,
    gzipped,
    parquet,
    text,
    zipped,
)
from tests.support.jobs.vector_reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

GIVEN: Final = {"source_crs": "EPSG:4326"}
UTM: Final = {"source_crs": "EPSG:32632"}
DRIVERS: Final = {
    *("GPX", "GML", "DXF", "FlatGeobuf", "MapInfo File", "OpenFileGDB", "TopoJSON"),
    *("ESRIJSON", "GPKG", "ESRI Shapefile", "MEM"),
}


@pytest.mark.parametrize(
    ("write", "format", "columns", "row", "options"),
    [
        (by_gdal("FlatGeobuf", "fgb", **COLUMNS), "FlatGeobuf", COLUMNS, (*LATER, POINT), {}),
        (by_gdal("MapInfo File", "tab", **COLUMNS), "MapInfo", COLUMNS, (*VALUES, POINT), {}),
        (by_gdal("MapInfo File", "mif", **COLUMNS), "MapInfo", COLUMNS, (*VALUES, POINT), {}),
        (
            by_gdal("OpenFileGDB", "gdb", **COLUMNS),
            "file geodatabase",
            COLUMNS,
            (*VALUES, POINT),
            {},
        ),
        (by_gdal("DXF", "dxf"), "DXF", ["Layer"], ("0", POINT), GIVEN),
        (
            text(GML.format(encoding="UTF-8", shape=PLACE, more="")),
            "GML",
            ["zip", "n", "name"],
            ("01234", 7, "Zürich", POINT),
            {},
        ),
        (
            text(GML.format(encoding="windows-1252", shape=PLACE, more=""), "cp1252"),
            "GML",
            ["name"],
            ("Zürich", POINT),
            {},
        ),
        (
            text(GML.format(encoding="UTF-8", shape=ARC, more="")),
            "GML",
            ["n"],
            (7, "LINESTRING (0 0, 0.0"),
            {},
        ),
        (text(GPX), "GPX", ["name"], ("T", "MULTILINESTRING Z ((9 48 100, 9 49 0))"), {}),
        (text(json.dumps(TOPOLOGY)), "TopoJSON", ["n"], (1, "LINESTRING (9 48, 10 49)"), GIVEN),
        (text(json.dumps(ESRI)), "Esri JSON", ["n"], (1, POINT), {}),
        (text(FEATURE, "utf-16"), "GeoJSON", ["n"], (1, None), {}),
        (
            text(FEATURE.replace('"n"', '"ü"'), "cp1252"),
            "GeoJSON",
            ["ü"],
            (1, None),
            {"encoding": "1252"},
        ),
        (gzipped(f"{FEATURE}\n{FEATURE}"), "GeoJSON", ["n"], (1, None), {}),
        (zipped("a/x.geojson", FEATURE), "GeoJSON", ["n"], (1, None), {}),
        (
            zipped("doc.kml", "<kml><Placemark><name>a</name></Placemark></kml>"),
            "KMZ",
            ["name"],
            ("a", None),
            {},
        ),
        (parquet(geo()), "GeoParquet", ["n"], (7, POINT), {}),
        (parquet(geo(crs=None)), "GeoParquet", ["n"], (7, POINT), GIVEN),
        (
            text("id,zip,start,Longitude,Latitude\n1,01234,2024-01-02,9,48\n"),
            "CSV",
            ["id", "zip", "start"],
            (1, "01234", date(2024, 1, 2), POINT),
            {},
        ),
        (text("name;lon;lat\na;9,5;48,25\n"), "CSV", ["name"], ("a", "POINT (9.5 48.25)"), {}),
        (text("x;y\n500000,5;5400000,25\n"), "CSV", ["x"], ("500000,5", "POINT (9.0"), UTM),
        (text('n,wkt\n1,"POINT (9 48)"\n'), "CSV", ["n"], (1, POINT), GIVEN),
    ],
)
async def test_each_format_gives_its_values(
    read: Reading,
    tmp_path: Path,
    write: Callable[[Path], Path],
    format: str,
    columns: Sequence[str],
    row: Sequence[Any],
    options: Mapping[str, Any],
) -> None:
    found = await read(write(tmp_path), **options)
    assert found.report.format == format
    sources = [each.source for each in found.report.layers[0].table.columns]
    first = found.rows()[0]
    assert tuple(first[sources.index(name)] for name in columns) == tuple(row[:-1])
    assert first[-1] == row[-1] or str(first[-1]).startswith(f"{row[-1]}")
    assert all(layer.rejected == 0 for layer in found.report.layers)


TWO: Final = (
    '<gml:featureMember><o:x gml:id="b"><o:g><gml:Point srsName="EPSG:25832"><gml:pos>1 2</gml:pos>'
    "</gml:Point></o:g></o:x></gml:featureMember>"
)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (
            text(GML.format(encoding="UTF-8", shape=PLACE.replace("48 9", "a b"), more="")),
            "a position of the GML file, 'a b' in line 1, is no number",
        ),
        (text(GML.format(encoding="UTF-8", shape=PLACE, more=TWO)), "several coordinate reference"),
        (text("a,b\n1,2\n"), "no column says where a row lies"),
        (text("a_lon,a_lat,b_lon,b_lat\n1,2,3,4\n"), "several columns can be the place"),
        (text("!table\n!version 300\n"), "zip all files of its name"),
        (parquet({}), "the metadata of the GeoParquet file are damaged"),
        (parquet(geo(encoding="point")), "save them as WKB"),
        (
            text(json.dumps(ESRI).replace('{"n": 1}', '{"n": "bad"}')),
            "feature 1: 'bad' is not a whole number of 32 bits, as field 'n' has to be",
        ),
        (text(json.dumps(ESRI).replace('"x": 9', '"curveRings": []')), "has arcs"),
        (text(json.dumps(ESRI).replace('"x": 9', '"x": "NaN"')), "its x and y are not two numbers"),
        (text(json.dumps(ESRI).replace('{"n": 1}', '{"m": 1}')), "does not list field 'm'"),
        (text(json.dumps(ESRI).replace('{"n": 1}', '{"n": 2.5}')), "2.5 is not a whole number"),
        (
            text(
                json.dumps(ESRI).replace("TypeInteger", "TypeDate").replace('{"n": 1', '{"n": "x"')
            ),
            "'x' is not a time in milliseconds",
        ),
        (text(json.dumps(TOPOLOGY).replace("[9, 48]", "[9, 48, 5]")), "arc 0 .* not two numbers"),
        (text(json.dumps(TOPOLOGY).replace('"arcs": [0]', '"arcs": [7]')), "names an arc that"),
        (text(GPX.replace('lat="48"', 'lat="48,5"')), "no latitude or longitude in numbers"),
        (text(GPX.replace(' lon="9"', "", 1)), "no latitude or longitude in numbers"),
        (
            text(
                GML.format(
                    encoding="UTF-8",
                    shape=PLACE.replace("4326", "4978").replace("48 9", "4000000 300000 4900000"),
                    more="",
                )
            ),
            "distances from the centre of the Earth",
        ),
        (text("<?a?>" + " <?b?>" * 28 + "text"), "XML, but no KML, GML or GPX"),
        (text("PAR1 and more"), "damaged or cut off"),
        (text("fgb\x03 and more"), "no layer with geometries"),
        (text("  0\nSECTION\n  2\nENTITIES\n  0\n"), "cut off: its end mark is missing"),
        (gzipped(GPX[:40]), "damaged"),
    ],
)
async def test_what_cannot_be_read_is_refused_in_words(
    read: Reading, tmp_path: Path, write: Callable[[Path], Path], said: str
) -> None:
    with pytest.raises(UnreadableDocument, match=said):
        await read(write(tmp_path))


MIF: Final = (
    'Version 300\nDelimiter ","\nCoordSys Earth Projection 1, 104\nColumns 4\n  n Integer\n'
    "  d Decimal(8,2)\n  day Date\n  ok Logical\nData\n\n"
)


@pytest.mark.parametrize(
    ("shape", "row", "said"),
    [
        ("Point 9 48", "12,1.5,20260228,T", None),
        ("Pline 2\n9 48\n9.5 -48e0", ",,,", None),
        ("Point 9 48", "12x,1.5,20260228,T", "row 1: '12x' is no integer, as column 'n' has to be"),
        ("Point 9 48", "12,xx,20260228,T", "'xx' is no decimal"),
        ("Point 9 48", "12,1.5,02.03.2026,T", "'02.03.2026' is no date"),
        ("Point 9 48", "12,1.5,20260228,Q", "'Q' is no logical"),
        ("Point abc 52", ",,,", "'Point abc 52' in line 11 is no position"),
        ("Pline 2\n9 48\n9,5 48", ",,,", "'9,5 48' in line 13 is no position"),
    ],
)
async def test_texts_of_mif_are_what_they_have_to_be(
    read: Reading, tmp_path: Path, shape: str, row: str, said: str | None
) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.mif", f"{MIF}{shape}\n")
        archive.writestr("x.mid", f"{row}\n")
    if said is None:
        assert (await read(tmp_path / "x.zip")).report.layers[0].kept == 1
    else:
        with pytest.raises(UnreadableDocument, match=said):
            await read(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("driver", "suffix", "cut"),
    [
        ("FlatGeobuf", "fgb", "fgb"),
        ("GML", "gml", "gml"),
        ("DXF", "dxf", "dxf"),
        *(("MapInfo File", "tab", part) for part in ("map", "dat", "id")),
        *(("MapInfo File", "mif", part) for part in ("mif", "mid")),
        *(("OpenFileGDB", "gdb", f"a00000009.{part}") for part in ("gdbtable", "gdbtablx")),
        *(("ESRI Shapefile", "shp", part) for part in ("shp", "shx", "dbf")),
    ],
)
async def test_a_file_that_was_cut_off_is_refused(
    read: Reading, tmp_path: Path, driver: str, suffix: str, cut: str
) -> None:
    columns = {} if driver == "DXF" else {"n": 1}
    write = by_gdal(driver, suffix, count=300, cut=cut, **columns)
    with pytest.raises(UnreadableDocument, match=r"cut off|damaged|lacks"):
        await read(write(tmp_path), source_crs="EPSG:4326")


@pytest.mark.parametrize(
    ("write", "parameter"),
    [
        (text(GML.format(encoding="UTF-8", shape=PLACE, more=""), "cp1252"), "encoding"),
        (text(FEATURE.replace('"n"', '"ü"'), "cp1252"), "encoding"),
        (text(json.dumps(TOPOLOGY)), "source_crs"),
        (text("x,y\n1,2\n"), "source_crs"),
        (by_gdal("DXF", "dxf"), "source_crs"),
    ],
)
async def test_what_a_file_does_not_say_is_asked(
    read: Reading, tmp_path: Path, write: Callable[[Path], Path], parameter: str
) -> None:
    with pytest.raises(QuestionOpen) as caught:
        await read(write(tmp_path))
    assert caught.value.parameter == parameter


ENTITY: Final = "  0\nIMAGE\n  8\n0\n 10\n9\n 20\n48\n  0\nENDSEC\n  0\nEOF\n"
EXTENSION: Final = "<extensions><hr>98</hr></extensions></trkpt>"


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (
            text(f"  0\nSECTION\n  2\nENTITIES\n  0\nPOINT\n 10\n9\n 20\n48\n{ENTITY}"),
            "1 entities of the kind IMAGE are left out",
        ),
        (text(GPX.replace("</trkpt>", EXTENSION)), "extensions of 1 elements are left out"),
        (text(GPX), "1 points have no height (ele), and get 0"),
        (text(GPX), "layer 'routes' has no features"),
    ],
)
async def test_what_gdal_passes_over_is_reported(
    read: Reading, tmp_path: Path, write: Callable[[Path], Path], said: str
) -> None:
    found = await read(write(tmp_path), **GIVEN)
    assert said in found.report.left_out
    assert found.report.layers[0].kept == 1


async def test_rows_without_a_place_are_rejected_with_their_lines(
    read: Reading, tmp_path: Path
) -> None:
    rows = ["x,y,n", '"1,250",48,1', ",,2", "9,48,3,4", "9,48,5"]
    found = await read(text("\n".join(rows))(tmp_path), **GIVEN)
    assert [row[-2:] for row in found.rows()] == [(2, None), (5, POINT)]
    assert found.problems() == [
        "1: line 2: '1,250', '48' is no place",
        "3: line 4: it has 4 cells, and the header 3",
    ]


async def test_nothing_is_fetched_that_a_file_names(read: Reading, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"http://127.0.0.1:{server.getsockname()[1]}"
        (tmp_path / "secret.xml").write_text(PLACE.replace("48 9", "1 2"))
        shape = (
            f'{PLACE}<gml:ref xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'xlink:href="{host}/a.gml"/>'
            f'<gml:pointProperty xlink:href="{tmp_path}/secret.xml"/>'
        )
        content = GML.format(encoding="UTF-8", shape=shape, more="").replace(
            "<gml:FeatureCollection ",
            '<gml:FeatureCollection xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            f'xsi:schemaLocation="http://o {host}/a.xsd" ',
        )
        found = await read(text(content)(tmp_path))
        assert found.rows()[0][-1] == POINT
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_no_driver_but_those_of_our_formats_is_there() -> None:
    ask = "import json, pyogrio; print(json.dumps(sorted(pyogrio.list_drivers())))"
    found = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", ask],
        env=dict(gdal.VECTORS),
        capture_output=True,
        check=True,
    )
    assert set(json.loads(found.stdout)) == DRIVERS
