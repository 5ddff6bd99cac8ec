"""Names of tables and columns."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final

TABLE_BYTES: Final = 50
"""PostgreSQL cuts names at 63 bytes without a word; indexes add to the table's."""
COLUMN_BYTES: Final = 63
RESERVED: Final = frozenset({"fid", "geom"})
"""Columns of docflow's own."""
_DIGEST: Final = 8


def table_name(dataset: str, layer: str | None = None) -> str:
    """Name of a table, at most 50 bytes.

    Args:
        dataset: As a parameter or the name of the file says.
        layer: Where the file has several.
    """
    text = dataset if layer is None else f"{dataset}_{layer}"
    return _fitting(_folded(text) or "layer", TABLE_BYTES)


def table_names(dataset: str, layers: Iterable[str]) -> Mapping[str, str]:
    """Layer to the name of its table; a single layer has the name of the dataset."""
    names = list(layers)
    if len(names) == 1:
        return {names[0]: table_name(dataset)}
    taken: set[str] = set()
    return {name: _unique(table_name(dataset, name), taken, TABLE_BYTES) for name in names}


def dataset_name(blob: str) -> str:
    """Name of a dataset, from that of its file."""
    return table_name(PurePosixPath(blob).name.partition(".")[0])


def column_names(fields: Iterable[str]) -> list[str]:
    """Names of columns, in the order of the fields.

    Letters of every script stay; case, blanks and punctuation go. Two fields that differ in these
    alone, or in nothing, are distinguished by a number.
    """
    taken = set(RESERVED)
    return [_unique(_fitting(_folded(field) or "field", COLUMN_BYTES), taken) for field in fields]


def _folded(text: str) -> str:
    plain = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", text).lower()).strip("_")
    return f"n{plain}" if plain[:1].isdigit() else plain


def _fitting(name: str, most: int) -> str:
    encoded = name.encode()
    if len(encoded) <= most:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:_DIGEST]
    kept = encoded[: most - _DIGEST - 1].decode(errors="ignore")
    return f"{kept}_{digest}"


def _unique(name: str, taken: set[str], most: int = COLUMN_BYTES) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = _fitting(f"{name}_{number}", most)
    taken.add(candidate)
    return candidate
