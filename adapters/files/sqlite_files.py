"""SQLite files of strangers: opened so that no statement of theirs runs, and none runs for ever.

Source: "Defense Against The Dark Arts" of SQLite's documentation.
"""

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from adapters.ports.errors import UnreadableDocument

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


def views_of_geopackage(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the names of views, in lower case: what stands in one is computed when it is read.

    Raises:
        UnreadableDocument: The file's own tables are some.
    """
    query = "SELECT lower(name) FROM sqlite_master WHERE type = 'view'"
    found = frozenset(str(name) for (name,) in connection.execute(query))
    if own := sorted(name for name in found if name.startswith("gpkg_")):
        raise _computed(own[0])
    return found


def check_tiles(path: Path) -> None:
    """Refuse a GeoPackage of which a library would compute what it reads as a raster.

    Raises:
        UnreadableDocument: A table is a view, the file is damaged, or takes too long to look at.
    """
    with opened_sqlite(path, "GeoPackage") as connection:
        found = views_of_geopackage(connection)
        listed = connection.execute("SELECT lower(table_name) FROM gpkg_contents")
        if computed := sorted(found & {str(name) for (name,) in listed}):
            raise _computed(computed[0])


def _computed(name: str) -> UnreadableDocument:
    return UnreadableDocument(
        f"{name} of the GeoPackage is a view, and has to be a table: what it computes is not read"
    )
