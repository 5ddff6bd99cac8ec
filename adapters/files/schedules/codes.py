"""From the ids of one file to the codes that stay: bounded maps and WBS paths."""

import sqlite3
from collections.abc import Iterable

from adapters.files.schedules.records import WbsRecord
from adapters.files.schedules.values import PATH_LENGTH, clean_code
from adapters.ports import UnreadableDocument

IN_MEMORY = 200_000
"""Entries of a map that stay in memory, about 170 bytes each; the rest goes to disk."""
WBS_NODES = 100_000
"""Nodes of one project; the largest real programmes hold some ten thousands."""
WBS_DEPTH = 100


class SpillingMap:
    """Text to text; what does not fit into memory goes to a temporary database on disk."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._near: dict[str, str] = {}
        self._far: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        """The value of a key, or None."""
        value = self._near.get(key)
        if value is not None or self._far is None:
            return value
        row = self._far.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        if key in self._near or len(self._near) < self._in_memory:
            self._near[key] = value
            return
        if self._far is None:
            self._far = _temporary_database()
        self._far.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (key, value))

    def close(self) -> None:
        """Forget everything."""
        self._near.clear()
        if self._far is not None:
            self._far.close()
            self._far = None


def _temporary_database() -> sqlite3.Connection:
    # A reader moves between the threads of a pool, though never used by two at a time.
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA cache_size = -8000")
    database.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
    database.execute("BEGIN")
    return database


class WbsPaths:
    """The WBS of one project: which path of short names leads to a node.

    A node without a parent in the project is its top when it is marked so or is called like the
    project; any other one hangs below the top.

    Args:
        nodes: The project's nodes.
        project_code: The project's short name, which stands for the top where the file has none.

    Raises:
        UnreadableDocument: More nodes than any schedule has.
    """

    def __init__(self, nodes: Iterable[WbsRecord], project_code: str) -> None:
        self.nodes: dict[str, WbsRecord] = {}
        for node in nodes:
            if len(self.nodes) >= WBS_NODES:
                raise UnreadableDocument(f"the project has more than {WBS_NODES:,} WBS nodes")
            self.nodes.setdefault(node.id, node)
        self.top = next((node for node in self.nodes.values() if node.top == "Y"), None) or next(
            (
                node
                for node in self.nodes.values()
                if node.parent not in self.nodes and clean_code(node.code) == project_code
            ),
            None,
        )
        self.top_code = (clean_code(self.top.code) if self.top else "") or project_code
        self._paths: dict[str, str | None] = {}
        if self.top:
            self._paths[self.top.id] = self.top_code

    def path(self, node_id: str) -> str | None:
        """Dotted path from the top; None for a node that is unknown or cannot have one.

        Nodes cannot have a path when a parent lacks a short name, when their parents form a
        circle, or when the path is longer than a key may be.
        """
        climbed: list[WbsRecord] = []
        while node_id not in self._paths:
            node = self.nodes.get(node_id)
            if node is None and not climbed:
                return None
            if node is None:
                break
            climbed.append(node)
            if len(climbed) > WBS_DEPTH:
                self._paths.update((lost.id, None) for lost in climbed)
                return None
            node_id = node.parent
        path = self._paths.get(node_id, self.top_code)
        for node in reversed(climbed):
            code = clean_code(node.code)
            path = f"{path}.{code}" if path and code else None
            if path and len(path) > PATH_LENGTH:
                path = None
            self._paths[node.id] = path
        return path

    def parent_path(self, node: WbsRecord) -> str | None:
        """Path of the parent; None for the top."""
        if self.top and node.id == self.top.id:
            return None
        return self.path(node.parent) if node.parent in self.nodes else self.top_code
