"""What tables of features promise, in PostGIS and in GeoPackages."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import asyncpg
import pyogrio
import pyogrio.raw
import pytest
import shapely

from activities.jobs.geopackages import GeoPackageFeatures
from activities.jobs.ports import Features
from activities.jobs.postgis import PostgisFeatures
from adapters.database.engine import open_database
from adapters.ports.errors import BlobNotFound, Unavailable, UnreadableDocument
from tests.support.jobs.vectors import load_of, table_of
from tests.support.memory.blobs import MemoryBlobs
from workflows.jobs.vectors import ColumnType, GeometryType, LoadMode
from workflows.shared.errors import RuleViolation

SQUARE = "POLYGON ((0 0, 0 1, 1 1, 1 0, 0 0))"
OTHER = "POLYGON ((5 5, 5 6, 6 6, 6 5, 5 5))"
PARCELS = table_of(code=ColumnType.TEXT, number=ColumnType.INTEGER)


@pytest.fixture(params=["geopackage", pytest.param("postgis", marks=pytest.mark.postgis)])
def store_url(request: pytest.FixtureRequest) -> str | None:
    """URL of a database with PostGIS; None: the store is GeoPackages."""
    return request.getfixturevalue("postgis_url") if request.param == "postgis" else None


@pytest.fixture
async def features(store_url: str | None, tmp_path: Path) -> AsyncGenerator[Features]:
    """Each of the stores, empty."""
    if store_url is None:
        yield GeoPackageFeatures(MemoryBlobs(), tmp_path)
        return
    async with open_database(store_url) as database:
        yield PostgisFeatures(database)


async def rows_of(features: Features, name: str = "parcels") -> list[tuple[Any, ...]]:
    """All rows, with geometries as text."""
    return [
        (*row[1:-1], None if row[-1] is None else shapely.from_wkb(row[-1]).wkt)
        async for some in features.rows(name)
        for row in some
    ]


async def test_every_type_comes_back_as_it_went_in(features: Features, tmp_path: Path) -> None:
    table = table_of(**{kind.value: kind for kind in ColumnType})
    row = (
        "Größe\n",
        (1 << 63) - 1,
        0.1,
        True,
        date(2024, 2, 29),
        time(23, 59, 59, 5),
        datetime(2024, 1, 2, 3, 4, 5, 6),
        datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
        b"\0\xff",
        SQUARE,
    )
    nothing = (*[None] * 9, None)
    done = await features.load(load_of(tmp_path, table, [row, nothing]))
    assert (done.inserted, done.updated, done.total) == (2, 0, 2)
    assert await rows_of(features) == [row, nothing]
    stored = await features.table("parcels")
    assert stored is not None and (stored.table, stored.rows) == (table, 2)
    assert stored.extent == (0, 0, 1, 1)


async def test_the_extent_has_every_digit(features: Features, tmp_path: Path) -> None:
    places = [(0.1, 50.7), (0.10000000001, 50.70000000001), (11.123456789, 47.987654321)]
    rows = [("p", at, f"POINT ({x!r} {y!r})") for at, (x, y) in enumerate(places)]
    table = table_of(geometry=GeometryType.POINT, code=ColumnType.TEXT, number=ColumnType.INTEGER)
    await features.load(load_of(tmp_path, table, rows))
    stored = await features.table("parcels")
    assert stored is not None
    assert stored.extent == (0.1, 47.987654321, 11.123456789, 50.70000000001)


async def test_create_refuses_a_table_that_exists(features: Features, tmp_path: Path) -> None:
    await features.load(load_of(tmp_path, PARCELS, [("a", 1, SQUARE)]))
    with pytest.raises(RuleViolation, match="exists; use mode=replace"):
        await features.load(load_of(tmp_path, PARCELS, [("b", 2, OTHER)], key="second"))
    assert await rows_of(features) == [("a", 1, SQUARE)]


async def test_a_load_is_done_once(features: Features, tmp_path: Path) -> None:
    load = load_of(tmp_path, PARCELS, [("a", 1, SQUARE)], LoadMode.APPEND)
    first = await features.load(load)
    other = load_of(tmp_path, PARCELS, [("b", 2, OTHER)], LoadMode.REPLACE, "second")
    await features.load(other)
    assert await features.load(load) == first
    assert await rows_of(features) == [("b", 2, OTHER)]


async def test_replace_may_change_the_schema(features: Features, tmp_path: Path) -> None:
    await features.load(load_of(tmp_path, PARCELS, [("a", 1, SQUARE)]))
    for number in range(2):
        table = table_of("parcels", GeometryType.POINT, name_=ColumnType.TEXT)
        load = load_of(tmp_path, table, [("x", "POINT (1 2)")], LoadMode.REPLACE, f"r{number}")
        await features.load(load)
    assert await rows_of(features) == [("x", "POINT (1 2)")]


async def test_numbers_continue_where_rows_are_added(features: Features, tmp_path: Path) -> None:
    await features.load(load_of(tmp_path, PARCELS, [("a", 1, SQUARE), ("b", 2, SQUARE)]))
    more = load_of(tmp_path, PARCELS, [("c", 3, SQUARE)], LoadMode.APPEND, "more")
    await features.load(more)
    assert [row[0] async for some in features.rows("parcels") for row in some] == [1, 2, 3]


async def test_append_promotes_and_refuses_other_schemas(
    features: Features, tmp_path: Path
) -> None:
    many = table_of("parcels", GeometryType.MULTI_POLYGON, code=ColumnType.TEXT, n=ColumnType.REAL)
    await features.load(load_of(tmp_path, many, [("a", 1.5, None)]))
    one = table_of("parcels", GeometryType.POLYGON, code=ColumnType.TEXT, n=ColumnType.INTEGER)
    done = await features.load(load_of(tmp_path, one, [("b", 2, SQUARE)], LoadMode.APPEND, "b"))
    assert (done.inserted, done.total) == (1, 2)
    assert await rows_of(features) == [
        ("a", 1.5, None),
        ("b", 2.0, "MULTIPOLYGON (((0 0, 0 1, 1 1, 1 0, 0 0)))"),
    ]
    wrong = table_of("parcels", GeometryType.POINT, code=ColumnType.DATE, new=ColumnType.TEXT)
    with pytest.raises(RuleViolation) as caught:
        await features.load(load_of(tmp_path, wrong, [], LoadMode.APPEND, "c"))
    for part in ("'code' is date and text", "column 'new'", "lacks the column 'n'", "are Point"):
        assert part in str(caught.value)


async def test_upsert_replaces_by_key(features: Features, tmp_path: Path) -> None:
    await features.load(load_of(tmp_path, PARCELS, [("a", 1, SQUARE), ("b", 2, SQUARE)]))
    rows = [("b", 20, OTHER), ("c", 30, None)]
    load = load_of(tmp_path, PARCELS, rows, LoadMode.UPSERT, "second", ["code"])
    done = await features.load(load)
    assert (done.inserted, done.updated, done.total) == (1, 1, 3)
    found = await rows_of(features)
    assert sorted(found) == [("a", 1, SQUARE), ("b", 20, OTHER), ("c", 30, None)]


@pytest.mark.parametrize(
    ("rows", "key", "message"),
    [
        ([("a", 1, SQUARE), ("a", 2, SQUARE)], ["code"], "code='a'"),
        ([(None, 1, SQUARE)], ["code"], "lack a value of the key code"),
        ([("a", 1, SQUARE)], ["nosuch"], "'nosuch' does not exist"),
        ([("a", 1, SQUARE)], [], "needs a key"),
    ],
)
async def test_a_key_that_cannot_be_used_changes_nothing(
    features: Features, tmp_path: Path, rows: Any, key: list[str], message: str
) -> None:
    await features.load(load_of(tmp_path, PARCELS, [("z", 9, SQUARE)]))
    with pytest.raises(RuleViolation, match=message):
        await features.load(load_of(tmp_path, PARCELS, rows, LoadMode.UPSERT, "second", key))
    assert await rows_of(features) == [("z", 9, SQUARE)]


async def test_a_first_upsert_makes_the_table(features: Features, tmp_path: Path) -> None:
    rows = [("a", 1, SQUARE)]
    done = await features.load(load_of(tmp_path, PARCELS, rows, LoadMode.UPSERT, "u", ["code"]))
    assert (done.inserted, done.updated) == (1, 0)


async def test_heights_are_kept_and_missing_ones_are_zero(
    features: Features, tmp_path: Path
) -> None:
    table = table_of("parcels", GeometryType.POINT, has_z=True, code=ColumnType.TEXT)
    rows = [("a", "POINT Z (1 2 3)"), ("b", "POINT (1 2)"), ("c", "POINT EMPTY")]
    await features.load(load_of(tmp_path, table, rows))
    found = await rows_of(features)
    assert found[:2] == [("a", "POINT Z (1 2 3)"), ("b", "POINT Z (1 2 0)")]
    assert "EMPTY" in found[2][1]


async def test_an_interrupted_load_leaves_nothing_half(features: Features, tmp_path: Path) -> None:
    await features.load(load_of(tmp_path, PARCELS, [("old", 0, SQUARE)]))
    rows = [(f"p{number}", number, SQUARE) for number in range(12_000)]
    load = load_of(tmp_path, PARCELS, rows, LoadMode.REPLACE, "second")
    for milliseconds in (1, 20, 60, 150):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(features.load(load), milliseconds / 1_000)
        stored = await features.table("parcels")
        assert stored is not None and stored.rows in (1, len(rows))
    assert (await features.load(load)).total == len(rows)


async def test_features_that_are_cut_off_are_refused(features: Features, tmp_path: Path) -> None:
    load = load_of(tmp_path, PARCELS, [("a", 1, SQUARE)])
    whole = load.features.read_bytes()
    load.features.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableDocument, match="cut off"):
        await features.load(load)
    assert await features.table("parcels") is None


async def test_there_are_no_rows_of_no_table(features: Features) -> None:
    assert await features.table("nosuch") is None
    with pytest.raises(RuleViolation, match="no table 'nosuch'"):
        await rows_of(features, "nosuch")


@pytest.mark.postgis
async def test_postgis_has_an_index_and_plain_types(postgis_url: str, tmp_path: Path) -> None:
    async with open_database(postgis_url) as database:
        await PostgisFeatures(database).load(load_of(tmp_path, PARCELS, [("a", 1, SQUARE)]))
    connection = await asyncpg.connect(postgis_url)
    try:
        types = await connection.fetch(
            "SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute"
            " WHERE attrelid = 'geo.parcels'::regclass AND attnum > 0"
        )
        assert {row["attname"]: row["type"] for row in types} == {
            "fid": "bigint",
            "code": "text",
            "number": "bigint",
            "geom": "geometry(Polygon,4326)",
        }
        definitions = await connection.fetch(
            "SELECT indexdef FROM pg_indexes WHERE tablename = 'parcels'"
        )
        assert any("USING gist (geom)" in row["indexdef"] for row in definitions)
    finally:
        await connection.close()


@pytest.mark.postgis
async def test_a_table_of_another_owner_is_left_alone(postgis_url: str, tmp_path: Path) -> None:
    connection = await asyncpg.connect(postgis_url)
    try:
        await connection.execute("CREATE TABLE geo.parcels (mine text)")
    finally:
        await connection.close()
    async with open_database(postgis_url) as database:
        load = load_of(tmp_path, PARCELS, [("a", 1, SQUARE)], LoadMode.REPLACE)
        with pytest.raises(RuleViolation, match="was not made by docflow"):
            await PostgisFeatures(database).load(load)


async def test_other_programs_open_the_geopackage_and_use_its_index(tmp_path: Path) -> None:
    silver = MemoryBlobs()
    features = GeoPackageFeatures(silver, tmp_path)
    rows = [("a", 1, SQUARE), ("b", 2, OTHER), ("c", 3, None)]
    done = await features.load(load_of(tmp_path, PARCELS, rows))
    path = tmp_path / "copy.gpkg"
    await silver.download(done.place, path)
    info = pyogrio.read_info(path, layer="parcels")
    assert (info["crs"], info["geometry_type"], info["features"]) == ("EPSG:4326", "Polygon", 3)
    assert info["capabilities"]["fast_spatial_filter"]
    _, _, _, fields = pyogrio.raw.read(path, layer="parcels", bbox=(4, 4, 7, 7))
    assert fields[0].tolist() == ["b"]


async def test_two_loads_of_one_geopackage_both_stay(tmp_path: Path) -> None:
    silver = MemoryBlobs()
    one, two = GeoPackageFeatures(silver, tmp_path), GeoPackageFeatures(silver, tmp_path)
    await one.load(load_of(tmp_path, PARCELS, [("a", 1, SQUARE)]))
    upload = silver.upload
    late = load_of(tmp_path, PARCELS, [("b", 2, SQUARE)], LoadMode.APPEND, "late")
    early = load_of(tmp_path, PARCELS, [("c", 3, SQUARE)], LoadMode.APPEND, "early")

    async def overtaken(source: Path, name: str, *, overwrite: bool = True) -> Any:
        silver.upload = upload
        await two.load(early)
        return await upload(source, name, overwrite=overwrite)

    silver.upload = overtaken
    await one.load(late)
    assert [row[0] for row in await rows_of(one)] == ["a", "c", "b"]
    with pytest.raises(BlobNotFound):
        await silver.stat("geo/parcels/000004.gpkg")


async def test_an_unavailable_database_is_waited_for(tmp_path: Path) -> None:
    async with open_database("postgresql://nobody@127.0.0.1:1/nothing") as database:
        with pytest.raises(Unavailable):
            await PostgisFeatures(database).load(load_of(tmp_path, PARCELS, []))
