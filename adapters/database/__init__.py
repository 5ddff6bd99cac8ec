"""Tables of docflow in SQLite or PostgreSQL."""

from adapters.database.engine import (
    CONNECTIONS,
    STATEMENTS,
    Database,
    DatabaseOptions,
    open_database,
)
from adapters.database.schema import (
    SchemaBehind,
    SchemaUnknown,
    current,
    require_current,
    upgrade,
)
from adapters.database.urls import check_url, with_options

__all__ = [
    "CONNECTIONS",
    "STATEMENTS",
    "Database",
    "DatabaseOptions",
    "SchemaBehind",
    "SchemaUnknown",
    "check_url",
    "current",
    "open_database",
    "require_current",
    "upgrade",
    "with_options",
]
