"""Pixels of a target grid, COGs, and small pictures.

Pixels of one window of a target grid.

Whatever the window, a pixel comes out the same: the scale of the resampling, the margin of the
source and the whole grid are fixed, coordinates are exact to a billionth of a pixel, and columns
are warped in blocks that begin at multiples of `_BLOCK`.

Whether a PNG is whole: GDAL passes over damage, and gives pixels that the file does not hold.

Source: https://www.w3.org/TR/png-3/, sections 5 (chunks), 8 (passes) and 10 (compression).
"""

import hashlib
import math
import struct
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final, cast

import numpy as np
import rasterio
import rasterio.features
import rasterio.shutil
import rasterio.vrt
import shapely
import shapely.geometry
from affine import Affine
from pyproj import CRS, Transformer
from rasterio.enums import ColorInterp, Resampling

from adapters.files.footprints import of_ring, on_earth
from adapters.files.rasters.source import EXACT_INTEGERS, Window, number_of, open_raster
from adapters.ports.errors import Unavailable, UnreadableDocument
from workflows.jobs.rasters import BandSums, PixelRules, RasterBand, TargetGrid, TileWindow, added
from workflows.shared.errors import RuleViolation

_WarpedVRT: Any = rasterio.vrt.WarpedVRT
_BLOCK: Final = 512
_TOLERANCE: Final = 1e-9
"""Pixels of the source by which coordinates may be approximated; GDAL's default is 0.125."""
_MARGIN: Final = 8
"""Pixels of the source around what a window seems to need, at full scale."""
_MEMORY_MB: Final = 24


@dataclass(frozen=True, slots=True)
class Pixels:
    """A window of a raster."""

    bands: Any
    """Array of bands, rows, columns."""
    mask: Any | None
    """0 where no band is valid, else 255; None: the values say it, or all are."""


def window_of(
    dataset: Any,
    grid: TargetGrid,
    rules: PixelRules,
    window: TileWindow,
    progress: Callable[[float], None] = lambda share: None,
) -> Pixels:
    """Read a window of the grid from a source.

    Raises:
        RuleViolation: Integers would be rounded.
    """
    if grid.method == "copy":
        return _copied(dataset, rules, window)
    with _WarpedVRT(dataset, **_options(dataset, grid, rules)) as warped:
        found = np.empty((warped.count, window.height, window.width), warped.dtypes[0])
        for first in range(0, window.width, _BLOCK):
            columns = min(_BLOCK, window.width - first)
            part = Window(window.column + first, window.row, columns, window.height)
            warped.read(window=part, out=found[:, :, first : first + columns])
            progress((first + columns) / window.width)
    bands = found[: dataset.count]
    _refuse_rounding(bands)
    mask = _as_mask(found[dataset.count]) if rules.validity == "mask" else None
    return Pixels(bands, mask)


def _copied(dataset: Any, rules: PixelRules, window: TileWindow) -> Pixels:
    part = Window(window.column, window.row, window.width, window.height)
    mask = _as_mask(dataset.read_masks(1, window=part)) if rules.validity == "mask" else None
    return Pixels(dataset.read(window=part), mask)


def _as_mask(coverage: Any) -> Any:
    return np.where(coverage > 0, 255, 0).astype("uint8")


def _options(dataset: Any, grid: TargetGrid, rules: PixelRules) -> dict[str, Any]:
    nodata = number_of(rules.nodata) if rules.validity == "nodata" else None
    margin = math.ceil(_MARGIN / min(1.0, grid.scale_x, grid.scale_y))
    options: dict[str, Any] = {
        "src_crs": rules.crs,
        "src_transform": Affine(*rules.transform),
        "crs": grid.crs,
        "transform": Affine(*grid.transform),
        "width": grid.width,
        "height": grid.height,
        "resampling": Resampling[rules.resampling],
        "tolerance": _TOLERANCE,
        "warp_mem_limit": _MEMORY_MB,
        "src_nodata": nodata,
        "nodata": nodata,
        "XSCALE": repr(grid.scale_x),
        "YSCALE": repr(grid.scale_y),
        "SOURCE_EXTRA": str(margin),
        "SAMPLE_GRID": "YES",
        # rasterio's YES counts a pixel in which one band has a value as valid in all of them, and
        # interpolates the nodata values of the others. This is what gdalwarp does.
        "UNIFIED_SRC_NODATA": "PARTIAL",
    }
    if rules.validity == "alpha":
        alpha = dataset.colorinterp.index(ColorInterp.alpha) + 1
        options |= {"src_alpha": alpha, "dst_alpha": alpha}
    elif rules.validity == "mask":
        options["add_alpha"] = True
    return options


def _refuse_rounding(bands: Any) -> None:
    if bands.dtype.kind not in "iu" or bands.dtype.itemsize < 8 or not bands.size:
        return
    if int(bands.max()) > EXACT_INTEGERS or int(bands.min()) < -EXACT_INTEGERS:
        raise RuleViolation(
            "integers beyond 2^53 would be rounded by the reprojection; leave target_crs and"
            " resolution out, or convert the bands first"
        )


BLOCK: Final = 512
_ZSTD: Final = {"COMPRESS": "ZSTD", "BIGTIFF": "IF_SAFER", "NUM_THREADS": "1"}
_DERIVED_TAGS: Final = ("STATISTICS_", "OVERVIEW", "COMPRESSION", "INTERLEAVE")
DOCUMENTS: Final = ("xml:", "json:")
"""Beginnings of metadata domains that no TIFF of ours takes."""
_FILE_DOMAINS: Final = ("IMAGE_STRUCTURE", "TIFF", "DERIVED_SUBDATASETS")


@contextmanager
def new_tiff(
    path: Path,
    bands: tuple[RasterBand, ...],
    rules: PixelRules,
    *,
    crs: str | None,
    transform: Affine | None,
    width: int,
    height: int,
    tags: dict[str, dict[str, str]],
    compress: bool,
) -> Generator[Any]:
    """A tiled TIFF to be filled, with all that is known of the bands."""
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "width": width,
        "height": height,
        "count": len(bands),
        "dtype": bands[0].data_type,
        "crs": crs,
        "transform": transform,
        "tiled": True,
        "blockxsize": BLOCK,
        "blockysize": BLOCK,
        "BIGTIFF": "IF_SAFER",
        "SPARSE_OK": "TRUE",
    }
    if rules.validity == "nodata":
        profile["nodata"] = number_of(rules.nodata)
    if bands[-1].colour == "alpha":
        profile["ALPHA"] = "UNSPECIFIED"
    if compress:
        profile |= {"COMPRESS": "ZSTD", "ZSTD_LEVEL": 1, "PREDICTOR": _predictor(bands[0])}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK="YES"),
        open_raster(path, "w", **profile) as file,
    ):
        describe(file, bands, tags)
        yield file


def describe(file: Any, bands: tuple[RasterBand, ...], tags: dict[str, dict[str, str]]) -> None:
    """Write what is known of a raster beside its pixels."""
    file.colorinterp = [_colour(band, number) for number, band in enumerate(bands, 1)]
    file.scales = [band.scale for band in bands]
    file.offsets = [band.offset for band in bands]
    file.units = [band.unit or "" for band in bands]
    for number, band in enumerate(bands, 1):
        if band.description:
            file.set_band_description(number, band.description)
        if band.palette:
            file.write_colormap(number, band.palette)
        file.update_tags(number, **_kept(band.tags))
    for domain, entries in tags.items():
        if domain in _FILE_DOMAINS or domain.startswith(DOCUMENTS):
            continue
        file.update_tags(ns=domain or None, **_kept(entries))


def _colour(band: RasterBand, number: int) -> ColorInterp:
    if band.colour == "palette" and not band.palette:
        # No TIFF has numbers of colours without their table.
        return ColorInterp.gray if number == 1 else ColorInterp.undefined
    return ColorInterp[band.colour]


def _kept(tags: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if not name.startswith(_DERIVED_TAGS)}


def put(file: Any, pixels: Pixels, at: TileWindow) -> None:
    """Write pixels into an open TIFF."""
    window = Window(at.column, at.row, at.width, at.height)
    file.write(pixels.bands, window=window)
    if pixels.mask is not None:
        file.write_mask(pixels.mask, window=window)


def as_cog(source: Path, target: Path, *, classes: bool, overviews: bool) -> None:
    """Copy a TIFF into a COG, beside its later name."""
    with open_raster(source, driver="GTiff") as dataset:
        rasterio.shutil.copy(
            dataset,
            target,
            driver="COG",
            LEVEL="1",
            PREDICTOR="YES",
            BLOCKSIZE=str(BLOCK),
            OVERVIEWS="IGNORE_EXISTING" if overviews else "NONE",
            RESAMPLING="NEAREST" if classes else "AVERAGE",
            **_ZSTD,
        )


def strips(height: int) -> Iterator[slice]:
    """Rows that are worked on together: what is made of them stays small."""
    for first in range(0, height, BLOCK):
        yield slice(first, min(first + BLOCK, height))


def check_same(path: Path, at: TileWindow, pixels: Pixels) -> None:
    """Read a part of a file that was written, and compare.

    Raises:
        Unavailable: It holds something else: the disk or the memory is broken.
    """
    with open_raster(path, driver="GTiff") as dataset:
        for rows in strips(at.height):
            window = Window(at.column, at.row + rows.start, at.width, rows.stop - rows.start)
            mask = None if pixels.mask is None else pixels.mask[rows]
            _check(dataset, window, Pixels(pixels.bands[:, rows], mask))


def check_copied(path: Path, original: Path, *, masked: bool) -> None:
    """Read a file that was made of another one, and compare all of it.

    Raises:
        Unavailable: It holds something else.
    """
    with (
        open_raster(original, driver="GTiff") as source,
        open_raster(path, driver="GTiff") as dataset,
    ):
        for rows in strips(source.height):
            window = Window(0, rows.start, source.width, rows.stop - rows.start)
            mask = source.read_masks(1, window=window) if masked else None
            _check(dataset, window, Pixels(source.read(window=window), mask))


def _check(dataset: Any, window: Any, expected: Pixels) -> None:
    is_float = expected.bands.dtype.kind == "f"
    found = dataset.read(window=window)
    is_same = np.array_equal(found, expected.bands, equal_nan=is_float)
    if is_same and expected.mask is not None:
        is_same = np.array_equal(dataset.read_masks(1, window=window), expected.mask)
    if not is_same:
        raise Unavailable("a file holds other pixels than were written to it; try again")


def counted(
    pixels: Pixels, bands: tuple[RasterBand, ...], rules: PixelRules
) -> tuple[tuple[BandSums, ...], int]:
    """Statistics of each band, and how many pixels have a valid value in any."""
    found = (BandSums(),) * len(bands)
    total = 0
    for rows in strips(pixels.bands.shape[1]):
        mask = None if pixels.mask is None else pixels.mask[rows]
        part = Pixels(pixels.bands[:, rows], mask)
        valid = valid_pixels(part, bands, rules)
        found = tuple(
            added(before, sums(values, counts))
            for before, values, counts in zip(found, part.bands, valid, strict=True)
        )
        total += int(valid.any(axis=0).sum())
    return found, total


def valid_pixels(pixels: Pixels, bands: tuple[RasterBand, ...], rules: PixelRules) -> Any:
    """Of each band: which pixels count."""
    values = pixels.bands
    valid = np.ones(values.shape, bool)
    if values.dtype.kind == "f":
        valid &= np.isfinite(values)
    if rules.validity == "nodata":
        nodata = number_of(rules.nodata)
        if nodata is not None and np.isfinite(nodata):
            valid &= values != values.dtype.type(nodata)
    elif rules.validity == "alpha":
        alpha = next(at for at, band in enumerate(bands) if band.colour == "alpha")
        valid &= values[alpha] > 0
    elif pixels.mask is not None:
        valid &= pixels.mask > 0
    return valid


def sums(values: Any, valid: Any) -> BandSums:
    """Statistics of one band."""
    chosen = values if valid.all() else values[valid]
    if not chosen.size:
        return BandSums()
    mean = float(chosen.mean(dtype="float64"))
    deviation = float(chosen.std(dtype="float64", mean=mean))
    return BandSums(
        count=chosen.size,
        minimum=float(chosen.min()),
        maximum=float(chosen.max()),
        mean=mean,
        squares=deviation**2 * chosen.size,
    )


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _predictor(band: RasterBand) -> int:
    return 3 if band.data_type.startswith("float") else 2


_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_CHUNK: Final = struct.Struct(">L4s")
_CRC: Final = struct.Struct(">L")
_HEADER: Final = struct.Struct(">LLBBBBB")
_SAMPLES: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Type of colour to the samples of a pixel."""
_PASSES: Final = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""Of an interlaced picture: first column, first row, and the steps of both."""
_PIECE: Final = 1 << 20


def check_png(path: Path) -> None:
    """Check every chunk, and that the pixels are all there; memory stays bounded.

    Raises:
        UnreadableDocument: The file is damaged.
    """
    try:
        with path.open("rb") as file:
            _check_chunk(file)
    except (zlib.error, struct.error, ValueError) as error:
        raise UnreadableDocument(f"the raster is damaged: {error}; send the file again") from error


def _check_chunk(file: IO[bytes]) -> None:
    if file.read(len(_SIGNATURE)) != _SIGNATURE:
        raise ValueError("it does not begin as a PNG")
    expected, found, kind = 0, 0, b""
    inflating = zlib.decompressobj()
    while kind != b"IEND":
        length, kind = _CHUNK.unpack(file.read(_CHUNK.size))
        checksum, left = zlib.crc32(kind), length
        header = b""
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                raise ValueError("it is cut off")
            checksum, left = zlib.crc32(piece, checksum), left - len(piece)
            if kind == b"IHDR":
                header += piece
            elif kind == b"IDAT":
                found += _inflated(inflating, piece, expected - found)
        if checksum != _CRC.unpack(file.read(_CRC.size))[0]:
            raise ValueError(f"the checksum of its part {kind.decode('latin-1')} is wrong")
        if kind == b"IHDR":
            expected = _bytes(*_HEADER.unpack(header))
    if not inflating.eof or found != expected:
        raise ValueError("its pixels are not all there")


def _inflated(inflating: Any, piece: bytes, most: int) -> int:
    """How many bytes a piece unpacks to; no more than these are expected."""
    found = 0
    while piece and not inflating.eof:
        found += len(inflating.decompress(piece, _PIECE))
        if found > most:
            raise ValueError("it holds more pixels than it says")
        piece = inflating.unconsumed_tail
    return found


def _bytes(
    width: int, height: int, depth: int, colour: int, packing: int, filters: int, interlaced: int
) -> int:
    """What the pixels unpack to: every row begins with the byte of its filter."""
    bits = depth * _SAMPLES.get(colour, 0)
    if not bits or packing or filters or interlaced > 1:
        raise ValueError("its header is wrong")
    whole = ((0, 0, 1, 1),)
    total = 0
    for column, row, across, down in _PASSES if interlaced else whole:
        columns = -(-max(0, width - column) // across)
        rows = -(-max(0, height - row) // down)
        if columns:
            total += rows * (1 + -(-columns * bits // 8))
    return total


_shapes: Any = cast("Any", rasterio.features).shapes
_shape: Any = shapely.geometry.shape
_FOOTPRINT_PIXELS: Final = 512
_PREVIEW_PIXELS: Final = 512
_PARTS: Final = 20
"""A footprint of more polygons is their convex hull."""
_DIGITS: Final = 7
_SEGMENTS: Final = 64
_DEGREE_METRES: Final = 111_319.49
"""Of longitude at the equator."""


def footprint(dataset: Any) -> dict[str, Any] | None:
    """Where valid pixels are: a geometry of GeoJSON in degrees, cut at the antimeridian.

    None: all of them are valid, or none, or they surround a pole or reach the edge of the Earth:
    the outline of the file says it.
    """
    height, width = _shrunk(dataset, _FOOTPRINT_PIXELS)
    valid = _valid(dataset, height, width)
    if valid.all() or not valid.any():
        return None
    scale = dataset.transform @ Affine.scale(dataset.width / width, dataset.height / height)
    polygons = [
        shapely.Polygon(_shape(shape).exterior)
        for shape, _ in _shapes(valid.astype("uint8"), mask=valid, connectivity=8, transform=scale)
    ]
    merged = shapely.union_all(polygons)
    if shapely.get_num_geometries(merged) > _PARTS:
        merged = shapely.convex_hull(merged)
    merged = shapely.simplify(merged, max(map(abs, (scale.a, scale.b, scale.d, scale.e))))
    left, bottom, right, top = merged.bounds
    merged = shapely.segmentize(merged, max(right - left, top - bottom) / _SEGMENTS)
    return _in_degrees(merged, dataset.crs.to_wkt())


def _in_degrees(shape: Any, wkt: str) -> dict[str, Any] | None:
    system = CRS.from_wkt(wkt)
    degrees = Transformer.from_crs(system, "OGC:CRS84", always_xy=True)
    found: list[Any] = []
    for part in shapely.get_parts(shape):
        xs, ys = shapely.get_coordinates(part.exterior)[:-1].T
        if system.is_projected and not on_earth(system, xs, ys).all():
            return None
        placed: Any = degrees.transform(xs, ys)
        piece = of_ring(placed[0], placed[1])
        if piece is None:
            return None
        found.append(piece)
    union = shapely.set_precision(shapely.union_all(found), 10**-_DIGITS)
    west, south, east, north = union.bounds
    straight = max(east - west, north - south) / (10 * _FOOTPRINT_PIXELS)
    whole = shapely.make_valid(shapely.simplify(union, straight), method="structure")
    return dict(shapely.geometry.mapping(whole))


def metres(dataset: Any) -> float | None:
    """Between two pixels; None: not known."""
    side = float(np.hypot(dataset.transform.a, dataset.transform.d))
    if dataset.crs.is_geographic:
        return side * _DEGREE_METRES
    return side * float(dataset.crs.linear_units_factor[1]) if dataset.crs.is_projected else None


def preview(dataset: Any, target: Path) -> None:
    """Write a picture of at most 512 pixels a side, transparent where nothing is valid."""
    height, width = _shrunk(dataset, _PREVIEW_PIXELS)
    valid = _valid(dataset, height, width)
    colours = _colours(dataset, height, width, valid)
    alpha = np.where(valid, 255, 0).astype("uint8")
    with open_raster(
        target, "w", driver="PNG", width=width, height=height, count=4, dtype="uint8"
    ) as picture:
        picture.write(np.concatenate([colours, alpha[np.newaxis]]))


def _colours(dataset: Any, height: int, width: int, valid: Any) -> Any:
    how = {"out_shape": (height, width), "resampling": Resampling.nearest}
    kinds = dataset.colorinterp
    if kinds[0] == ColorInterp.palette:
        table = np.zeros((256, 3), "uint8")
        for value, colour in dataset.colormap(1).items():
            if value < len(table):
                table[value] = colour[:3]
        values = np.clip(dataset.read(1, **how), 0, 255).astype("uint8")
        return table[values].transpose(2, 0, 1)
    return np.stack(
        [_stretched(dataset.read(number, **how), valid) for number in _shown_bands(dataset)]
    )


def _shown_bands(dataset: Any) -> list[int]:
    """The bands shown as red, green and blue: by their names, their colours, or the first three."""
    kinds = dataset.colorinterp
    names = [(name or "").strip().lower() for name in dataset.descriptions]
    wished = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
    if all(colour.name in names for colour in wished):
        return [names.index(colour.name) + 1 for colour in wished]
    if all(colour in kinds for colour in wished):
        return [kinds.index(colour) + 1 for colour in wished]
    data = [number for number in dataset.indexes if kinds[number - 1] != ColorInterp.alpha]
    return data[:3] if len(data) >= 3 else data[:1] * 3


def _stretched(values: Any, valid: Any) -> Any:
    if values.dtype == np.uint8:
        return values
    counted = values[valid & np.isfinite(values)].astype("float64")
    if not counted.size:
        return np.zeros(values.shape, "uint8")
    low, high = np.percentile(counted, (2, 98))
    spread = (high - low) or 1.0
    shares = np.nan_to_num((values.astype("float64") - low) / spread, posinf=1, neginf=0)
    return (np.clip(shares, 0, 1) * 255).astype("uint8")


def _valid(dataset: Any, height: int, width: int) -> Any:
    masks = dataset.read_masks(out_shape=(dataset.count, height, width))
    valid = masks.any(axis=0)
    if dataset.dtypes[0].startswith("float"):
        values = dataset.read(out_shape=(dataset.count, height, width))
        valid &= np.isfinite(values).any(axis=0)
    return valid


def _shrunk(dataset: Any, most: int) -> tuple[int, int]:
    share = min(1.0, most / max(dataset.width, dataset.height))
    return max(1, round(dataset.height * share)), max(1, round(dataset.width * share))


def versions() -> dict[str, str]:
    """Of the programs that made a file."""
    return {
        "gdal": rasterio.__gdal_version__,
        "rasterio": rasterio.__version__,
        "docflow": version("docflow"),
    }
