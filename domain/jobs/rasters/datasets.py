"""Which rasters a job works on, and what they are called in the catalogue."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Final

from contracts.jobs.rasters import RasterParameters

SIDECARS: Final = (".aux.xml", ".ovr", ".msk", ".tfw", ".tifw", ".wld", ".prj", ".rrd")
"""Files beside a raster, which are not read: names to add to that of the raster, or to its stem."""
_RECIPE: Final = (
    *("datetime", "datetime_tag", "datetime_pattern", "crs", "nodata", "subdataset"),
    *("target_crs", "resolution", "resampling", "allow_ballpark", "single_file_bytes"),
)
_STEM: Final = 150


def is_sidecar(name: str) -> bool:
    """Whether a file of a prefix belongs to a raster beside it."""
    return name.lower().endswith(SIDECARS)


def sidecars_of(name: str) -> list[str]:
    """Names of files that GDAL would look for beside a raster."""
    stem = re.sub(r"\.[^./]+$", "", name)
    after = [f"{name}{ending}" for ending in (".aux.xml", ".ovr", ".msk")]
    return [*after, *(f"{stem}{ending}" for ending in (".tfw", ".wld", ".prj"))]


def item_ids(names: Sequence[str], given: str | None) -> list[str]:
    """Id of each source in the catalogue: its stem, or its whole path where two stems are equal."""
    if given is not None and len(names) == 1:
        return [given]
    stems = [_slug(name.rsplit("/", 1)[-1]) for name in names]
    return [
        stem if stems.count(stem) == 1 else _slug(name)
        for name, stem in zip(names, stems, strict=True)
    ]


def _slug(name: str) -> str:
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", name)
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._") or "raster"
    if slug != stem or len(slug) > _STEM:
        # Two names that differ in other characters alone must not become one.
        slug = f"{slug[: _STEM - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return slug


def recipe(parameters: RasterParameters, version: int) -> str:
    """Digest of everything beside the source that shapes a dataset."""
    chosen = {"version": version, **{name: getattr(parameters, name) for name in _RECIPE}}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]
