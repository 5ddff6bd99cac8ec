"""The tables of docflow."""

from adapters.database.models import batches, imports, people, schedules, spreadsheets, tables
from adapters.database.models.base import BOOKKEEPING, DOMAIN, STAGED, data_of, key_of, metadata

__all__ = [
    "BOOKKEEPING",
    "DOMAIN",
    "STAGED",
    "batches",
    "data_of",
    "imports",
    "key_of",
    "metadata",
    "people",
    "schedules",
    "spreadsheets",
    "tables",
]
