"""Why readers of our own stand beside GDAL: what it makes of a file, and what the file holds.

The list is that of docs/decisions/vector-readers.md. If GDAL gives the value of the file, the
reader can go.
"""

import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyogrio.raw
import pytest
import shapely

from tests.support.jobs.vector_files import dbf, geojson, shapefile
from tests.support.jobs.vector_formats import text
from tests.support.jobs.vector_reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

GDAL: Final[Any] = pyogrio.raw
SHAPELY: Final[Any] = shapely
POINT: Final = "POINT (9 48)"
KML: Final = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
PLACE: Final = (
    "<Placemark><name>own</name>{}<Point><coordinates>9,48</coordinates></Point></Placemark>"
)
DATA: Final = '<ExtendedData><Data name="{}"><value>other</value></Data></ExtendedData>'
NO_PLACE: Final = (
    "<Placemark><LineString><coordinates>1,2 x,y</coordinates></LineString></Placemark>"
)


def features(*given: tuple[Any, dict[str, Any]]) -> Callable[[Path], Path]:
    """A GeoJSON file."""
    return lambda folder: geojson(folder / "x.geojson", [_feature(*each) for each in given])


def _feature(geometry: Any, properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def table(kind: str, width: int, value: bytes) -> Callable[[Path], Path]:
    """A Shapefile with a field."""
    rows = dbf([(b"A", kind, width, 0)], [[value]])
    return lambda folder: shapefile(folder / "x.zip", [POINT], rows)


@pytest.mark.parametrize(
    ("write", "suffix", "column", "by_gdal", "ours"),
    [
        # geojson.py
        (features((None, {"n": (1 << 64) + 1})), "geojson", "n", 2.0**64, str((1 << 64) + 1)),
        (features((None, {"n": "x\0y"})), "geojson", "n", "x", "x\ufffdy"),
        (
            features((None, {"n": 1.5}), (None, {"n": (1 << 53) + 1})),
            "geojson",
            "n",
            2.0**53,
            str((1 << 53) + 1),
        ),
        (
            features(({"type": "Point", "coordinates": ["a", 1]}, {})),
            "geojson",
            None,
            None,
            "rejected",
        ),
        # kml.py
        (text(KML.format(PLACE.format(DATA.format("Name")))), "kml", "name", "other", "own"),
        (text(KML.format(NO_PLACE)), "kml", None, "LINESTRING (1 2, 0 0)", "rejected"),
        # dbf.py
        (table("N", 5, b"12x"), "shp", "A", 12, None),
        (
            table("N", 20, b"12345678901234567891"),
            "shp",
            "A",
            1.2345678901234567e19,
            "12345678901234567891",
        ),
        # points.py
        (text("lon,lat,n\n9,48,1,surplus\n"), "csv", None, POINT, "rejected"),
    ],
)
async def test_gdal_gives_another_value_than_the_file(
    read: Reading,
    tmp_path: Path,
    write: Callable[[Path], Path],
    suffix: str,
    column: str | None,
    by_gdal: Any,
    ours: Any,
) -> None:
    path = write(tmp_path)
    assert _by_gdal(path, tmp_path / "gdal", suffix, column) == by_gdal
    found = await read(path)
    if ours == "rejected":
        assert found.layer.rejected == found.layer.features
        return
    names = [each.source for each in found.layer.table.columns]
    assert column is not None
    assert found.rows()[-1][names.index(column)] == ours


def _by_gdal(path: Path, folder: Path, suffix: str, column: str | None) -> Any:
    """What GDAL makes of the last feature; of its geometry, if no column is named."""
    folder.mkdir()
    if suffix == "shp":
        zipfile.ZipFile(path).extractall(folder)
        (own,) = folder.glob("*.shp")
    else:
        own = Path(shutil.copy(path, folder / f"x.{suffix}"))
    options = {"X_POSSIBLE_NAMES": "lon", "Y_POSSIBLE_NAMES": "lat"} if suffix == "csv" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        meta, _, shapes, values = GDAL.read(own, **options)
    if column is None:
        return None if shapes[-1] is None else str(SHAPELY.from_wkb(shapes[-1]))
    names = [name.lower() for name in meta["fields"]]
    found: Any = values[names.index(column.lower())][-1]
    return found.item() if hasattr(found, "item") else found
