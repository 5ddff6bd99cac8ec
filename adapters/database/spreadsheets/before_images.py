"""What a chunk has done to rows of target tables, kept so that it can be taken back.

The values are those of the database's own form, as JSON: see `BulkEngine.parsed`.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

_FAST: Final = 1
"""Level of compression: the next one takes twice as long for a tenth of the bytes."""


class UpdatedImage(NamedTuple):
    """One row before and after.

    Attributes:
        line: Line of the file that changed it.
        id: The row.
        columns: Places of the columns that changed.
        before: Their values before.
        after: Their values after.
    """

    line: int
    id: int
    columns: Sequence[int]
    before: Sequence[Any]
    after: Sequence[Any]


@dataclass(frozen=True, slots=True)
class TableImages:
    """What one step of a chunk has done to one table.

    Attributes:
        table: The table.
        columns: The columns that were written.
        created: Line, id and values of each row that was inserted.
        updated: The rows that were changed.
    """

    table: str
    columns: tuple[str, ...]
    created: Sequence[tuple[Any, ...]] = ()
    updated: Sequence[UpdatedImage] = field(default_factory=tuple[UpdatedImage, ...])


def pack(images: Sequence[TableImages]) -> bytes:
    """Images as compressed JSON, in the order in which they came about."""
    packed = [
        {
            "table": each.table,
            "columns": each.columns,
            "created": each.created,
            "updated": each.updated,
        }
        for each in images
    ]
    return zlib.compress(to_json(packed), _FAST)


def unpack(packed: bytes) -> list[TableImages]:
    """Images from compressed JSON."""
    return [
        TableImages(
            table=each["table"],
            columns=tuple(each["columns"]),
            created=each["created"],
            updated=[UpdatedImage(*row) for row in each["updated"]],
        )
        for each in from_json(zlib.decompress(packed))
    ]
