"""What the `spreadsheets` pipeline uses beyond the adapters that all pipelines share."""

from collections.abc import Mapping
from dataclasses import dataclass

from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database
from adapters.database.foreign import ForeignDatabases
from adapters.signed_webhook import SignedWebhook
from adapters.types.targets import TargetTables


@dataclass(frozen=True)
class SpreadsheetResources:
    """The tables of spreadsheets, and the types that they may have."""

    store: SqlSpreadsheetStore
    types: SheetTypes
    databases: ForeignDatabases
    """Of teams, whose tables rows go to."""
    receivers: Mapping[str, SignedWebhook]
    """Who is notified of files with accepted rows."""


def spreadsheet_resources(
    database: Database,
    databases: ForeignDatabases | None = None,
    receivers: Mapping[str, SignedWebhook] | None = None,
) -> SpreadsheetResources:
    """Wire the adapters of spreadsheets."""
    databases = databases or ForeignDatabases(database)
    store = SqlSpreadsheetStore(database, TargetTables(databases))
    return SpreadsheetResources(store, SheetTypes(database), databases, receivers or {})
