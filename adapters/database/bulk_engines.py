"""The bulk engine of a database."""

from adapters.database.bulk.postgresql import PostgresBulk
from adapters.database.bulk.protocol import BulkEngine
from adapters.database.bulk.sqlite import SqliteBulk
from adapters.database.engine import Database


def bulk_of(database: Database) -> BulkEngine:
    """What writes rows by the thousand into a database."""
    if database.dialect == "sqlite":
        return SqliteBulk(database.engine.dialect)
    return PostgresBulk()
