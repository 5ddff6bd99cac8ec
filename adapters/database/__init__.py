"""Tables of docflow in SQLite or PostgreSQL."""

from adapters.database.engine import Database, open_database
from adapters.database.schema import SchemaBehind, current, require_current, upgrade

__all__ = [
    "Database",
    "SchemaBehind",
    "current",
    "open_database",
    "require_current",
    "upgrade",
]
