"""SQLite files of strangers: opened so that no statement of theirs runs, and none runs for ever.

Source: "Defense Against The Dark Arts" of SQLite's documentation.
"""

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from adapters.ports import UnreadableDocument

_SECONDS: Final = 30.0
"""Of all queries of one opening; the largest files that were tried need two."""
_STEPS: Final = 10_000
"""Instructions between two looks at the clock."""


@contextmanager
def opened_sqlite(path: Path, what: str) -> Generator[sqlite3.Connection]:
    """Open a file for reading, with the time of its queries bounded.

    Args:
        path: The file.
        what: What people call it.

    Raises:
        UnreadableDocument: It is damaged, or its queries take too long.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    end = time.monotonic() + _SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        yield connection
    except sqlite3.Error as error:
        if time.monotonic() > end:
            said = f"the {what} takes more than {_SECONDS:g} s to look through; it was not read"
            raise UnreadableDocument(said) from error
        raise UnreadableDocument(f"the {what} is damaged ({error})") from error
    finally:
        connection.close()


def views(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the names of views, in lower case: what stands in one is computed when it is read."""
    found = connection.execute("SELECT lower(name) FROM sqlite_master WHERE type = 'view'")
    return frozenset(str(name) for (name,) in found)
