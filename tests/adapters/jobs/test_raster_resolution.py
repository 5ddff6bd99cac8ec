"""A resolution that a person mistyped is named when the grid is fixed."""

import pytest

from adapters.files.rasters.grids import target_grid
from workflows.jobs.rasters import GridInput
from workflows.shared.errors import RuleViolation


def order(resolution: float) -> GridInput:
    return GridInput(
        width=100,
        height=50,
        crs="EPSG:32632",
        transform=(10.0, 0.0, 500_000.0, 0.0, -10.0, 5_500_000.0),
        band_bytes=1,
        resolution=resolution,
    )


def test_a_resolution_larger_than_the_raster_is_refused_by_name() -> None:
    with pytest.raises(RuleViolation, match=r"parameter resolution, 1e\+09, is larger than"):
        target_grid(order(1e9))


def test_a_coarser_resolution_within_the_raster_is_kept() -> None:
    grid = target_grid(order(500))

    assert (grid.width, grid.height) == (2, 1)
