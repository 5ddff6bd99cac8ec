"""STAC 1.1: items and collections from what is known of a dataset.

Whether they are right is in `validation`, which takes half a second to load.
"""

from domain.jobs.stac.extents import split_box, widened
from domain.jobs.stac.footprints import bounds, check_footprint, footprint
from domain.jobs.stac.items import build_collection, build_item

__all__ = [
    "bounds",
    "build_collection",
    "build_item",
    "check_footprint",
    "footprint",
    "split_box",
    "widened",
]
