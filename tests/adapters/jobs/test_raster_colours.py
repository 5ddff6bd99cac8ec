"""Colours that GDAL does not give as the file has them are named."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine

from tests.support.jobs.raster_jobs import RasterJobs, processed


@pytest.mark.parametrize(
    ("photometric", "bands", "words"),
    [("cmyk", 4, "cyan, magenta"), ("miniswhite", 1, "0 is white"), ("minisblack", 1, None)],
)
async def test_colours_that_are_read_as_others_are_named(
    jobs: RasterJobs, tmp_path: Path, photometric: str, bands: int, words: str | None
) -> None:
    path = tmp_path / f"{photometric}.tif"
    profile = {"driver": "GTiff", "width": 40, "height": 30, "count": bands, "dtype": "uint8"}
    place = {"crs": "EPSG:32633", "transform": Affine(10, 0, 500_000, 0, -10, 5_500_000)}
    with rasterio.open(path, "w", photometric=photometric, **profile, **place) as file:
        file.write(np.arange(bands * 1_200, dtype="uint32").astype("uint8").reshape(bands, 30, 40))
    item, _ = await processed(jobs, path)
    notes = item["properties"]["docflow:notes"]
    assert notes == [] if words is None else words in notes[0]
