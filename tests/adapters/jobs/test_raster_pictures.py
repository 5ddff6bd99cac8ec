"""Pictures of rasters, as people see them on the page of a job."""

from pathlib import Path

import numpy as np
import pytest
import rasterio

from adapters.files.rasters.cog import preview
from tests.support.jobs.rasters import write


# A picture lies nowhere.
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_bands_are_shown_in_the_colours_that_their_names_say(tmp_path: Path) -> None:
    named = {"Blue": 10, "Green": 20, "Red": 30, "Infrared": 40}
    pixels = np.stack([np.full((4, 4), value, "uint8") for value in named.values()])
    source = write(tmp_path / "scene.tif", pixels)
    with rasterio.open(source, "r+") as dataset:
        dataset.descriptions = tuple(named)
        preview(dataset, tmp_path / "scene.png")
    with rasterio.open(tmp_path / "scene.png") as picture:
        assert picture.read()[:, 0, 0].tolist() == [30, 20, 10, 255]
