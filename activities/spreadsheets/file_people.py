"""The people of the rows of a file so far, in bounded memory."""

import json
import os
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

from activities.seen_keys import SeenKeys
from domain.spreadsheets.people import Identity
from domain.spreadsheets.people_matching import MetPerson

PEOPLE_IN_MEMORY: Final = 50_000
"""About 40 MB; further people go to a database in the scratch folder."""


class FilePeople:
    """Remembers the people of rows; see `PeopleOfFile` of the rules.

    To be closed; may be passed from thread to thread, one at a time.

    Args:
        folder: Scratch folder of the step.
        in_memory: How many people to keep before the first goes to disk.
    """

    def __init__(self, folder: Path, in_memory: int = PEOPLE_IN_MEMORY) -> None:
        self._folder = folder
        self._left = in_memory
        self._texts = SeenKeys(folder)
        self._memory: dict[str, list[MetPerson]] = defaultdict(list)
        self._disk: sqlite3.Connection | None = None
        self._file: Path | None = None

    def close(self) -> None:
        """Give memory and disk back."""
        self._texts.close()
        self._memory.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._file = None

    def number(self, texts: Sequence[str], lines: Sequence[int]) -> Sequence[int]:
        """Which occurrence of a text each of the next rows is, from 1."""
        return [number for number, _ in self._texts.add(texts, lines)]

    def earlier(self, blocks: Sequence[str]) -> Sequence[tuple[str, MetPerson]]:
        """Rows that came before, each with the block that it was found by, by line."""
        found = [(block, each) for block in blocks for each in self._memory.get(block, ())]
        if self._disk is None:
            return found
        rows = self._disk.execute(
            "SELECT block, line, last, first, mail, born, key FROM people"
            " WHERE block IN (SELECT value FROM json_each(?)) ORDER BY block, line",
            (json.dumps(blocks),),
        )
        return [*found, *((row[0], _met(*row[1:])) for row in rows)]

    def add(self, people: Sequence[tuple[str, MetPerson]]) -> None:
        """Take the next rows, each under its blocks."""
        kept, rest = people[: self._left], people[self._left :]
        self._left -= len(kept)
        for block, person in kept:
            self._memory[block].append(person)
        if not rest:
            return
        if self._disk is None:
            self._open()
        assert self._disk is not None
        self._disk.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(block, *_row(person)) for block, person in rest],
        )

    def _open(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="people-", suffix=".db", dir=self._folder)
        os.close(descriptor)
        self._file = Path(name)
        self._disk = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
        for setting in ("synchronous=OFF", "journal_mode=OFF", "temp_store=MEMORY"):
            self._disk.execute(f"PRAGMA {setting}")
        self._disk.execute(
            "CREATE TABLE people (block TEXT, line INTEGER, last TEXT, first TEXT, mail TEXT,"
            " born TEXT, key TEXT, PRIMARY KEY (block, line)) WITHOUT ROWID"
        )
        self._disk.execute("BEGIN")


def _row(person: MetPerson) -> tuple[object, ...]:
    who = person.identity
    born = None if who.born is None else who.born.isoformat()
    return person.line, who.last, who.first, who.mail, born, person.key


def _met(
    line: int, last: str, first: str, mail: str | None, born: str | None, key: str
) -> MetPerson:
    day = None if born is None else date.fromisoformat(born)
    return MetPerson(line, Identity(last, first, mail, day), key)
