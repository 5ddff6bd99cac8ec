"""The JSON of items and collections.

Follows STAC 1.1.0 and its extensions projection 2.0.0, raster 2.0.0, file 2.1.0, table 1.2.0,
processing 1.2.0 and classification 2.0.0.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from contracts.jobs.stac import (
    ITEM_ID,
    AssetFacts,
    BandFacts,
    CollectionFacts,
    GridFacts,
    ItemFacts,
    TableFacts,
)
from domain.jobs.stac.extensions import SCHEMAS
from domain.jobs.stac.footprints import bounds

VERSION: Final = "1.1.0"
ITEM_IDS: Final = "docflow:item_ids"
"""Field of a collection: the pattern of the ids of its items."""
CHECKSUM: Final = "file:checksum"
_SHA256: Final = "1220"
"""What precedes a SHA-256 of 32 bytes in a multihash."""
JsonObject = dict[str, Any]


def build_item(facts: ItemFacts) -> JsonObject:
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


def build_collection(facts: CollectionFacts) -> JsonObject:
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


def _collection_link(facts: ItemFacts) -> JsonObject:
    """STAC demands it; relative to the item's place in the API, which gives the whole of it."""
    return {
        "rel": "collection",
        "href": f"../../{facts.collection}",
        "type": "application/json",
    }


def moment(value: datetime) -> str:
    """A time as STAC has it: RFC 3339 in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _properties(facts: ItemFacts) -> JsonObject:
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


def _asset(asset: AssetFacts) -> JsonObject:
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


def _band(band: BandFacts) -> JsonObject:
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


def _grid(grid: GridFacts | None) -> JsonObject:
    if grid is None:
        return {}
    return {
        # A system without a code says so by null, and is given by its text.
        "proj:code": grid.code,
        **({} if grid.code else {"proj:wkt2": grid.wkt2}),
        "proj:shape": list(grid.shape),
        "proj:transform": list(grid.transform),
    }


def _table(table: TableFacts | None) -> JsonObject:
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
