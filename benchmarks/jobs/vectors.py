"""Polygons into PostGIS, beside `ogr2ogr` with PG_USE_COPY.

docflow reads the file in its own process, validates every geometry, keeps the features as Parquet
and loads them; `ogr2ogr` loads them as they are. Both make the spatial index.
"""

import asyncio
import shutil
import subprocess
from pathlib import Path
from time import perf_counter
from typing import Any, Final, cast

import numpy as np
import shapely
from arro3.core import Array, DataType
from arro3.core import Table as ArrowTable
from arro3.io import write_parquet

from activities.jobs.geopackages import GeoPackageFeatures
from activities.jobs.ports import FeatureLoad
from activities.jobs.postgis import PostgisFeatures
from adapters.database.engine import Database, open_database
from adapters.files.vectors.reader import VectorFiles
from benchmarks.report import Table, at_least, spread
from stack.postgres import postgis_programs, postgres_server
from tests.support.memory.blobs import MemoryBlobs
from workflows.jobs.vectors import (
    ColumnType,
    GeometryType,
    LoadMode,
    VectorColumn,
    VectorOptions,
    VectorTable,
)

POLYGONS: Final = 200_000
CORNERS: Final = 12
_RATIO: Final = 0.9


async def polygons(folder: Path, rounds: int) -> Table:
    """Both, in turn, over the same file and server."""
    table = Table(
        f"{POLYGONS:,} polygons of {CORNERS} corners into PostGIS",
        ("", "seconds", "polygons per second"),
    )
    programs, ogr2ogr = postgis_programs(), shutil.which("ogr2ogr")
    if programs is None or ogr2ogr is None:
        table.notes.append("not measured: PostGIS or ogr2ogr is not installed")
        return table
    source = await _make(folder)
    ours: list[float] = []
    theirs: list[float] = []
    with postgres_server(programs=programs, durable=True) as url:
        async with VectorFiles() as files, open_database(url) as database:
            await _prepare(database)
            # A worker's reading process has its libraries loaded before a file comes.
            await _docflow(files, PostgisFeatures(database), source, folder / "first")
            for number in range(rounds):
                theirs.append(await asyncio.to_thread(_ogr2ogr, ogr2ogr, source, url))
                ours.append(
                    await _docflow(files, PostgisFeatures(database), source, folder / str(number))
                )
    for name, seconds in (("docflow, validated", ours), ("ogr2ogr, PG_USE_COPY", theirs)):
        per_second = [POLYGONS / each for each in seconds]
        table.add(name, spread(seconds, 1), spread(per_second))
    pairs = sorted(other / own for own, other in zip(ours, theirs, strict=True))
    ratio = pairs[len(pairs) // 2]
    table.notes.append(f"docflow to ogr2ogr: {at_least(ratio, _RATIO, ' x')}")
    return table


async def _make(folder: Path) -> Path:
    """A GeoPackage, by the same code that keeps tables of features embedded."""
    chance = np.random.default_rng(1)
    turn = np.linspace(0, 2 * np.pi, CORNERS + 1)[:-1]
    radius = chance.uniform(5e-4, 1e-3, (POLYGONS, CORNERS))
    centres = chance.uniform((10, 47), (14, 54), (POLYGONS, 1, 2))
    corners = centres + np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=-1)
    shapes = cast(Any, shapely.polygons(np.concatenate([corners, corners[:, :1]], axis=1)))
    columns = (
        VectorColumn(name="name", source="name", type=ColumnType.TEXT),
        VectorColumn(name="number", source="number", type=ColumnType.INTEGER),
        VectorColumn(name="share", source="share", type=ColumnType.REAL),
    )
    table = VectorTable(name="plots", columns=columns, geometry=GeometryType.POLYGON)
    features = folder / "features.parquet"
    await asyncio.to_thread(_write, features, shapes, chance.random(POLYGONS))
    silver = MemoryBlobs()
    load = FeatureLoad("make", table, LoadMode.CREATE, (), features)
    done = await GeoPackageFeatures(silver, folder).load(load)
    source = folder / "plots.gpkg"
    await silver.download(done.place, source)
    return source


def _write(target: Path, shapes: Any, shares: Any) -> None:
    found: dict[str, Any] = {
        "name": Array([f"parcel {n}" for n in range(POLYGONS)], type=DataType.utf8()),
        "number": Array.from_numpy(np.arange(POLYGONS)),
        "share": Array.from_numpy(shares),
        "geom": Array(cast(Any, shapely.to_wkb(shapes)).tolist(), type=DataType.binary()),
    }
    write_parquet(ArrowTable.from_pydict(found), target)


async def _prepare(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.exec_driver_sql("CREATE EXTENSION postgis")
        await connection.exec_driver_sql("CREATE SCHEMA geo")


async def _docflow(
    files: VectorFiles, features: PostgisFeatures, source: Path, folder: Path
) -> float:
    inside, outside = folder / "in", folder / "out"
    inside.mkdir(parents=True)
    outside.mkdir()
    path = Path(shutil.copy(source, inside / "x"))
    start = perf_counter()
    report = await files.read(path, outside, VectorOptions(dataset="plots", layers=("plots",)))
    (layer,) = report.layers
    mode = LoadMode.REPLACE
    load = FeatureLoad(str(folder), layer.table, mode, (), outside / "0.parquet")
    done = await features.load(load)
    seconds = perf_counter() - start
    assert done.total == POLYGONS
    return seconds


def _ogr2ogr(program: str, source: Path, url: str) -> float:
    start = perf_counter()
    subprocess.run(
        [
            *(program, "-q", "-overwrite", "-f", "PostgreSQL", f"PG:{url}", str(source), "plots"),
            *("-nln", "geo.theirs", "-lco", "GEOMETRY_NAME=geom", "-lco", "SPATIAL_INDEX=GIST"),
            *("-nlt", "POLYGON", "--config", "PG_USE_COPY", "YES"),
        ],
        check=True,
    )
    return perf_counter() - start
