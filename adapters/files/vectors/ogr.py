"""What is asked of GDAL, typed; only for processes of `adapters.files.vectors.child`."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyogrio
import pyogrio.errors
import pyogrio.raw
from arro3.core import RecordBatch, RecordBatchReader

from adapters.files.vectors.layers import CHUNK, Refused

FAILURES: Final = (
    pyogrio.errors.DataSourceError,
    pyogrio.errors.DataLayerError,
    pyogrio.errors.FieldError,
    pyogrio.errors.FeatureError,
    pyogrio.errors.GeometryError,
)
"""What it raises for a file that is damaged."""
_OGR: Final[Any] = pyogrio
_RAW: Final[Any] = pyogrio.raw


def layers(path: Path) -> list[tuple[str, str | None]]:
    """Names and types of geometries; None: it has none."""
    return [(str(name), kind) for name, kind in _OGR.list_layers(path)]


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """What a layer says of itself."""

    crs: str | None
    bounds: tuple[float, float, float, float] | None
    fields: list[tuple[str, str, str]]
    """Name, type and subtype, as OGR calls them."""
    features: int
    key: str | None = None
    """Name of the column with the numbers of features, which is none of the fields."""


def layer_info(path: Path, layer: str, driver: str) -> LayerInfo:
    """CRS, bounds, fields and their types.

    Raises:
        pyogrio.errors.DataSourceError: Another driver has read the file.
    """
    found = _OGR.read_info(path, layer=layer, force_total_bounds=True, force_feature_count=True)
    meta = cast(dict[str, Any], found)
    if meta["driver"] != driver:
        raise pyogrio.errors.DataSourceError(f"it is of another format, {meta['driver']}")
    types = zip(meta["fields"], meta["ogr_types"], meta["ogr_subtypes"], strict=True)
    fields = [(str(name), str(kind), str(subtype)) for name, kind, subtype in types]
    bounds = meta["total_bounds"]
    return LayerInfo(
        meta["crs"] or None, bounds, fields, meta["features"], meta.get("fid_column") or None
    )


@contextmanager
def arrow(
    path: Path, layer: str | None = None, **options: Any
) -> Generator[tuple[str, Iterator[RecordBatch]]]:
    """A layer in chunks, and the name of the column of geometries; times are text."""
    with _RAW.open_arrow(
        path, layer=layer, batch_size=CHUNK, datetime_as_string=True, **options
    ) as (meta, stream):
        yield (
            meta["geometry_name"] or "wkb_geometry",
            _batches(RecordBatchReader.from_arrow(stream)),
        )


def _batches(reader: RecordBatchReader) -> Iterator[RecordBatch]:
    try:
        yield from reader
    except Exception as error:
        # What GDAL says through Arrow has no type of its own.
        if type(error) is not Exception:
            raise
        raise Refused(f"the file is damaged or cut off ({first_line(error)})") from error


def straightened(path: Path, layer: str | None, first: int, count: int) -> np.ndarray[Any, Any]:
    """Geometries of some features, with arcs as straight pieces: what Arrow does not do.

    Args:
        path: The file.
        layer: Its layer; None: the only one.
        first: Features before them.
        count: How many.
    """
    _, _, geometries, _ = _RAW.read(
        path, layer=layer, skip_features=first, max_features=count, columns=[]
    )
    return geometries


def restore_indexes() -> None:
    """Make a missing `.shx` when a Shapefile is opened."""
    _OGR.set_gdal_config_options({"SHAPE_RESTORE_SHX": True})


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    lines: Sequence[str] = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__
