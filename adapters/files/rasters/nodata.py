"""Nodata values as a file states them, of which GDAL hides those that no pixel can have."""

import re
import struct
from pathlib import Path
from typing import Any, Final

import numpy as np

_TAG: Final = 42_113
"""GDAL_NODATA of a TIFF: text."""
_TEXT: Final = 2
_MOST_ENTRIES: Final = 4_096
_MOST_CHARACTERS: Final = 64
_SUBDATASET: Final = re.compile(r"GTIFF_DIR:(\d+):")


def can_have(data_type: str, value: float) -> bool:
    """Whether a pixel of a type can have a value."""
    if not data_type.startswith(("int", "uint")):
        return True
    limits = np.iinfo(data_type)
    return float(value).is_integer() and limits.min <= value <= limits.max


def hidden(dataset: Any, path: Path) -> str | None:
    """The nodata value of a TIFF that GDAL does not give, because no pixel can have it."""
    if dataset.driver != "GTiff" or any(value is not None for value in dataset.nodatavals):
        return None
    found = _SUBDATASET.match(dataset.name)
    with path.open("rb") as file:
        try:
            return _text(file, int(found[1]) if found else 1)
        except struct.error:
            # Cut off: what GDAL makes of such a directory is known already.
            return None


def _text(file: Any, directory: int) -> str | None:
    order = "<" if file.read(2) == b"II" else ">"
    is_big = struct.unpack(f"{order}H", file.read(2)) == (43,)
    # Lengths of the entries' number, of an entry, and of the offsets in it.
    number, entry, offset = ("Q", "HHQ8s", "Q") if is_big else ("H", "HHI4s", "I")
    file.seek(8 if is_big else 4)

    def read(format: str) -> tuple[Any, ...]:
        size = struct.calcsize(f"{order}{format}")
        return struct.unpack(f"{order}{format}", file.read(size))

    found: list[tuple[Any, ...]] = []
    for _ in range(directory):
        (at,) = read(offset)
        if not at:
            return None
        file.seek(at)
        (entries,) = read(number)
        if entries > _MOST_ENTRIES:
            return None
        found = [read(entry) for _ in range(entries)]
    for tag, kind, length, value in found:
        if tag == _TAG and kind == _TEXT:
            content = value[:length]
            if length > len(value):
                file.seek(struct.unpack(f"{order}{offset}", value)[0])
                content = file.read(min(length, _MOST_CHARACTERS))
            return content.split(b"\0")[0].decode("latin-1").strip() or None
    return None
