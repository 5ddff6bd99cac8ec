"""STAC 1.1: items and collections from what is known of a dataset, and whether they are right."""

from domain.jobs.stac.extents import split_box, widened
from domain.jobs.stac.footprints import bounds, check_footprint, footprint
from domain.jobs.stac.items import build_collection, build_item
from domain.jobs.stac.validation import check_collection, check_item

__all__ = [
    "bounds",
    "build_collection",
    "build_item",
    "check_collection",
    "check_footprint",
    "check_item",
    "footprint",
    "split_box",
    "widened",
]
