"""Messages on disk, so that an emulator that is killed has lost none that it accepted."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from emulators.service_bus.message import parse
from emulators.service_bus.queued_message import QueuedMessage, State

_SCHEMA: Final = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS messages (
    queue TEXT NOT NULL,
    number INTEGER NOT NULL,
    content BLOB NOT NULL,
    enqueued_at REAL NOT NULL,
    enqueue_number INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    delivery_count INTEGER NOT NULL,
    scheduled_for REAL,
    expires_at REAL,
    dead_letter_source TEXT,
    PRIMARY KEY (queue, number)
) STRICT;
CREATE TABLE IF NOT EXISTS numbers (queue TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT;
"""


class Journal:
    """Keeps nothing: for queues that live in memory."""

    def last_number(self, queue: str) -> int:
        """The highest sequence number that a queue has given; 0: none."""
        return 0

    def messages(self, queue: str) -> Iterator[QueuedMessage]:
        """The messages of a queue, oldest first; none is locked."""
        return iter(())

    def save(self, queue: str, message: QueuedMessage) -> None:
        """Write a message down, or what has become of it; its lock is not kept."""

    def remove(self, queue: str, message: QueuedMessage) -> None:
        """Forget a message."""

    @contextmanager
    def together(self) -> Generator[None]:
        """Keep all that is written in the block, or nothing of it."""
        yield

    def close(self) -> None:
        """Write nothing more."""


class FileJournal(Journal):
    """Keeps messages in an SQLite file.

    What is written survives SIGKILL at any moment. Nothing is flushed to the disk, so that a
    machine that loses its power may lose the last messages.

    Args:
        file: Made when missing; its folder exists. One process uses it at a time.

    Raises:
        sqlite3.DatabaseError: The file cannot be used.
    """

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        try:
            self._connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError:
            self._connection.close()
            raise

    def last_number(self, queue: str) -> int:
        query = "SELECT last FROM numbers WHERE queue = ?"
        row = self._connection.execute(query, (queue,)).fetchone()
        return 0 if row is None else row[0]

    def messages(self, queue: str) -> Iterator[QueuedMessage]:
        rows = self._connection.execute(
            "SELECT number, content, enqueued_at, enqueue_number, deferred, delivery_count,"
            " scheduled_for, expires_at, dead_letter_source"
            " FROM messages WHERE queue = ? ORDER BY number",
            (queue,),
        )
        for number, content, at, enqueue_number, deferred, count, due, expires, source in rows:
            message = QueuedMessage(parse(content), number, at, enqueue_number)
            message.deferred = bool(deferred)
            message.delivery_count = count
            message.expires_at = expires
            message.dead_letter_source = source
            if due is not None:
                message.state, message.scheduled_for = State.SCHEDULED, due
            elif deferred:
                message.state = State.DEFERRED
            yield message

    def save(self, queue: str, message: QueuedMessage) -> None:
        is_scheduled = message.state is State.SCHEDULED
        with self.together():
            self._connection.execute(
                "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    queue,
                    message.sequence_number,
                    message.content.encode(0, {}),
                    message.enqueued_at,
                    message.enqueue_sequence_number,
                    message.deferred,
                    message.delivery_count,
                    message.scheduled_for if is_scheduled else None,
                    message.expires_at,
                    message.dead_letter_source,
                ),
            )
            self._connection.execute(
                "INSERT INTO numbers VALUES (?, ?)"
                " ON CONFLICT (queue) DO UPDATE SET last = max(last, excluded.last)",
                (queue, message.sequence_number),
            )

    def remove(self, queue: str, message: QueuedMessage) -> None:
        self._connection.execute(
            "DELETE FROM messages WHERE queue = ? AND number = ?", (queue, message.sequence_number)
        )

    @contextmanager
    def together(self) -> Generator[None]:
        if self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN")
        with self._connection:
            yield

    def close(self) -> None:
        self._connection.close()
