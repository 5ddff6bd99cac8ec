"""A database in the scratch folder of a step, for what may be too much for memory."""

import os
import sqlite3
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_SETTINGS = (
    # The file is worth nothing after a crash.
    "synchronous=OFF",
    "journal_mode=OFF",
    "locking_mode=EXCLUSIVE",
    # Else they go to the system's folder.
    "temp_store=MEMORY",
)


@dataclass(frozen=True)
class ScratchDatabase:
    """One connection to one file; may be passed from thread to thread, one at a time."""

    connection: sqlite3.Connection
    file: Path

    @classmethod
    def open(cls, folder: Path, prefix: str, table: str, *, cache_kib: int | None = None) -> Self:
        """Make the database and its table, in a transaction that is never committed.

        Args:
            folder: Scratch folder of the step.
            prefix: Begins the name of the file.
            table: Statement that creates the table.
            cache_kib: Pages kept in memory; None: as many as SQLite keeps by default.

        Raises:
            OSError: No file can be made.
            sqlite3.OperationalError: It cannot be written.
        """
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".db", dir=folder)
        os.close(descriptor)
        file = Path(name)
        cache = () if cache_kib is None else (f"cache_size=-{cache_kib}",)
        with ExitStack() as until_ready:
            until_ready.callback(file.unlink, missing_ok=True)
            connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            until_ready.callback(connection.close)
            for setting in (*cache, *_SETTINGS):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(table)
            connection.execute("BEGIN")
            until_ready.pop_all()
        return cls(connection, file)

    def close(self) -> None:
        """Close it, and remove its file."""
        self.connection.close()
        self.file.unlink(missing_ok=True)
