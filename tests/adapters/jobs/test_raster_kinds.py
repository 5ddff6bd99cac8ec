"""Nothing of a raster is lost or changed in silence: each kind of pixel, place and metadata."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine

from activities.jobs.api import InputNeeded
from tests.support.jobs import rasters as made
from tests.support.jobs.raster_jobs import DAY, RasterJobs, processed, refused

RPC_ONES = [
    f"{name}_{what}"
    for name in ("LINE", "SAMP", "LAT", "LONG", "HEIGHT")
    for what in ("OFF", "SCALE")
]
RPC_LISTS = [f"{name}_{what}_COEFF" for name in ("LINE", "SAMP") for what in ("NUM", "DEN")]
DEGREES = {**DAY, "target_crs": "EPSG:4326"}


@pytest.mark.parametrize("target", [None, "EPSG:4326"])
async def test_scale_offset_units_names_and_tags_are_kept(
    jobs: RasterJobs, tmp_path: Path, target: str | None
) -> None:
    path = made.write(tmp_path / "scene.tif", made.values(2, 60, 80, "int16"), nodata=-1)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets, file.units = (0.01, 0.02), (1.0, 2.0), ("K", "m")
        file.set_band_description(1, "temperature")
        file.update_tags(AUTHOR="Ida")
        file.update_tags(2, sensor="B2")
    item, out = await processed(jobs, path, target_crs=target)
    with rasterio.open(out) as file:
        assert (file.scales, file.offsets, file.units) == ((0.01, 0.02), (1.0, 2.0), ("K", "m"))
        assert file.descriptions == ("temperature", None)
        assert file.tags()["AUTHOR"] == "Ida"
        assert file.tags(2)["sensor"] == "B2"
        assert file.nodata == -1
    first = item["assets"]["data"]["bands"][0]
    assert (first["raster:scale"], first["raster:offset"]) == (0.01, 1.0)
    assert (first["name"], first["unit"], first["nodata"]) == ("temperature", "K", -1)


async def test_palettes_are_kept_and_classes_are_never_interpolated(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    pixels = (made.values(1, 600, 640) % 3 + 1).astype("uint8")
    palette = {1: (255, 0, 0, 255), 2: (0, 255, 0, 255), 3: (0, 0, 255, 255)}
    path = made.write(tmp_path / "classes.tif", pixels, palette=palette, nodata=0)
    _, out = await processed(jobs, path, target_crs="EPSG:4326")
    with rasterio.open(out) as file:
        assert {value: file.colormap(1)[value] for value in palette} == palette
        assert set(np.unique(file.read())) == {0, 1, 2, 3}
        assert file.tags(ns="IMAGE_STRUCTURE").get("OVERVIEW_RESAMPLING", "NEAREST") == "NEAREST"
        overview = file.read(1, out_shape=(300, 320))
        assert set(np.unique(overview)) <= {0, 1, 2, 3}
    said = await refused(jobs, path.rename(tmp_path / "c2.tif"), **DEGREES, resampling="cubic")
    assert "would invent values between them" in said


async def test_names_of_classes_are_in_the_item(jobs: RasterJobs, tmp_path: Path) -> None:
    pixels = (made.values(1, 60, 80) % 3).astype("uint8")
    rows = "".join(
        f'<Row index="{value}"><F>{name}</F></Row>'
        for value, name in enumerate(("none", "water", "forest"))
    )
    table = (
        '<GDALRasterAttributeTable tableType="thematic"><FieldDefn index="0"><Name>Class_Names'
        f"</Name><Type>2</Type><Usage>2</Usage></FieldDefn>{rows}</GDALRasterAttributeTable>"
    )
    path = made.imagine(tmp_path / "classes.img", pixels, [table])
    item, out = await processed(jobs, path, target_crs="EPSG:4326")
    classes = item["assets"]["data"]["bands"][0]["classification:classes"]
    assert classes[1:] == [
        {"value": 1, "name": "water", "description": "water"},
        {"value": 2, "name": "forest", "description": "forest"},
    ]
    with rasterio.open(out) as file:
        assert set(np.unique(file.read())) <= {0, 1, 2}


async def test_other_columns_of_attribute_tables_are_named(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    columns = "".join(
        f'<FieldDefn index="{at}"><Name>{name}</Name><Type>{kind}</Type><Usage>{usage}</Usage>'
        "</FieldDefn>"
        for at, (name, kind, usage) in enumerate((("Class_Names", 2, 2), ("Area", 1, 0)))
    )
    rows = "".join(f'<Row index="{at}"><F>c{at}</F><F>1.5</F></Row>' for at in range(3))
    table = (
        f'<GDALRasterAttributeTable tableType="thematic">{columns}{rows}</GDALRasterAttributeTable>'
    )
    pixels = (made.values(1, 60, 80) % 3).astype("uint8")
    item, _ = await processed(jobs, made.imagine(tmp_path / "classes.img", pixels, [table]))
    assert len(item["assets"]["data"]["bands"][0]["classification:classes"]) == 3
    assert "olumns of the attribute table of band 1 left out: 'Area'" in str(item["properties"])


async def test_metadata_of_bands_that_are_cut_and_coefficients_are_named(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    path = made.write(tmp_path / "long.tif", made.values(1, 60, 80))
    with rasterio.open(path, "r+") as file:
        file.update_tags(1, LONG="x" * 5_000)
        file.update_tags(
            ns="RPC", **dict.fromkeys(RPC_ONES, "1") | dict.fromkeys(RPC_LISTS, "1 " * 20)
        )
    item, _ = await processed(jobs, path)
    said = str(item["properties"])
    assert "metadata of band 1 was cut" in said.replace("Metadata", "metadata")
    assert "ational polynomial coefficients are in the metadata asset and not in the file" in said
    asset = await jobs.file(item["assets"]["metadata"]["href"])
    assert set(RPC_ONES) <= json.loads(asset.read_text())["facts"]["rpcs"].keys()


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        ("-99", {}),
        ("1.5", {}),
        ("nan", {"BIGTIFF": "YES"}),
        ("-1", {"ENDIANNESS": "BIG"}),
    ],
)
async def test_a_nodata_value_that_no_pixel_can_have_is_named_and_not_used(
    jobs: RasterJobs, tmp_path: Path, stated: str, kind: dict[str, str]
) -> None:
    path = made.write(tmp_path / "odd.tif", made.values(1, 60, 80), nodata=200, **kind)
    content = path.read_bytes()
    assert content.count(b"200\0") == 1
    path.write_bytes(content.replace(b"200\0", stated.encode().ljust(4, b"\0")))
    item, out = await processed(jobs, path)
    said = str(item["properties"]["docflow:notes"])
    assert f"nodata value {stated!r} of the file was not used: no pixel of type uint8" in said
    with rasterio.open(out) as file:
        assert file.nodata is None
    assert item["assets"]["data"]["bands"][0]["statistics"]["valid_percent"] == 100


@pytest.mark.parametrize("more", [{}, {"single_file_bytes": 1}])
async def test_a_raster_without_a_value_is_reported(
    jobs: RasterJobs, tmp_path: Path, more: dict[str, Any]
) -> None:
    path = made.write(tmp_path / "void.tif", np.zeros((1, 60, 80), "uint8"), nodata=0)
    result = await jobs.run(await jobs.put(path), **DAY, **more)
    item = await jobs.resources.catalogue.item("rasters", "void")
    assert item is not None
    assert "no pixel of it has a value" in item["properties"]["docflow:notes"]
    assert "no pixel of it has a value" in result["items"][0]["notes"]


async def test_documents_in_tags_are_in_the_metadata_asset(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    path = made.write(tmp_path / "xmp.tif", made.values(1, 60, 80))
    with rasterio.open(path, "r+") as file:
        file.update_tags(ns="xml:XMP", **{"xml:XMP": "<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"})
    item, _ = await processed(jobs, path)
    assert "'xml:XMP' are in the metadata asset and not in the file" in str(item["properties"])
    asset = await jobs.file(item["assets"]["metadata"]["href"])
    assert "xml:XMP" in json.loads(asset.read_text())["facts"]["tags"]


async def test_ground_control_points_place_a_raster_and_are_named(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    path = made.write(
        tmp_path / "gcps.tif", made.values(1, 60, 80), points=made.points(80, 60), crs="EPSG:32618"
    )
    item, out = await processed(jobs, path)
    assert "5 ground control points" in item["properties"]["docflow:notes"][0]
    with rasterio.open(out) as file:
        assert file.transform.almost_equals(made.UTM, 1e-3)
    bent = made.write(
        tmp_path / "bent.tif",
        made.values(1, 60, 80),
        points=made.points(80, 60, bend=20),
        crs="EPSG:32618",
    )
    assert "rectify the raster first" in await refused(jobs, bent)


async def test_several_rasters_in_a_file_are_asked_about(jobs: RasterJobs, tmp_path: Path) -> None:
    path = made.write(tmp_path / "pages.tif", made.values(1, 60, 80))
    made.write(path, made.values(1, 40, 50, seed=2), APPEND_SUBDATASET="YES")
    name = await jobs.put(path)
    with pytest.raises(InputNeeded, match="holds 2 rasters") as asked:
        await jobs.run(name, **DAY)
    assert asked.value.parameter == "subdataset"
    with pytest.raises(InputNeeded, match=r"there is no number 99: .* holds 2 rasters"):
        await jobs.run(name, **DAY, subdataset=99)
    item, out = await processed(jobs, path, subdataset=2)
    assert "of its 2 rasters, number 2" in item["properties"]["docflow:notes"]
    with rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read(), made.values(1, 40, 50, seed=2))


async def test_big_integers_are_kept_or_refused_never_rounded(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    pixels = made.values(1, 60, 80, "int64") + 2**60
    path = made.write(tmp_path / "big.tif", pixels)
    _, out = await processed(jobs, path)
    with rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read(), pixels)
    again = path.rename(tmp_path / "big2.tif")
    assert "would be rounded" in await refused(jobs, again, **DEGREES)


async def test_a_big_nodata_value_is_refused(jobs: RasterJobs, tmp_path: Path) -> None:
    path = made.write(tmp_path / "big.tif", made.values(1, 60, 80, "int64"), nodata=-(2.0**53) - 2)
    assert "beyond 2^53" in await refused(jobs, path)


async def test_what_has_no_place_is_refused_with_what_to_do(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    pixels = made.values(1, 60, 80)
    path = made.write(tmp_path / "nowhere.tif", pixels, crs=None)
    assert "give it as parameter crs" in await refused(jobs, path)
    item, _ = await processed(jobs, path, crs="EPSG:32618")
    assert item["properties"]["proj:code"] == "EPSG:32618"
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        bare = made.write(tmp_path / "bare.tif", pixels, transform=None)
    assert "no geotransform" in await refused(jobs, bare)


async def test_a_complex_raster_is_refused(jobs: RasterJobs, tmp_path: Path) -> None:
    path = made.write(tmp_path / "sar.tif", made.values(1, 20, 20).astype("complex64"))
    assert "amplitude and phase" in await refused(jobs, path)


async def test_a_raster_across_the_antimeridian_stays_in_one_piece(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    across = Affine(30_000.0, 0, -500_000.0, 0, -30_000.0, 8_000_000.0)
    path = made.write(
        tmp_path / "fiji.tif", made.values(1, 20, 40), crs="EPSG:32601", transform=across
    )
    item, out = await processed(jobs, path, target_crs="EPSG:4326")
    with rasterio.open(out) as file:
        assert file.width < 200
        assert file.bounds.left < 180 < file.bounds.right
    west, _, east, _ = item["bbox"]
    assert west > 150
    assert east < -150
    assert item["geometry"]["type"] == "MultiPolygon"
    again = path.rename(tmp_path / "fiji2.tif")
    assert "antimeridian" in await refused(jobs, again, target_crs="EPSG:3857")


async def test_a_raster_over_a_pole_keeps_its_system(jobs: RasterJobs, tmp_path: Path) -> None:
    polar = Affine(100_000.0, 0, -2_000_000.0, 0, -100_000.0, 2_000_000.0)
    path = made.write(
        tmp_path / "pole.tif", made.values(1, 40, 40), crs="EPSG:3413", transform=polar
    )
    item, _ = await processed(jobs, path)
    assert item["bbox"][3] == 90
    again = path.rename(tmp_path / "pole2.tif")
    assert "holds the north pole" in await refused(jobs, again, **DEGREES)


async def test_a_shift_of_the_datum_is_recorded_or_refused(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    gauss = Affine(10.0, 0, 3_400_000.0, 0, -10.0, 5_600_000.0)
    path = made.write(
        tmp_path / "dhdn.tif", made.values(1, 60, 80), crs="EPSG:31467", transform=gauss
    )
    item, _ = await processed(jobs, path, target_crs="EPSG:4326")
    said = item["properties"]["processing:lineage"]
    assert "accuracy" in said
    local = made.write(
        tmp_path / "local.tif", made.values(1, 60, 80), crs="EPSG:3035", transform=gauss
    )
    assert "allow_ballpark" in await refused(jobs, local, target_crs="EPSG:32618")
    item, _ = await processed(jobs, local, target_crs="EPSG:32618", allow_ballpark=True)
    assert "ballpark" in item["properties"]["processing:lineage"]


async def test_files_beside_a_raster_are_named_and_not_read(
    jobs: RasterJobs, tmp_path: Path
) -> None:
    path = made.write(tmp_path / "scene.tif", made.values(1, 60, 80))
    note = tmp_path / "note"
    note.write_text("x")
    await jobs.put(note, "scene.tif.ovr")
    await jobs.put(note, "scene.tfw")
    item, _ = await processed(jobs, path)
    notes = item["properties"]["docflow:notes"]
    assert "scene.tif.ovr lies beside it and was not read" in notes
    assert "scene.tfw lies beside it and was not read" in notes


@pytest.mark.real_rasters
@pytest.mark.parametrize("name", ["RGB.byte.tif", "world.rgb.tif", "cogeo.tif"])
async def test_real_rasters_keep_their_pixels(jobs: RasterJobs, name: str) -> None:
    item, out = await processed(jobs, made.SHARED / name)
    with rasterio.open(made.SHARED / name) as source, rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read(), source.read())
        np.testing.assert_array_equal(file.dataset_mask(), source.dataset_mask())
        assert file.transform == source.transform
    assert item["assets"]["data"]["file:size"] == out.stat().st_size
