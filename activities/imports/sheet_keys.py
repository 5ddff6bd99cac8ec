"""Whether several sheets hold the same keys, and with the same values; in bounded memory."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from activities.scratch_database import ScratchDatabase

_MASK: Final = (1 << 40) - 1
"""Sums of as many as a million of these fit into SQLite's integers."""
_TABLE: Final = "CREATE TABLE keys (key INTEGER, sheet INTEGER, line INTEGER, value INTEGER)"


class Overlap(NamedTuple):
    """Two sheets that hold keys with different values."""

    first: int
    second: int
    keys: int
    first_line: int
    second_line: int


class SheetKeys:
    """Collects the keys of sheets with a digest of their values; to be closed.

    Args:
        folder: Scratch folder of the step.
    """

    def __init__(self, folder: Path) -> None:
        self._disk = ScratchDatabase.open(folder, "sheet-keys-", _TABLE)
        self._connection = self._disk.connection

    def close(self) -> None:
        """Give the disk back."""
        self._disk.close()

    def add(
        self,
        sheet: int,
        lines: Sequence[int],
        keys: Sequence[tuple[Any, ...]],
        values: Sequence[tuple[Any, ...]],
    ) -> None:
        """Take the next rows of a sheet.

        Args:
            sheet: Number of the sheet.
            lines: Line number of each row.
            keys: Its key.
            values: Everything else of it.
        """
        rows = zip(map(_digest, keys), lines, map(_digest, values), strict=True)
        self._connection.executemany(
            "INSERT INTO keys VALUES (?, ?, ?, ?)",
            ((key, sheet, line, value & _MASK) for key, line, value in rows),
        )

    def overlap(self) -> Overlap | None:
        """The first two sheets that hold keys with different values; None: no sheets do."""
        self._connection.execute(
            "CREATE TEMP TABLE sums AS SELECT key, sheet, min(line) AS line, count(*) AS rows,"
            " sum(value) AS value FROM keys GROUP BY key, sheet"
        )
        self._connection.execute("CREATE INDEX temp.of_key ON sums (key)")
        row = self._connection.execute(
            "SELECT a.sheet, b.sheet, count(*), min(a.line), min(b.line) FROM sums a"
            " JOIN sums b ON a.key = b.key AND a.sheet < b.sheet"
            " WHERE a.value <> b.value OR a.rows <> b.rows"
            " GROUP BY a.sheet, b.sheet ORDER BY a.sheet, b.sheet LIMIT 1"
        ).fetchone()
        return None if row is None else Overlap(*row)


def _digest(parts: tuple[Any, ...]) -> int:
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)
