"""Which keys of a file came before, exactly, in bounded memory."""

import json
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Final

from activities.scratch_database import ScratchDatabase

KEYS_IN_MEMORY: Final = 100_000
"""About 20 MB; further keys go to a database in the scratch folder."""
_PAGE_CACHE_KIB: Final = 16_000
_TABLE: Final = (
    "CREATE TABLE seen (key TEXT PRIMARY KEY, first INTEGER, occurrences INTEGER) WITHOUT ROWID"
)


class SeenKeys:
    """Counts the occurrences of keys, batch by batch.

    To be closed; may be passed from thread to thread, one at a time.

    Args:
        folder: Scratch folder of the step, which is held as long as it works and swept after it.
        keys_in_memory: How many keys to keep before the first goes to disk.
    """

    def __init__(self, folder: Path, keys_in_memory: int = KEYS_IN_MEMORY) -> None:
        self._folder = folder
        self._limit = keys_in_memory
        self._first: dict[str, int] = {}
        self._repeats: dict[str, int] = {}
        self._disk: ScratchDatabase | None = None

    def close(self) -> None:
        """Give memory and disk back."""
        self._first.clear()
        self._repeats.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def add(self, keys: Sequence[str], lines: Sequence[int]) -> list[tuple[int, int]]:
        """Take the next keys of the file.

        Args:
            keys: Keys in the order of the file; no lone surrogates.
            lines: Line of each, rising within and across calls.

        Returns:
            For each key which occurrence it is, from 1, and the line of the first.
        """
        if len(self._first) >= self._limit and self._disk is None:
            self._disk = ScratchDatabase.open(
                self._folder, "seen-keys-", _TABLE, cache_kib=_PAGE_CACHE_KIB
            )
        if self._disk is None:
            new = dict(zip(keys, lines, strict=True))
            if len(new) == len(keys) and new.keys().isdisjoint(self._first.keys()):
                self._first.update(new)
                return list(zip(repeat(1), lines))
        known = self._on_disk(keys, lines) if self._disk is not None else {}
        found: list[tuple[int, int]] = []
        fresh: dict[str, int] = {}
        repeated: dict[str, int] = {}
        for key, line in zip(keys, lines, strict=True):
            if (first := self._first.get(key)) is not None:
                self._repeats[key] = count = self._repeats.get(key, 1) + 1
            elif self._disk is None:
                self._first[key] = first = line
                count = 1
            elif (earlier := known.get(key)) is not None:
                first = earlier[0]
                repeated[key] = count = repeated.get(key, earlier[1]) + 1
            else:
                first = fresh.setdefault(key, line)
                repeated[key] = count = repeated.get(key, 0) + 1
            found.append((count, first))
        if self._disk is not None:
            self._disk.connection.executemany(
                "UPDATE seen SET occurrences = ? WHERE key = ?",
                [(count, _filed(key)) for key, count in repeated.items() if count > 1],
            )
        return found

    def _on_disk(self, keys: Sequence[str], lines: Sequence[int]) -> dict[str, tuple[int, int]]:
        """File the keys that memory does not know; line and count of those filed before."""
        assert self._disk is not None
        disk, first = self._disk.connection, self._first
        batch = {
            _filed(key): line
            for key, line in zip(reversed(keys), reversed(lines), strict=True)
            if key not in first
        }
        before = disk.total_changes
        disk.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?, 1)", sorted(batch.items()))
        if disk.total_changes - before == len(batch):
            return {}
        rows = disk.execute(
            "SELECT key, first, occurrences FROM seen"
            " WHERE key IN (SELECT value FROM json_each(?)) AND first < ?",
            (json.dumps(list(batch)), lines[0]),
        )
        return {_unfiled(key): (line, occurrences) for key, line, occurrences in rows}


def _filed(key: str) -> str:
    """A key without NUL, which ends a text for SQLite's JSON; no two keys become the same."""
    if "\0" not in key and "\1" not in key:
        return key
    return key.replace("\1", "\1\2").replace("\0", "\1\3")


def _unfiled(text: str) -> str:
    return text.replace("\1\3", "\0").replace("\1\2", "\1") if "\1" in text else text
