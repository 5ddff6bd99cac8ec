"""Rules of rasters: times, names, tiles, classes, statistics."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.jobs import rasters
from workflows.jobs.raster_files import is_sidecar, item_ids, recipe, sidecars_of, world_files_of
from workflows.jobs.rasters import (
    BandSums,
    RasterBand,
    RasterInfo,
    RasterParameters,
    TargetGrid,
    TileInfo,
    acquired,
    deviation,
    needs_rewriting,
    pixel_rules,
    tiles,
    total,
)
from workflows.shared.errors import RuleViolation

GRID = TargetGrid(
    crs="EPSG:32618",
    transform=(30, 0, 600_000, 0, -30, 4_800_000),
    width=5_000,
    height=3_000,
    method="copy",
)


def facts(**changes: object) -> RasterInfo:
    known = {
        "driver": "GTiff",
        "width": 5_000,
        "height": 3_000,
        "bands": (RasterBand(data_type="uint8"),),
        "crs": "EPSG:32618",
        "transform": GRID.transform,
        "tiled": True,
        "block_width": 512,
        "block_height": 512,
    }
    return RasterInfo.model_validate(known | changes)


def parameters(**given: object) -> RasterParameters:
    return RasterParameters.model_validate({"source": "scene.tif", **given})


@pytest.mark.parametrize(
    ("given_", "name", "start", "end"),
    [
        ({"datetime": "2024-05-31T10:20:30Z"}, "x.tif", (2024, 5, 31, 10, 20, 30), None),
        ({"datetime": "2024-05-31T12:20:30+02:00"}, "x.tif", (2024, 5, 31, 10, 20, 30), None),
        ({"datetime": "2024-05-01/2024-05-31"}, "x.tif", (2024, 5, 1), (2024, 5, 31, 23, 59, 59)),
        ({"datetime": "2024-05-31"}, "x.tif", (2024, 5, 31), (2024, 5, 31, 23, 59, 59)),
        (
            {"datetime_pattern": "sentinel"},
            "a/S2A_MSIL2A_20240531T102031_N0510.tif",
            (2024, 5, 31, 10, 20, 31),
            None,
        ),
        (
            {"datetime_pattern": "landsat"},
            "LC08_L2SP_193026_20240531_20240611_02_T1.tif",
            (2024, 5, 31),
            (2024, 5, 31, 23, 59, 59),
        ),
        ({"datetime_tag": "TIFFTAG_DATETIME"}, "x.tif", (2020, 1, 2, 3, 4, 5), None),
    ],
)
def test_the_time_is_that_of_the_parameter_the_tag_or_the_pattern(
    given_: dict[str, str], name: str, start: tuple[int, ...], end: tuple[int, ...] | None
) -> None:
    tags = {"": {"TIFFTAG_DATETIME": "2020:01:02 03:04:05"}}
    found = acquired(parameters(**given_), facts(tags=tags), name)
    assert found is not None
    assert found.start == datetime(*start, tzinfo=UTC)  # type: ignore[misc]
    last = found.end.replace(microsecond=0)
    assert last == datetime(*(end or start), tzinfo=UTC)  # type: ignore[misc]
    assert (found.instant is None) == (end is not None)


def test_a_tag_that_means_nothing_else_counts_and_the_date_of_the_file_does_not() -> None:
    tags = {"IMAGERY": {"ACQUISITIONDATETIME": "2024-06-21T10:20:31Z"}}
    found = acquired(parameters(), facts(tags=tags), "x.tif")
    assert found is not None
    assert found.source == "tag ACQUISITIONDATETIME"
    written = {"": {"TIFFTAG_DATETIME": "2020:01:02 03:04:05"}}
    assert acquired(parameters(), facts(tags=written), "scene_20240531.tif") is None


@pytest.mark.parametrize(
    ("pattern", "name", "hour", "minute"),
    [
        ("timestamp", "a_2024-05-31T10:00:00+0200.tif", 8, 0),
        ("timestamp", "a_2024-05-31T100000+02:00.tif", 8, 0),
        ("timestamp", "a_2024-05-31T10-00-00-05:30.tif", 15, 30),
        ("timestamp", "a_2024-05-31T10:00:00.000+02:00.tif", 8, 0),
        ("timestamp", "a_2024-05-31T10-00-00.000Z.tif", 10, 0),
        ("timestamp", "a_2024-05-31T10-00-00Z.tif", 10, 0),
        ("timestamp", "a_2024-05-31T10-00-00.tif", 10, 0),
        ("timestamp", "a_2024-05-31T10-00-00.2.tif", 10, 0),
        ("timestamp", "a_2024-05-31T10-00-00-0001.tif", 10, 0),
        ("timestamp", "a_2024-05-31T10-00-00-02000.tif", 10, 0),
        ("sentinel", "a_20240531T100000+0200.tif", 8, 0),
        ("sentinel", "S2A_MSIL2A_20240531T100000_N0510_R022.tif", 10, 0),
        ("planet", "20240531_100000-0130_0e26_3B.tif", 11, 30),
        ("planet", "20240531_100000_0e26_3B.tif", 10, 0),
    ],
)
def test_an_offset_in_the_name_of_a_file_counts(
    pattern: str, name: str, hour: int, minute: int
) -> None:
    found = acquired(parameters(datetime_pattern=pattern), facts(), name)

    assert found is not None
    assert found.instant == datetime(2024, 5, 31, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    "wrong",
    [{"datetime": "soon"}, {"datetime": "2024-05-31/2024-05-01"}, {"datetime_pattern": "mine"}],
)
def test_a_time_that_is_none_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(RuleViolation):
        acquired(parameters(**wrong), facts(), "scene.tif")


@given(
    width=st.integers(1, 9_000), height=st.integers(1, 9_000), tile=st.sampled_from([512, 2_048])
)
def test_tiles_cover_the_grid_once(width: int, height: int, tile: int) -> None:
    grid = GRID.model_copy(update={"width": width, "height": height, "tile": tile})
    found = list(tiles(grid))
    assert sum(window.width * window.height for _, window in found) == width * height
    assert len({(window.column, window.row) for _, window in found}) == len(found)
    assert len({index for index, _ in found}) == grid.columns * grid.rows


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=20), min_size=1, max_size=5))
def test_statistics_of_parts_are_those_of_the_whole(parts: list[list[float]]) -> None:
    (found,) = total(_part(values) for values in parts)
    whole = [value for values in parts for value in values]
    assert found.count == len(whole)
    if whole:
        mean = sum(whole) / len(whole)
        assert found.mean == pytest.approx(mean, abs=1e-3)
        variance = sum((value - mean) ** 2 for value in whole) / len(whole)
        assert deviation(found) == pytest.approx(variance**0.5, rel=1e-6, abs=1e-3)
        assert (found.minimum, found.maximum) == (min(whole), max(whole))


def _part(values: list[float]) -> TileInfo:
    if not values:
        return TileInfo(sha256="", size=0, bands=(BandSums(),), valid=0)
    mean = sum(values) / len(values)
    sums = BandSums(
        count=len(values),
        minimum=min(values),
        maximum=max(values),
        mean=mean,
        squares=sum((value - mean) ** 2 for value in values),
    )
    return TileInfo(sha256="", size=0, bands=(sums,), valid=len(values))


@pytest.mark.parametrize(("classes", "resampling"), [(True, "nearest"), (False, "bilinear")])
def test_classes_are_never_averaged(classes: bool, resampling: str) -> None:
    warped = GRID.model_copy(update={"method": "warp"})
    assert pixel_rules(facts(), parameters(classes=classes), warped).resampling == resampling


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"tiled": False, "block_height": 1, "compression": "DEFLATE"}, "in strips"),
        ({"tiled": False, "block_height": 1}, None),
        ({"block_width": 5_000, "block_height": 3_000}, "5000 x 3000"),
        ({"driver": "PNG"}, "from its beginning"),
        ({"subdataset": 2}, "a subdataset"),
    ],
)
def test_a_source_that_is_laid_out_badly_is_rewritten(
    changes: dict[str, object], reason: str | None
) -> None:
    found = needs_rewriting(facts(**changes), GRID)
    assert (found is None) if reason is None else (reason in (found or ""))


def test_different_nodata_values_are_made_one_even_of_a_small_raster() -> None:
    bands = (RasterBand(data_type="uint8", nodata=0), RasterBand(data_type="uint8", nodata=255))
    small = GRID.model_copy(update={"width": 10, "height": 10})
    assert needs_rewriting(facts(bands=bands), small) == "its bands have different nodata values"


def test_names_become_ids_that_stay_apart() -> None:
    assert item_ids(["a/scene.tif", "b/other.tif"], None) == ["scene", "other"]
    first, second = item_ids(["a/scene.tif", "b/scene.tif"], None)
    assert first != second
    strange, other = item_ids(["Köln 1.tif", "Koln 1.tif"], None)
    assert strange != other
    assert item_ids(["x.tif"], "mine") == ["mine"]


def test_files_beside_a_raster_are_known() -> None:
    assert is_sidecar("a/scene.tif.aux.xml")
    assert not is_sidecar("a/scene.tif")
    assert "a/scene.tfw" in sidecars_of("a/scene.tif")
    assert {"a/scene.jgw", "a/scene.TFW"} <= set(sidecars_of("a/scene.tif"))
    assert is_sidecar("a/scene.JGW")
    assert world_files_of("a/x.img")[:3] == ["a/x.igw", "a/x.imgw", "a/x.wld"]
    for name in ("a/x.tif", "x.TIFF", "x.jp2", "x.jpeg", "x.png", "x.img", "x.ntf"):
        assert set(map(str.lower, world_files_of(name))) <= set(map(str.lower, sidecars_of(name)))
        assert all(map(is_sidecar, world_files_of(name)))


def test_sources_that_differ_in_their_endings_alone_have_ids_of_their_own() -> None:
    ids = item_ids(["scene.tif", "scene.jp2", "w001.n45", "w001.n46", "other.tif"], None)
    assert len(set(ids)) == 5 and ids[4] == "other"
    assert item_ids(["scene.tif", "other.tif"], None) == ["scene", "other"]


def test_the_recipe_changes_with_what_shapes_a_dataset_alone() -> None:
    first = recipe(parameters(), 1)
    assert recipe(parameters(only_changed=False), 1) == first
    assert recipe(parameters(target_crs="EPSG:4326"), 1) != first
    assert recipe(parameters(), 2) != first


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"crs": None}, "parameter crs"),
        ({"transform": None}, "no geotransform"),
        ({"transform": None, "rpcs": {"HEIGHT_OFF": "1"}}, "orthorectify"),
        ({"ground_residual": 3.0}, "rectify the raster first"),
    ],
)
def test_what_has_no_place_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(RuleViolation, match=says):
        rasters.georeferenced(facts(**changes), parameters())


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": ()},
        {"source": ("a", "b"), "item": "x"},
        {"source": "a/", "item": "x"},
        {"sauce": "a"},
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|single|Extra"):
        RasterParameters.model_validate(wrong)


@pytest.mark.parametrize(
    ("kind", "nodata"),
    [("uint8", -9999), ("int8", 128), ("uint16", 1.5), ("int64", 2.0**63), ("uint8", float("nan"))],
)
def test_a_nodata_value_that_no_pixel_can_have_is_refused(kind: str, nodata: float) -> None:
    found = facts(bands=(RasterBand(data_type=kind),))
    with pytest.raises(RuleViolation, match=f"no pixel of type {kind}"):
        rasters.pixel_rules(found, parameters(nodata=nodata), GRID)


def test_parameters_that_a_source_contradicts_are_named() -> None:
    found = facts(bands=(RasterBand(data_type="uint8", nodata=0),), mask="nodata")
    given_ = parameters(nodata=255, crs="EPSG:4326")
    assert rasters.unused(found, given_) == [
        "parameter crs was not used: the raster says its reference system",
        "parameter nodata was not used: the raster says its nodata value",
    ]
    assert rasters.unused(found, parameters(nodata=0, crs="EPSG:32618")) == []
