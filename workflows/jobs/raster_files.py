"""Names of rasters: sidecars, world files, ids of items, and the recipe of a product."""

import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import Final

from workflows.jobs.rasters import Affine, RasterParameters
from workflows.shared.errors import RuleViolation

_WORLD: Final = (
    *(".tfw", ".tifw", ".tiffw", ".jgw", ".jpgw", ".jpegw", ".j2w", ".jp2w", ".pgw", ".pngw"),
    *(".igw", ".imgw", ".nfw", ".ntfw", ".wld"),
)


SIDECARS: Final = (".aux.xml", ".ovr", ".msk", *_WORLD, ".prj", ".rrd")
"""Files beside a raster: names to add to that of the raster, or to its stem."""


_RECIPE: Final = (
    *("datetime", "datetime_tag", "datetime_pattern", "crs", "nodata", "subdataset"),
    *("target_crs", "resolution", "resampling", "allow_ballpark", "single_file_bytes"),
)


_LATER: Final = ("transform", "classes")
"""Parameters that digests of earlier datasets do not hold."""


_STEM: Final = 150


def is_sidecar(name: str) -> bool:
    """Whether a file of a prefix belongs to a raster beside it."""
    return name.lower().endswith(SIDECARS)


def sidecars_of(name: str) -> list[str]:
    """Names of files that GDAL would look for beside a raster."""
    stem = re.sub(r"\.[^./]+$", "", name)
    after = [f"{name}{ending}" for ending in (".aux.xml", ".ovr", ".msk")]
    beside = [f"{stem}{ending}" for ending in (*_WORLD, ".prj", ".rrd")]
    # Where the ending of the raster is in capitals, so are those of the files beside it.
    return [*after, *beside, *(f"{stem}{each[len(stem) :].upper()}" for each in beside)]


def world_files_of(name: str) -> list[str]:
    """Names that the world file of a raster may have.

    Source: "World files for raster datasets" of Esri.
    """
    stem, _, ending = name.rpartition(".")
    if not stem or "/" in ending:
        stem, ending = name, ""
    found = [f"{stem}.{ending[0]}{ending[-1]}w", f"{name}w"] if ending else []
    found.append(f"{stem}.wld")
    # Where the ending of the raster is in capitals, so is that of the file beside it.
    return list(dict.fromkeys([*found, *(f"{stem}{each[len(stem) :].upper()}" for each in found)]))


def unpacked_name(name: str, member: str | None) -> str:
    """As a raster would be called if it lay beside its archive, not in it.

    Args:
        name: Of the file.
        member: Of the raster in it; None: the file is the raster.
    """
    if member is None:
        return name
    ending = re.search(r"\.[^./]+$", member)
    stem = re.sub(r"(\.[^./]+)?\.gz$|\.[^./]+$", "", name, flags=re.IGNORECASE)
    return stem + (ending[0] if ending else "")


def world_file(text: str, name: str) -> Affine:
    """The transform that a world file gives: its six lines say the centre of the first pixel.

    Raises:
        RuleViolation: It is no world file.
    """
    # Some editors begin a file with a mark of its encoding.
    lines = text.lstrip("\ufeff").removeprefix("\xef\xbb\xbf").replace(",", ".").split()
    try:
        a, d, b, e, x, y = map(float, lines)
    except ValueError:
        raise RuleViolation(f"{name} is not a world file: it needs six lines, a number each") from (
            None
        )
    if not all(map(math.isfinite, (a, b, d, e, x, y))) or a * e == b * d:
        raise RuleViolation(f"{name} gives pixels no size: its six numbers are {', '.join(lines)}")
    return (a, b, x - (a + b) / 2, d, e, y - (d + e) / 2)


def item_ids(names: Sequence[str], given: str | None) -> list[str]:
    """Id of each source in the catalogue: its stem, or its whole path where two stems are equal.

    Two that differ in their endings alone are distinguished by a digest.
    """
    if given is not None and len(names) == 1:
        return [given]
    stems = [_slug(name.rsplit("/", 1)[-1]) for name in names]
    ids = [
        stem if stems.count(stem) == 1 else _slug(name)
        for name, stem in zip(names, stems, strict=True)
    ]
    return [
        each if ids.count(each) == 1 else _distinct(each, name)
        for name, each in zip(names, ids, strict=True)
    ]


def _slug(name: str) -> str:
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", name)
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._") or "raster"
    if slug != stem or len(slug) > _STEM:
        # Two names that differ in other characters alone must not become one.
        return _distinct(slug, name)
    return slug


def _distinct(slug: str, name: str) -> str:
    return f"{slug[: _STEM - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def recipe(parameters: RasterParameters, version: int) -> str:
    """Digest of everything beside the source that shapes a dataset."""
    chosen = {"version": version, **{name: getattr(parameters, name) for name in _RECIPE}}
    later = {name: getattr(parameters, name) for name in _LATER}
    if parameters.resampling in ("mode", "nearest") and parameters.classes is None:
        # Overviews of earlier datasets were averaged.
        later["classes"] = True
    chosen |= {name: value for name, value in later.items() if value is not None}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]
