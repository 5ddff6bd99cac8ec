"""Grids of PROJ: what shifts between older datums need, and wheels do not bring."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Final

import pyproj.datadir
from pyproj.transformer import TransformerGroup

DATUMS: Final = {
    "EPSG:4267": "NAD27",
    "EPSG:4277": "OSGB36",
    "EPSG:4275": "NTF",
    "EPSG:4314": "DHDN",
    "EPSG:4230": "ED50",
    "EPSG:4202": "AGD66",
    "EPSG:4272": "NZGD49",
}
"""Older datums that data still come in, and whose best shift to WGS 84 may need a grid."""


def missing_grids(datums: Mapping[str, str] = DATUMS) -> Mapping[str, Sequence[str]]:
    """Name of a datum to the files that its best shift to WGS 84 lacks here; none: not in it.

    Without them PROJ takes a shift that is less accurate: metres instead of centimetres.

    Args:
        datums: Code of a reference system to the name of its datum.
    """
    found: dict[str, Sequence[str]] = {}
    for code, name in datums.items():
        with warnings.catch_warnings():
            # That the best operation is missing is what we ask for.
            warnings.simplefilter("ignore", UserWarning)
            group = TransformerGroup(code, "EPSG:4326", always_xy=True, allow_ballpark=False)
        if group.best_available:
            continue
        grids = [
            grid.short_name
            for operation in group.unavailable_operations
            for grid in operation.grids
            if not grid.available
        ]
        found[name] = tuple(dict.fromkeys(grids))
    return found


def grid_folder() -> str:
    """Where this process looks for grids."""
    return pyproj.datadir.get_data_dir()
