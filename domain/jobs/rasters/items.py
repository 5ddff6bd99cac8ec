"""Facts of the STAC items of a dataset."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from contracts.jobs import (
    AssetFacts,
    BandFacts,
    BandStatistics,
    GridFacts,
    ItemFacts,
    LinkFacts,
)
from contracts.jobs.rasters import BandSums, CogFacts, DatasetPlan, PlacedAsset, RasterBand
from contracts.jobs.stac import COG, PNG
from domain.jobs.rasters.tiles import deviation
from domain.jobs.stac.footprints import footprint

SILVER: Final = "silver://"
BRONZE: Final = "bronze://"
SOURCE: Final = "docflow:source"
ETAG: Final = "docflow:source_version"
RECIPE: Final = "docflow:recipe"
PLACED_BY: Final = "docflow:placed_by"
_TYPES: Final = frozenset(
    {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}
)


def dataset_item(
    plan: DatasetPlan,
    cog: CogFacts,
    names: Mapping[str, str],
    *,
    collection: str,
    metadata: tuple[int, str],
    now: datetime,
    more: Mapping[str, Any],
) -> ItemFacts:
    """The item of a dataset that is one COG.

    Args:
        plan: How it was made.
        cog: The file.
        names: Blobs of the assets `data`, `thumbnail` and `metadata`.
        collection: Its id.
        metadata: Size and SHA-256 of the blob with the metadata.
        now: When it is catalogued.
        more: Properties beyond those of the source.
    """
    size, sha256 = metadata
    described = AssetFacts(
        href=SILVER + names["metadata"],
        media_type="application/json",
        roles=("metadata",),
        title="All that the source says of itself, and what was done to it",
        size=size,
        sha256=sha256,
    )
    return _item(plan, plan.item, cog, names, collection, now, more, {"metadata": described})


def tile_item(
    plan: DatasetPlan,
    placed: PlacedAsset,
    *,
    collection: str,
    now: datetime,
    more: Mapping[str, Any],
) -> ItemFacts:
    """The item of one tile of a dataset that is too large for one file."""
    assert placed.cog is not None and placed.preview is not None
    names = {"data": placed.asset, "thumbnail": placed.preview}
    mine = {**more, "docflow:dataset": plan.item}
    return _item(plan, tile_id(plan, placed), placed.cog, names, collection, now, mine, {})


def tile_id(plan: DatasetPlan, placed: PlacedAsset) -> str:
    """Id of a tile: that of its dataset, and its place."""
    tile = plan.grid.tile
    return f"{plan.item}_x{placed.window.column // tile}-y{placed.window.row // tile}"


def index_item(
    plan: DatasetPlan,
    tiles: Sequence[PlacedAsset],
    sums: Sequence[BandSums],
    *,
    collection: str,
    metadata: tuple[str, int, str],
    now: datetime,
    more: Mapping[str, Any],
) -> ItemFacts:
    """The item of a dataset that stays in tiles: it links to their items."""
    name, size, sha256 = metadata
    first = tiles[0].cog
    assert first is not None
    grid = GridFacts(
        code=first.code,
        wkt2=first.wkt2,
        shape=(plan.grid.height, plan.grid.width),
        transform=plan.grid.transform,
    )
    asset = AssetFacts(
        href=SILVER + name,
        media_type="application/json",
        roles=("metadata",),
        title="All that the source says of itself, and what was done to it",
        size=size,
        sha256=sha256,
        bands=_bands(plan, sums),
    )
    return ItemFacts(
        id=plan.item,
        collection=collection,
        geometry=footprint(grid),
        **_times(plan),
        created=now,
        updated=now,
        gsd=first.gsd,
        grid=grid,
        assets={"metadata": asset},
        links=(
            *_links(plan),
            *(LinkFacts(rel="item", href=f"./{tile_id(plan, each)}") for each in tiles[:9_000]),
        ),
        software=first.versions,
        lineage=lineage(plan),
        more=dict(more),
    )


def _item(
    plan: DatasetPlan,
    id: str,
    cog: CogFacts,
    names: Mapping[str, str],
    collection: str,
    now: datetime,
    more: Mapping[str, Any],
    assets: Mapping[str, AssetFacts],
) -> ItemFacts:
    grid = GridFacts(
        code=cog.code, wkt2=cog.wkt2, shape=(cog.height, cog.width), transform=cog.transform
    )
    data = AssetFacts(
        href=SILVER + names["data"],
        media_type=COG,
        roles=("data",),
        size=cog.size,
        sha256=cog.sha256,
        bands=_bands(plan, cog.bands, cog.width * cog.height),
    )
    picture = AssetFacts(
        href=SILVER + names["thumbnail"],
        media_type=PNG,
        roles=("thumbnail",),
        size=cog.preview_size,
        sha256=cog.preview_sha256,
    )
    return ItemFacts(
        id=id,
        collection=collection,
        geometry=cog.footprint or footprint(grid),
        **_times(plan),
        created=now,
        updated=now,
        gsd=cog.gsd,
        grid=grid,
        assets={"data": data, "thumbnail": picture, **assets},
        links=_links(plan),
        software=cog.versions,
        lineage=lineage(plan),
        more=dict(more),
    )


def _times(plan: DatasetPlan) -> dict[str, Any]:
    if plan.start == plan.end:
        return {"datetime": plan.start}
    return {"start": plan.start, "end": plan.end}


def _links(plan: DatasetPlan) -> tuple[LinkFacts, ...]:
    return (LinkFacts(rel="via", href=BRONZE + plan.name, title="Source"),)


def lineage(plan: DatasetPlan) -> str:
    """What was done to the source, in sentences."""
    sentences = [
        f"Made from {plan.name} (SHA-256 {plan.sha256}); time from the {plan.time_source}."
    ]
    grid = plan.grid
    if grid.method == "copy":
        sentences.append("Pixels are unchanged.")
    else:
        sentences.append(f"Resampled by {plan.rules.resampling} to {grid.crs}.")
    if (operation := grid.operation) is not None:
        accuracy = operation.accuracy_metres
        within = "unknown accuracy" if accuracy is None else f"accuracy {accuracy:g} m"
        sentences.append(f"Coordinates by: {operation.name} ({within}).")
        sentences.extend(f"Not available: {better}." for better in operation.better)
    sentences.extend(f"{note[:1].upper()}{note[1:]}." for note in plan.notes)
    return " ".join(sentences)[:5_000]


def _bands(
    plan: DatasetPlan, sums: Sequence[BandSums], pixels: int | None = None
) -> tuple[BandFacts, ...]:
    return tuple(
        _band(plan, number, band, counted, pixels or plan.grid.width * plan.grid.height)
        for number, (band, counted) in enumerate(zip(plan.facts.bands, sums, strict=True), 1)
    )


def _class_name(value: int, name: str) -> str:
    """The name of a class as STAC has it, of letters, digits and dashes."""
    return re.sub(r"[^0-9A-Za-z_-]+", "-", name).strip("-") or f"class-{value}"


def _band(
    plan: DatasetPlan, number: int, band: RasterBand, sums: BandSums, pixels: int
) -> BandFacts:
    more: dict[str, Any] = {}
    if band.categories:
        more["classification:classes"] = [
            {"value": value, "name": _class_name(value, name), "description": name}
            for value, name in enumerate(band.categories)
            if name
        ]
    statistics = None
    if sums.count and sums.minimum is not None and sums.maximum is not None:
        statistics = BandStatistics(
            minimum=sums.minimum,
            maximum=sums.maximum,
            mean=sums.mean,
            stddev=deviation(sums),
            count=sums.count,
            valid_percent=min(100.0, 100 * sums.count / pixels),
        )
    return BandFacts(
        name=band.description[:200] if band.description else f"b{number}",
        description=band.description,
        data_type=band.data_type if band.data_type in _TYPES else "other",  # type: ignore[arg-type]
        nodata=plan.rules.nodata if plan.rules.validity == "nodata" else None,
        unit=band.unit,
        scale=None if band.scale == 1 else band.scale,
        offset=None if band.offset == 0 else band.offset,
        statistics=statistics,
        more=more,
    )
