"""Hostile and damaged vector data: refused in words, nothing outside read or written."""

import sqlite3
import struct
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.files import sqlite_files
from adapters.files.forks import Bounds
from adapters.files.vectors.reader import VectorFiles
from adapters.ports.errors import UnreadableDocument
from tests.support.jobs.vector_files import (
    SQUARE,
    dbf,
    geojson,
    geopackage,
    make_endless,
    shapefile,
)
from workflows.jobs.vectors import VectorOptions

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPTIONS = VectorOptions(dataset="test")
POINT = "POINT (9 48)"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def files() -> AsyncGenerator[VectorFiles]:
    async with VectorFiles(Bounds(memory_bytes=2 << 30, cpu_seconds=20, seconds=60)) as found:
        yield found


async def refusal(files: VectorFiles, path: Path, folder: Path) -> str:
    """What is said of a file that is refused."""
    out = folder / "out"
    out.mkdir()
    with pytest.raises(UnreadableDocument) as caught:
        await files.read(path, out, OPTIONS)
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["../../evil.shp", "/tmp/evil.shp", "a\\..\\evil.shp", "C:evil.shp"]
)
async def test_an_archive_that_leads_out_is_not_unpacked(
    files: VectorFiles, tmp_path: Path, name: str
) -> None:
    path = shapefile(tmp_path / "a.zip", [POINT])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"evil")
    said = await refusal(files, path, tmp_path)
    assert "leads out of it; nothing was unpacked" in said
    assert not list(tmp_path.rglob("evil*")) and not list((tmp_path / "out/unpacked").iterdir())


async def test_a_zip_bomb_is_not_unpacked(files: VectorFiles, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.shp", bytes(200 << 20))
    assert "only a zip bomb does" in await refusal(files, path, tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "none of those that are read"),
        (b"II*\0", "none of those that are read"),
        (b"\0\0\x27\x0a" + bytes(96), "zip it with its .shx"),
        (b"SQLite format 3\0" + bytes(100), "the GeoPackage is damaged"),
        (b'{"type": "Topology"}', "damaged, or no TopoJSON"),
        (b'{"type": "FeatureCollection", "features": [{"type"', "damaged or cut off"),
        (b'{"a": ' * 100_000, "damaged or cut off"),
        (b'{"type": "FeatureCollection", "features": []} {}', "more follows after the end"),
        (b'{"type": "Feature", "geometry": null}\n{"type": "Feat', "damaged or cut off"),
        (
            b'{"type": "Feature", "geometry": null}\n[1]',
            "record 2 of the sequence is not a feature",
        ),
        (b"<html/>", "no KML"),
        (b"<kml><Document>", "damaged or cut off"),
        (b'<!DOCTYPE k [<!ENTITY a SYSTEM "file:///etc/passwd">]><kml>&a;</kml>', "document type"),
        (b"<kml>" + b"<Folder>" * 100 + b"</kml>", "nests XML elements"),
        (b"<OGRVRTDataSource><OGRVRTLayer/></OGRVRTDataSource>", "no KML"),
    ],
)
async def test_what_is_no_vector_data_is_refused_in_words(
    files: VectorFiles, tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert words in await refusal(files, path, tmp_path)


async def test_a_shapefile_whose_parts_differ_is_refused(
    files: VectorFiles, tmp_path: Path
) -> None:
    table = dbf([(b"A", "C", 1, 0)], [[b"1"]])
    path = shapefile(tmp_path / "a.zip", [POINT, POINT], table)
    assert "2 geometries and 1 rows" in await refusal(files, path, tmp_path)


async def test_a_table_that_claims_more_than_it_holds_is_refused(
    files: VectorFiles, tmp_path: Path
) -> None:
    table = bytearray(dbf([(b"A", "C", 1, 0)], [[b"1"]]))
    struct.pack_into("<L", table, 4, 4_000_000_000)
    path = shapefile(tmp_path / "a.zip", [POINT], bytes(table))
    assert "cut off: it holds 1 of its 4,000,000,000" in await refusal(files, path, tmp_path)


async def test_a_view_of_another_file_gives_nothing_of_it(
    files: VectorFiles, tmp_path: Path
) -> None:
    secret = geojson(tmp_path / "secret.geojson", [(POINT, {"word": "hush"})])
    path = geopackage(tmp_path / "a.gpkg", [POINT])
    connection = sqlite3.connect(path)
    statement = f"CREATE VIRTUAL TABLE leak USING VirtualOGR(''{secret}'')"
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)"
        f" VALUES ('table', 'leak', 'leak', 0, '{statement}')"
    )
    connection.execute(
        "INSERT INTO gpkg_contents (table_name, data_type) VALUES ('leak', 'attributes')"
    )
    connection.commit()
    connection.close()
    out = tmp_path / "out"
    out.mkdir()
    try:
        report = await files.read(path, out, OPTIONS)
    except UnreadableDocument:
        return
    assert "hush" not in report.model_dump_json()
    assert all(b"hush" not in each.read_bytes() for each in out.iterdir() if each.is_file())


async def test_a_file_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    path = geojson(tmp_path / "a", [(SQUARE, {"n": number}) for number in range(30_000)])
    (tmp_path / "out").mkdir()
    async with VectorFiles(Bounds(cpu_seconds=1, memory_bytes=96 << 20)) as files:
        with pytest.raises(UnreadableDocument, match=r"signal 6|memory|processor time"):
            await files.read(path, tmp_path / "out", OPTIONS)


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ("gpkg_contents", "gpkg_contents of the GeoPackage is a view"),
        ("gpkg_geometry_columns", "gpkg_geometry_columns of the GeoPackage is a view"),
    ],
)
async def test_a_table_that_is_an_endless_view_is_not_asked(
    files: VectorFiles, tmp_path: Path, replaced: str, said: str
) -> None:
    path = geopackage(tmp_path / "a.gpkg", [POINT])
    make_endless(path, replaced)
    assert said in await refusal(files, path, tmp_path)


async def test_queries_of_a_file_that_take_too_long_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_files, "_SECONDS", 0.1)
    path = tmp_path / "a.gpkg"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (i)")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with (
        pytest.raises(UnreadableDocument, match=r"takes more than 0\.1 s to look through"),
        sqlite_files.opened_sqlite(path, "GeoPackage") as connection,
    ):
        connection.execute(endless).fetchone()
