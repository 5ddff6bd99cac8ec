"""Tables of docflow in SQLite or PostgreSQL."""

from adapters.database.engine import Database, check_url, open_database
from adapters.database.schema import (
    SchemaBehind,
    SchemaUnknown,
    current,
    require_current,
    upgrade,
)

__all__ = [
    "Database",
    "SchemaBehind",
    "SchemaUnknown",
    "check_url",
    "current",
    "open_database",
    "require_current",
    "upgrade",
]
