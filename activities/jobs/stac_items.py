"""STAC 1.1: items and collections, and whether they may enter the catalogue.

The JSON of items and collections.

Follows STAC 1.1.0 and its extensions projection 2.0.0, raster 2.0.0, file 2.1.0, table 1.2.0,
processing 1.2.0 and classification 2.0.0.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, cast

import shapely
from jsonschema import Draft7Validator
from pystac.validation.local_validator import get_local_schema_cache
from referencing import Registry, Resource

from adapters.files.footprints import bounds, check_footprint, footprint, read
from workflows.jobs.datasets import (
    COG,
    COLLECTION_ID,
    ITEM_ID,
    PNG,
    SCHEMAS,
    AssetInfo,
    BandInfo,
    BandStatistics,
    CollectionInfo,
    GridInfo,
    ItemInfo,
    LinkInfo,
    TableInfo,
    extension_problems,
)
from workflows.jobs.rasters import (
    BandSums,
    CogInfo,
    DatasetPlan,
    PlacedAsset,
    RasterBand,
    deviation,
)
from workflows.shared.errors import InvalidDocument, RuleViolation
from workflows.shared.patterns import compiled_pattern

VERSION: Final = "1.1.0"
ITEM_IDS: Final = "docflow:item_ids"
"""Field of a collection: the pattern of the ids of its items."""
CHECKSUM: Final = "file:checksum"
_SHA256: Final = "1220"
"""What precedes a SHA-256 of 32 bytes in a multihash."""
JsonObject = dict[str, Any]


def build_item(facts: ItemInfo) -> JsonObject:
    """The item of a dataset, without the links that an API adds.

    Raises:
        ValueError: The geometry cannot be read.
    """
    assets = {key: _asset(asset) for key, asset in facts.assets.items()}
    properties = _properties(facts)
    return {
        "type": "Feature",
        "stac_version": VERSION,
        "stac_extensions": _extensions(properties, *_fields(assets)),
        "id": facts.id,
        "collection": facts.collection,
        "geometry": facts.geometry,
        "bbox": list(facts.bbox or bounds(facts.geometry)),
        "properties": properties,
        "links": [_collection_link(facts), *(_present(link.model_dump()) for link in facts.links)],
        "assets": assets,
    }


def build_collection(facts: CollectionInfo) -> JsonObject:
    """A collection without items: its extent is the whole Earth at any time, until one comes."""
    own = {} if facts.item_ids == ITEM_ID else {ITEM_IDS: facts.item_ids}
    return _present(
        {
            "type": "Collection",
            "stac_version": VERSION,
            "id": facts.id,
            "title": facts.title,
            "description": facts.description,
            "license": facts.license,
            "keywords": list(facts.keywords) or None,
            **own,
            "extent": {
                "spatial": {"bbox": [[-180.0, -90.0, 180.0, 90.0]]},
                "temporal": {"interval": [[None, None]]},
            },
            "links": [],
        }
    )


def _collection_link(facts: ItemInfo) -> JsonObject:
    """STAC demands it; relative to the item's place in the API, which gives the whole of it."""
    return {
        "rel": "collection",
        "href": f"../../{facts.collection}",
        "type": "application/json",
    }


def moment(value: datetime) -> str:
    """A time as STAC has it: RFC 3339 in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _properties(facts: ItemInfo) -> JsonObject:
    times: JsonObject = {"datetime": None if facts.datetime is None else moment(facts.datetime)}
    if facts.start is not None and facts.end is not None:
        times |= {"start_datetime": moment(facts.start), "end_datetime": moment(facts.end)}
    described = _present(
        {
            "created": moment(facts.created),
            "updated": moment(facts.updated),
            "title": facts.title,
            "description": facts.description,
            "gsd": facts.gsd,
            "processing:software": facts.software or None,
            "processing:lineage": facts.lineage,
        }
    )
    return times | described | _grid(facts.grid) | _table(facts.table) | facts.more


def _asset(asset: AssetInfo) -> JsonObject:
    checksum = None if asset.sha256 is None else _SHA256 + asset.sha256
    described = {
        "href": asset.href,
        "type": asset.media_type,
        "title": asset.title,
        "roles": list(asset.roles),
        "file:size": asset.size,
        CHECKSUM: checksum,
        "bands": [_band(band) for band in asset.bands] or None,
    }
    return _present(described) | _grid(asset.grid)


def _band(band: BandInfo) -> JsonObject:
    statistics = None if band.statistics is None else _present(band.statistics.model_dump())
    described = {
        "name": band.name,
        "description": band.description,
        "data_type": band.data_type,
        "nodata": band.nodata,
        "unit": band.unit,
        "raster:scale": band.scale,
        "raster:offset": band.offset,
        "statistics": statistics,
    }
    return _present(described) | band.more


def _grid(grid: GridInfo | None) -> JsonObject:
    if grid is None:
        return {}
    return {
        # A system without a code says so by null, and is given by its text.
        "proj:code": grid.code,
        **({} if grid.code else {"proj:wkt2": grid.wkt2}),
        "proj:shape": list(grid.shape),
        "proj:transform": list(grid.transform),
    }


def _table(table: TableInfo | None) -> JsonObject:
    if table is None:
        return {}
    described = {
        "table:columns": [_present(column.model_dump()) for column in table.columns],
        "table:primary_geometry": table.primary_geometry,
        "table:row_count": table.row_count,
    }
    return _present(described)


def _fields(assets: Mapping[str, JsonObject]) -> list[JsonObject]:
    """What in assets may belong to an extension."""
    return [part for asset in assets.values() for part in (asset, *asset.get("bands", []))]


def _extensions(*parts: Mapping[str, Any]) -> list[str]:
    names = {name for part in parts for name in part}
    return [
        schema
        for prefix, schema in SCHEMAS.items()
        if any(name.startswith(prefix) for name in names)
    ]


def _present(values: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


ITEM_BYTES: Final = 1_000_000
"""An item that is longer is refused."""
_PROBLEMS: Final = 5
"""How many of the problems a message names."""
_DEGREE: Final = 1e-6
"""Two bounds that differ by less are the same: a tenth of a metre."""
_WIDEST: Final = 180.0
"""Degrees between neighbouring points; where there are more, a line took the wrong way round."""

JsonMapping = Mapping[str, Any]


def check_item(item: JsonMapping, collection: JsonMapping) -> None:
    """Check one item.

    Its JSON is strict and follows the schema of STAC 1.1, its geometry is valid, its bounds are
    those of the geometry, its footprint is that of the raster where it says which one, its id
    follows the pattern that its collection declares, it has a time, and fields of extensions hold
    what these allow and are declared.

    Raises:
        InvalidDocument: Something is wrong; the message names it.
    """
    _strict(item, "the item")
    problems = [*_by_schema("item", _with_short_geometry(item))] or [
        *_identity(item, collection),
        *_geometry(item),
        *_times(item["properties"]),
        *extension_problems(item),
    ]
    if problems:
        raise InvalidDocument(f"item {item.get('id')!r}: {_joined(problems)}")


def check_collection(collection: JsonMapping) -> None:
    """Check a collection: strict JSON, the schema of STAC 1.1, its id and pattern.

    Raises:
        InvalidDocument: Something is wrong; the message names it.
    """
    _strict(collection, "the collection")
    problems = [*_by_schema("collection", collection)]
    id = str(collection.get("id"))
    if not re.fullmatch(COLLECTION_ID, id):
        problems.append(f"id: it has to match {COLLECTION_ID}")
    pattern = collection.get(ITEM_IDS, ITEM_ID)
    try:
        compiled_pattern(pattern)
    except RuleViolation as error:
        problems.append(f"{ITEM_IDS}: {error}")
    except TypeError:  # a list
        problems.append(f"{ITEM_IDS}: is not a pattern: write it as a text")
    if problems:
        raise InvalidDocument(f"collection {id!r}: {_joined(problems)}")


def parsed_moment(text: str) -> datetime:
    """A time of RFC 3339.

    Raises:
        ValueError: It is none, or has no offset.
    """
    if not _RFC_3339.fullmatch(text):
        raise ValueError(f"{text!r} is not a time of RFC 3339, as 2024-05-01T12:00:00Z")
    return datetime.fromisoformat(text.upper().replace("Z", "+00:00"))


_RFC_3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})"
)


_WITH_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def _strict(value: JsonMapping, what: str) -> None:
    try:
        content = json.dumps(value, allow_nan=False, ensure_ascii=False)
        size = len(content.encode())
    except (TypeError, ValueError) as error:
        raise InvalidDocument(f"{what} cannot be strict JSON: {error}") from error
    if _WITH_NUL.search(content):
        raise InvalidDocument(f"{what} has a text with a NUL, which cannot be stored")
    if size > ITEM_BYTES:
        raise InvalidDocument(f"{what} has {size} bytes of JSON; {ITEM_BYTES} is the most")


def _with_short_geometry(item: JsonMapping) -> JsonMapping:
    """The schema looks at each point, for milliseconds; reading the geometry checks the same."""
    geometry = item.get("geometry")
    if not isinstance(geometry, Mapping):
        return item
    try:
        read(cast(JsonMapping, geometry))
    except ValueError:
        return item
    return {**item, "geometry": {"type": "Point", "coordinates": [0.0, 0.0]}}


def _by_schema(kind: Literal["item", "collection"], value: JsonMapping) -> Iterator[str]:
    errors = sorted(_validator(kind).iter_errors(value), key=lambda error: str(error.path))
    for error in errors:
        # What an `allOf` or `anyOf` failed for stands in its parts.
        for part in error.context or [error]:
            path = ".".join(map(str, part.absolute_path)) or "the whole"
            yield f"{path}: {part.message[:300]}"


@cache
def _validator(kind: Literal["item", "collection"]) -> Any:
    """Made once; it needs no network."""
    schemas = get_local_schema_cache()
    resources = [(uri, Resource.from_contents(schema)) for uri, schema in schemas.items()]
    registry: Any = cast(Any, Registry)().with_resources(resources)
    uri = next(uri for uri in schemas if uri.endswith(f"/{kind}.json") and "stacspec" in uri)
    return Draft7Validator(schemas[uri], registry=registry)


def _identity(item: JsonMapping, collection: JsonMapping) -> Iterator[str]:
    if item.get("collection") != collection["id"]:
        yield f"collection: {item.get('collection')!r} is not {collection['id']!r}"
    pattern = collection.get(ITEM_IDS, ITEM_ID)
    for each in dict.fromkeys((ITEM_ID, pattern)):
        try:
            is_right = compiled_pattern(each)(item["id"])
        except RuleViolation as error:
            yield f"{ITEM_IDS} of the collection: {error}; correct the collection"
            continue
        if not is_right:
            yield f"id: ids of this collection match {each}"


def _geometry(item: JsonMapping) -> Iterator[str]:
    geometry = item["geometry"]
    if geometry is None:
        yield "geometry: an item without a place cannot be found"
        return
    try:
        shape = read(geometry)
    except ValueError as error:
        yield f"geometry: {error}"
        return
    if not shape.is_valid:
        yield f"geometry: {shapely.is_valid_reason(shape)}"
        return
    west, south, east, north = shape.bounds
    if west < -180 or east > 180 or south < -90 or north > 90:
        yield f"geometry: {west:g} {south:g} {east:g} {north:g} is not within the Earth's degrees"
    elif _leaps(shape):
        yield "geometry: a line spans more than 180 degrees; cut it at the antimeridian"
    else:
        yield from _bounds(item["bbox"], geometry)
        yield from _header(item["properties"], geometry)


def _leaps(shape: Any) -> bool:
    """Whether neighbouring points are far apart in longitude, but along a parallel at a pole."""
    lines = shapely.get_parts(shapely.get_rings(shape)) if shape.area else [shape]
    for line in lines:
        points = shapely.get_coordinates(line)
        steps = abs(points[1:, 0] - points[:-1, 0])
        level = points[1:, 1] == points[:-1, 1]
        if bool(((steps > _WIDEST) & ~level).any()):
            return True
    return False


def _bounds(bbox: Sequence[float], geometry: JsonMapping) -> Iterator[str]:
    box = [bbox[0], bbox[1], bbox[3], bbox[4]] if len(bbox) == 6 else bbox
    expected = bounds(geometry)
    if any(abs(a - b) > _DEGREE for a, b in zip(box, expected, strict=True)):
        shown = ", ".join(f"{value:g}" for value in expected)
        yield f"bbox: {list(bbox)} is not that of the geometry, [{shown}]"


def _header(properties: JsonMapping, geometry: JsonMapping) -> Iterator[str]:
    shape, transform = properties.get("proj:shape"), properties.get("proj:transform")
    code, wkt2 = properties.get("proj:code"), properties.get("proj:wkt2")
    if not shape or not transform or not (code or wkt2):
        return
    try:
        grid = GridInfo(code=code, wkt2=wkt2, shape=shape, transform=tuple(transform[:6]))
        check_footprint(geometry, grid)
    except InvalidDocument as error:
        yield f"geometry: {error}"
    except ValueError as error:
        yield f"properties: the grid is not usable: {error}"


def _times(properties: JsonMapping) -> Iterator[str]:
    found: dict[str, datetime] = {}
    for name in ("datetime", "start_datetime", "end_datetime", "created", "updated"):
        if (value := properties.get(name)) is None:
            continue
        try:
            found[name] = parsed_moment(value)
        except (TypeError, ValueError) as error:
            yield f"{name}: {error}"
    start, end = found.get("start_datetime"), found.get("end_datetime")
    if start is not None and end is not None and start > end:
        yield "start_datetime: it is after end_datetime"


def _joined(problems: Sequence[str]) -> str:
    shown = "; ".join(problems[:_PROBLEMS])
    more = len(problems) - _PROBLEMS
    return f"{shown}; and {more} more" if more > 0 else shown


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
    cog: CogInfo,
    names: Mapping[str, str],
    *,
    collection: str,
    metadata: tuple[int, str],
    now: datetime,
    more: Mapping[str, Any],
) -> ItemInfo:
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
    described = AssetInfo(
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
) -> ItemInfo:
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
) -> ItemInfo:
    """The item of a dataset that stays in tiles: it links to their items."""
    name, size, sha256 = metadata
    first = tiles[0].cog
    assert first is not None
    grid = GridInfo(
        code=first.code,
        wkt2=first.wkt2,
        shape=(plan.grid.height, plan.grid.width),
        transform=plan.grid.transform,
    )
    asset = AssetInfo(
        href=SILVER + name,
        media_type="application/json",
        roles=("metadata",),
        title="All that the source says of itself, and what was done to it",
        size=size,
        sha256=sha256,
        bands=_bands(plan, sums),
    )
    return ItemInfo(
        id=plan.item,
        collection=collection,
        geometry=footprint(grid),
        **_raster_times(plan),
        created=now,
        updated=now,
        gsd=first.gsd,
        grid=grid,
        assets={"metadata": asset},
        links=(
            *_links(plan),
            *(LinkInfo(rel="item", href=f"./{tile_id(plan, each)}") for each in tiles[:9_000]),
        ),
        software=first.versions,
        lineage=lineage(plan),
        more=dict(more),
    )


def _item(
    plan: DatasetPlan,
    id: str,
    cog: CogInfo,
    names: Mapping[str, str],
    collection: str,
    now: datetime,
    more: Mapping[str, Any],
    assets: Mapping[str, AssetInfo],
) -> ItemInfo:
    grid = GridInfo(
        code=cog.code, wkt2=cog.wkt2, shape=(cog.height, cog.width), transform=cog.transform
    )
    data = AssetInfo(
        href=SILVER + names["data"],
        media_type=COG,
        roles=("data",),
        size=cog.size,
        sha256=cog.sha256,
        bands=_bands(plan, cog.bands, cog.width * cog.height),
    )
    picture = AssetInfo(
        href=SILVER + names["thumbnail"],
        media_type=PNG,
        roles=("thumbnail",),
        size=cog.preview_size,
        sha256=cog.preview_sha256,
    )
    return ItemInfo(
        id=id,
        collection=collection,
        geometry=cog.footprint or footprint(grid),
        **_raster_times(plan),
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


def _raster_times(plan: DatasetPlan) -> dict[str, Any]:
    if plan.start == plan.end:
        return {"datetime": plan.start}
    return {"start": plan.start, "end": plan.end}


def _links(plan: DatasetPlan) -> tuple[LinkInfo, ...]:
    return (LinkInfo(rel="via", href=BRONZE + plan.name, title="Source"),)


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
) -> tuple[BandInfo, ...]:
    return tuple(
        _raster_band(plan, number, band, counted, pixels or plan.grid.width * plan.grid.height)
        for number, (band, counted) in enumerate(zip(plan.facts.bands, sums, strict=True), 1)
    )


def _class_name(value: int, name: str) -> str:
    """The name of a class as STAC has it, of letters, digits and dashes."""
    return re.sub(r"[^0-9A-Za-z_-]+", "-", name).strip("-") or f"class-{value}"


def _raster_band(
    plan: DatasetPlan, number: int, band: RasterBand, sums: BandSums, pixels: int
) -> BandInfo:
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
    return BandInfo(
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
