"""Whether fields of STAC's extensions hold what their schemas allow.

The models are docflow's own, so that checking needs no network and none of the schemas' text. They
follow projection 2.0.0, raster 2.0.0, file 2.1.0, table 1.2.0, processing 1.2.0, classification
2.0.0, and of eo 2.0.0 the covers; other extensions are not checked.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

SCHEMAS: Final = MappingProxyType(
    {
        "proj:": "https://stac-extensions.github.io/projection/v2.0.0/schema.json",
        "raster:": "https://stac-extensions.github.io/raster/v2.0.0/schema.json",
        "file:": "https://stac-extensions.github.io/file/v2.1.0/schema.json",
        "table:": "https://stac-extensions.github.io/table/v1.2.0/schema.json",
        "processing:": "https://stac-extensions.github.io/processing/v1.2.0/schema.json",
        "classification:": "https://stac-extensions.github.io/classification/v2.0.0/schema.json",
        "eo:": "https://stac-extensions.github.io/eo/v2.0.0/schema.json",
    }
)
"""Prefix of the fields of an extension to its schema."""
_CODE: Final = re.compile(r"[A-Z]+:[A-Za-z0-9]+")
_MULTIHASH: Final = re.compile(r"[0-9a-f]{8,}")
_CLASS: Final = re.compile(r"[0-9A-Za-z_-]+")
_COLOUR: Final = re.compile(r"[0-9A-Fa-f]{6}")

JsonObject = Mapping[str, Any]
Check = Callable[[Any], bool]


def extension_problems(item: JsonObject) -> Iterator[str]:
    """What is wrong with the fields of extensions in an item, its assets and their bands."""
    declared = set(item.get("stac_extensions", ()))
    used: set[str] = set()
    for path, part in _parts(item):
        for name, value in part.items():
            prefix = f"{name.partition(':')[0]}:"
            if prefix not in SCHEMAS or prefix == name:
                continue
            used.add(prefix)
            check = _FIELDS.get(name)
            if check is not None and not check(value):
                yield f"{path}.{name}: {str(value)[:100]} is not what its extension allows"
    for prefix in sorted(used):
        if SCHEMAS[prefix] not in declared:
            yield f"stac_extensions: {SCHEMAS[prefix]} is used and missing"


def _parts(item: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Where fields of extensions may stand."""
    yield "properties", item["properties"]
    for number, band in enumerate(item["properties"].get("bands", ())):
        yield f"properties.bands.{number}", band
    for key, asset in item["assets"].items():
        yield f"assets.{key}", asset
        for number, band in enumerate(asset.get("bands", ())):
            yield f"assets.{key}.bands.{number}", band


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_percent(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 100


def _numbers(*lengths: int) -> Check:
    return lambda value: (
        isinstance(value, list)
        and len(cast(Sequence[Any], value)) in lengths
        and all(map(_is_number, cast(Sequence[Any], value)))
    )


def _matches(pattern: re.Pattern[str]) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _one_of(*values: str) -> Check:
    return lambda value: value in values


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_shape(value: Any) -> bool:
    return _numbers(2)(value) and all(map(_is_count, value))


def _is_software(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, cast(Mapping[str, Any], value).values()))


def _objects_with(**fields: Check) -> Check:
    """A list of objects; a field whose name ends with an underscore may be missing."""

    def check(value: Any) -> bool:
        return isinstance(value, list) and all(map(fits, cast(Sequence[Any], value)))

    def fits(each: Any) -> bool:
        if not isinstance(each, dict):
            return False
        known = cast(Mapping[str, Any], each)
        return all(
            of(known[name.rstrip("_")]) if name.rstrip("_") in known else name.endswith("_")
            for name, of in fields.items()
        )

    return check


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_FIELDS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "proj:code": _or_null(_matches(_CODE)),
        "proj:wkt2": _or_null(_is_text),
        "proj:projjson": _or_null(_is_object),
        "proj:geometry": _is_object,
        "proj:bbox": _numbers(4, 6),
        "proj:shape": _is_shape,
        "proj:transform": _numbers(6, 9),
        "raster:sampling": _one_of("area", "point"),
        "raster:bits_per_sample": _is_count,
        "raster:spatial_resolution": _is_number,
        "raster:scale": _is_number,
        "raster:offset": _is_number,
        "file:byte_order": _one_of("big-endian", "little-endian"),
        "file:checksum": _matches(_MULTIHASH),
        "file:header_size": _is_count,
        "file:size": _is_count,
        "file:local_path": _is_text,
        "table:columns": _objects_with(name=_is_text, description_=_is_text, type_=_is_text),
        "table:primary_geometry": _is_text,
        "table:row_count": _is_count,
        "processing:lineage": _is_text,
        "processing:level": _is_text,
        "processing:facility": _is_text,
        "processing:software": _is_software,
        "classification:classes": _objects_with(
            value=_is_whole,
            name=_matches(_CLASS),
            title_=_is_text,
            description_=_is_text,
            color_hint_=_matches(_COLOUR),
        ),
        "eo:cloud_cover": _is_percent,
        "eo:snow_cover": _is_percent,
    }
)
