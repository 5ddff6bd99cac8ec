"""A scene of a satellite that never flew: relief, water, fields, an edge without data.

    python samples/make_scene.py scene.tif --seed 7 --size 3000

Six bands of uint16 reflectances (scale 0.0001), UTM, nodata 0, the acquisition time in the domain
IMAGERY. The same seed gives the same pixels.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from affine import Affine

BANDS = ("blue", "green", "red", "nir", "swir16", "swir22")
_WAVELENGTHS = (0.49, 0.56, 0.665, 0.842, 1.61, 2.19)
_PIXEL = 10.0
_CORNER = (399_960.0, 5_300_040.0)
_WATER = np.array([0.05, 0.045, 0.03, 0.015, 0.006, 0.004])
_FOREST = np.array([0.025, 0.045, 0.03, 0.32, 0.16, 0.08])
_FIELD = np.array([0.06, 0.09, 0.11, 0.28, 0.27, 0.19])
_ROCK = np.array([0.12, 0.14, 0.17, 0.23, 0.30, 0.26])
_SNOW = np.array([0.85, 0.86, 0.85, 0.75, 0.12, 0.09])


def relief(size: int, seed: int) -> Any:
    """Heights from 0 to 1, rough at every scale: noise of octaves, in the frequency domain."""
    rng = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None, :]
    frequency = np.hypot(rows, columns)
    frequency[0, 0] = np.inf
    phases = rng.uniform(0, 2 * np.pi, frequency.shape)
    heights = np.fft.irfft2(np.exp(1j * phases) * frequency**-2.1, s=(size, size))
    return (heights - heights.min()) / np.ptp(heights)


def scene(size: int, seed: int) -> Any:
    """Bands, rows, columns of uint16; 0 is not data."""
    rng = np.random.default_rng(seed + 1)
    heights, texture = relief(size, seed), relief(size, seed + 2)
    slope_y, slope_x = np.gradient(heights * size / 12)
    shade = np.clip(0.75 + 0.5 * (slope_x - slope_y) / np.sqrt(1 + slope_x**2 + slope_y**2), 0.2, 1)
    water = heights < np.quantile(heights, 0.15)
    snow = heights > np.quantile(heights, 0.97)
    forest = np.clip(4 * (texture - np.median(texture)) + 0.5, 0, 1)
    rock = np.clip(6 * (heights - np.quantile(heights, 0.85)), 0, 1)
    edge = _edge(size)
    pixels = np.empty((len(BANDS), size, size), "uint16")
    for at in range(len(BANDS)):
        ground = forest * _FOREST[at] + (1 - forest) * _FIELD[at]
        ground = (1 - rock) * ground + rock * _ROCK[at]
        ground = np.where(snow, _SNOW[at], ground) * shade
        ground = np.where(water, _WATER[at] * (0.9 + 0.2 * texture), ground)
        noise = rng.normal(0, 0.004, ground.shape)
        values = np.clip((ground + noise) * 10_000, 1, 10_000)
        pixels[at] = np.where(edge, values, 0)
    return pixels


def _edge(size: int) -> Any:
    """Where the swath of the sensor reaches: all but two corners."""
    rows, columns = np.mgrid[0:size, 0:size] / size
    return (columns > 0.12 - 0.25 * rows) & (columns < 1.1 - 0.18 * rows)


def write(path: Path, size: int, seed: int) -> None:
    """Write a scene as a GeoTIFF."""
    profile = {
        "driver": "GTiff",
        "width": size,
        "height": size,
        "count": len(BANDS),
        "dtype": "uint16",
        "crs": "EPSG:32632",
        "transform": Affine(_PIXEL, 0, _CORNER[0], 0, -_PIXEL, _CORNER[1]),
        "nodata": 0,
        "tiled": True,
        "blockxsize": 512,
        "blockysize": 512,
        "compress": "deflate",
        "predictor": 2,
    }
    with rasterio.open(path, "w", **profile) as file:
        file.write(scene(size, seed))
        file.scales = [0.0001] * len(BANDS)
        file.update_tags(ns="IMAGERY", ACQUISITIONDATETIME="2024-06-21T10:20:31Z")
        for number, (name, wavelength) in enumerate(zip(BANDS, _WAVELENGTHS, strict=True), 1):
            file.set_band_description(number, name)
            file.update_tags(number, wavelength_um=wavelength)


def main() -> None:
    """Write the scene that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--size", type=int, default=3_000, help="pixels of a side")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    write(given.path, given.size, given.seed)


if __name__ == "__main__":
    main()
