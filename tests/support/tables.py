"""A new database with docflow's tables, without its migrations where a copy will do."""

import asyncio
import functools
import tempfile
import threading
from pathlib import Path

from sqlalchemy import make_url

from adapters.database.schema import upgrade

_migrating = threading.Lock()


async def make_tables(url: str) -> None:
    """Give a new database docflow's tables, at the newest schema.

    Migrating an SQLite file takes half a second of a core, more than most tests: one is migrated in
    each process, and the others are copies of it.

    Args:
        url: Of a database without tables; an SQLite file that does not exist.

    Raises:
        FileExistsError: There is a file already.
    """
    address = make_url(url)
    if address.get_backend_name() != "sqlite":
        await upgrade(url)
        return
    assert address.database, url
    await asyncio.to_thread(_copy, Path(address.database))


def _copy(path: Path) -> None:
    with _migrating:
        content = _content()
    with path.open("xb") as file:
        file.write(content)


@functools.cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "migrated.db"
        asyncio.run(upgrade(f"sqlite:///{path}"))
        return path.read_bytes()
