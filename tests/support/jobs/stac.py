"""Items and collections for tests: boxes in degrees at a moment."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from activities.jobs.catalogue import Catalogue
from activities.jobs.ports import CatalogueQuery
from activities.jobs.stac_items import build_collection, build_item
from workflows.jobs.datasets import (
    COG,
    AssetInfo,
    CollectionInfo,
    ItemInfo,
    box_geometry,
    split_box,
)

FIRST: Final = datetime(2024, 5, 1, 10, 0, tzinfo=UTC)
Box = tuple[float, float, float, float]


def asset(**changes: Any) -> AssetInfo:
    """A COG of five bytes."""
    known = {
        "href": "silver://scene.tif",
        "media_type": COG,
        "roles": ("data",),
        "size": 5,
        "sha256": "ab" * 32,
    }
    return AssetInfo.model_validate(known | changes)


def facts(id: str = "scene-1", *, box: Box = (3, 50, 4, 51), **changes: Any) -> ItemInfo:
    """Facts of a scene over a box."""
    known = {
        "id": id,
        "collection": "scenes",
        "geometry": box_geometry(split_box(box)),
        "datetime": FIRST,
        "created": FIRST,
        "updated": FIRST,
        "assets": {"data": asset()},
    }
    return ItemInfo.model_validate(known | changes)


def item(id: str = "scene-1", *, days: float = 0, **changes: Any) -> dict[str, Any]:
    """An item, some days after the first."""
    moment = {} if "start" in changes else {"datetime": FIRST + timedelta(days=days)}
    return build_item(facts(id, **moment, **changes))


def ranged(id: str, start: float, end: float, **changes: Any) -> dict[str, Any]:
    """An item over a range of days after the first."""
    begins, ends = FIRST + timedelta(days=start), FIRST + timedelta(days=end)
    return item(id, datetime=None, start=begins, end=ends, **changes)


def collection(id: str = "scenes", **changes: Any) -> dict[str, Any]:
    """A collection without items."""
    return build_collection(CollectionInfo(id=id, description="Scenes of a test", **changes))


def ids(items: Any) -> list[str]:
    """Of items, in their order."""
    return [str(each["id"]) for each in items]


def altered(value: Mapping[str, Any], path: str, to: Any) -> dict[str, Any]:
    """A copy with another value at a path of keys, as `properties datetime`."""
    name, _, rest = path.partition(" ")
    return {**value, name: altered(value[name], rest, to) if rest else to}


EVERYWHERE: Final = CatalogueQuery(limit=100)
PARIS: Final = (2.0, 48.0, 3.0, 49.0)


async def put_scenes(catalogue: Catalogue) -> Catalogue:
    """Four scenes: Paris, two later ones east of it, and one across the antimeridian."""
    await catalogue.put_collection(collection())
    await catalogue.put_items(
        "scenes",
        [
            item("paris", box=PARIS, more={"eo:cloud_cover": 12.5, "platform": "kestrel"}),
            item("east", days=1, box=(20, 40, 21, 41), more={"eo:cloud_cover": 80}),
            ranged("season", 2, 90, box=(20, 45, 22, 46), more={"platform": "Merlin"}),
            item("fiji", days=3, box=(177, -20, -178, -15)),
        ],
    )
    return catalogue


async def found(catalogue: Catalogue, **query: Any) -> list[str]:
    """Ids of the items that a search finds, in their order."""
    return ids((await catalogue.search(replace(EVERYWHERE, **query))).items)
