"""Files of formats that GDAL reads, as GDAL and other programs write them."""

import gzip
import json
import zipfile
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyogrio.raw
import shapely
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from arro3.io import write_parquet

GML: Final = (
    '<?xml version="1.0" encoding="{encoding}"?><gml:FeatureCollection '
    'xmlns:o="http://o" xmlns:gml="http://www.opengis.net/gml/3.2"><gml:featureMember>'
    '<o:x gml:id="a"><o:zip>01234</o:zip><o:n>7</o:n><o:name>Zürich</o:name><o:g>{shape}</o:g>'
    "</o:x></gml:featureMember>{more}</gml:FeatureCollection>"
)
PLACE: Final = '<gml:Point srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>48 9</gml:pos></gml:Point>'
ARC: Final = (
    '<gml:Curve srsName="EPSG:4326"><gml:segments><gml:Arc><gml:posList>0 0 1 1 2 0</gml:posList>'
    "</gml:Arc></gml:segments></gml:Curve>"
)
GPX: Final = (
    '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><name>T</name>'
    '<trkseg><trkpt lat="48" lon="9"><ele>100</ele></trkpt><trkpt lat="49" lon="9"/></trkseg></trk>'
    "</gpx>"
)
TOPOLOGY: Final = {
    "type": "Topology",
    "objects": {"roads": {"type": "LineString", "properties": {"n": 1}, "arcs": [0]}},
    "arcs": [[[9, 48], [10, 49]]],
}
ESRI: Final = {
    "geometryType": "esriGeometryPoint",
    "spatialReference": {"wkid": 4326},
    "fields": [{"name": "n", "type": "esriFieldTypeInteger"}],
    "features": [{"attributes": {"n": 1}, "geometry": {"x": 9, "y": 48}}],
}


def by_gdal(
    driver: str, suffix: str, count: int = 1, cut: str = "", **columns: Any
) -> Callable[[Path], Path]:
    """A file with a point, as GDAL writes it; zipped, if it has several parts.

    Args:
        driver: Of GDAL.
        suffix: Of the file.
        count: How often it has the point.
        cut: Of parts that end so the last third is cut off.
        columns: Attributes, with their value.
    """

    def write(folder: Path) -> Path:
        parts = folder / "parts"
        parts.mkdir()
        path = parts / f"x.{suffix}"
        newest: dict[str, Any] = {"TARGET_ARCGIS_VERSION": "ARCGIS_PRO_3_2_OR_LATER"}
        options = newest if suffix == "gdb" else {}
        shapes = [shapely.to_wkb(shapely.Point(9, 48))] * count
        wkb = np.array([*shapes, None], dtype=object)[:-1]
        pyogrio.raw.write(
            path,
            wkb,
            [
                np.array([value] * count, object if isinstance(value, str) else None)
                for value in columns.values()
            ],
            list(columns),
            geometry_type="Point",
            crs="EPSG:4326",
            driver=driver,
            **options,
        )
        for each in parts.rglob("*"):
            if cut and each.name.endswith(cut) and each.is_file():
                content = each.read_bytes()
                each.write_bytes(content[: len(content) * 2 // 3])
        if suffix not in ("tab", "mif", "gdb", "shp"):
            return path
        with zipfile.ZipFile(folder / "x.zip", "w") as archive:
            for each in sorted(parts.rglob("*")):
                archive.write(each, each.relative_to(parts))
        return folder / "x.zip"

    return write


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], Path]:
    """A file of this text."""

    def write(folder: Path) -> Path:
        (folder / "x").write_text(content, encoding)
        return folder / "x"

    return write


def zipped(name: str, content: str) -> Callable[[Path], Path]:
    """An archive of one file."""

    def write(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "x", "w") as archive:
            archive.writestr(name, content)
            archive.writestr("readme.md", "read me")
        return folder / "x"

    return write


def gzipped(content: str) -> Callable[[Path], Path]:
    """A text in gzip."""

    def write(folder: Path) -> Path:
        (folder / "x").write_bytes(gzip.compress(content.encode()))
        return folder / "x"

    return write


def parquet(geo: Mapping[str, Any]) -> Callable[[Path], Path]:
    """A Parquet file with these metadata."""

    def write(folder: Path) -> Path:
        schema = Schema([Field("n", DataType.int32()), Field("geometry", DataType.binary())])
        columns = [
            Array([7], type=DataType.int32()),
            Array([shapely.to_wkb(shapely.Point(9, 48))], type=DataType.binary()),
        ]
        batch = RecordBatch.from_arrays(columns, schema=schema)
        reader = RecordBatchReader.from_batches(schema, [batch])
        write_parquet(reader, folder / "x", key_value_metadata={"geo": json.dumps(geo)})
        return folder / "x"

    return write


def geo(**column: Any) -> dict[str, Any]:
    """Metadata of GeoParquet."""
    main: dict[str, Any] = {"encoding": "WKB", "geometry_types": [], **column}
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": main}}


FEATURE: Final = '{"type": "Feature", "geometry": null, "properties": {"n": 1}}'
COLUMNS: Final[dict[str, Any]] = {
    "name": "Zürich",
    "n": 7,
    "d": np.datetime64("2024-02-29"),
    "t": np.datetime64("2024-01-02T03:04:05", "ms"),
}
VALUES: Final = ("Zürich", 7, date(2024, 2, 29), datetime(2024, 1, 2, 3, 4, 5))
LATER: Final = ("Zürich", 7, datetime(2024, 2, 29), datetime(2024, 1, 2, 3, 4, 5))
POINT: Final = "POINT (9 48)"
