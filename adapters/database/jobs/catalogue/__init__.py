"""The catalogue in the database of docflow: pgstac on PostgreSQL, tables of its own on SQLite."""

from adapters.database.engine import Database
from adapters.database.jobs.catalogue.embedded import EmbeddedCatalogue
from adapters.database.jobs.catalogue.pgstac import PgstacCatalogue
from adapters.ports.catalogue import Catalogue


def open_catalogue(database: Database) -> Catalogue:
    """The catalogue that a database has; it holds no connection while it is not used."""
    if database.dialect == "postgresql":
        return PgstacCatalogue(database)
    return EmbeddedCatalogue(database)


__all__ = ["EmbeddedCatalogue", "PgstacCatalogue", "open_catalogue"]
