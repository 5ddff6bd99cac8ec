"""The people of the rows of one file, of which there may be more than fit into memory."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

from activities.shared.scratch import ScratchDatabase, SeenKeys
from workflows.spreadsheets.people import Identity, MetPerson

PEOPLE_IN_MEMORY: Final = 50_000
"""About 40 MB; further people go to a database in the scratch folder."""
_TABLE: Final = (
    "CREATE TABLE people (block TEXT, line INTEGER, last TEXT, first TEXT, mail TEXT,"
    " born TEXT, key TEXT, PRIMARY KEY (block, line)) WITHOUT ROWID"
)


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
        self._disk: ScratchDatabase | None = None

    def close(self) -> None:
        """Give memory and disk back."""
        self._texts.close()
        self._memory.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def number(self, texts: Sequence[str], lines: Sequence[int]) -> Sequence[int]:
        """Which occurrence of a text each of the next rows is, from 1."""
        return [number for number, _ in self._texts.add(texts, lines)]

    def earlier(self, blocks: Sequence[str]) -> Sequence[tuple[str, MetPerson]]:
        """Rows that came before, each with the block that it was found by, by line."""
        found = [(block, each) for block in blocks for each in self._memory.get(block, ())]
        if self._disk is None:
            return found
        rows = self._disk.connection.execute(
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
            self._disk = ScratchDatabase.open(self._folder, "people-", _TABLE)
        self._disk.connection.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(block, *_person_row(person)) for block, person in rest],
        )


def _person_row(person: MetPerson) -> tuple[object, ...]:
    who = person.identity
    born = None if who.born is None else who.born.isoformat()
    return person.line, who.last, who.first, who.mail, born, person.key


def _met(
    line: int, last: str, first: str, mail: str | None, born: str | None, key: str
) -> MetPerson:
    day = None if born is None else date.fromisoformat(born)
    return MetPerson(line, Identity(last, first, mail, day), key)
