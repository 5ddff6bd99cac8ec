"""What the `spreadsheets` pipeline uses beyond the adapters that all pipelines share."""

from dataclasses import dataclass

from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database


@dataclass(frozen=True)
class SpreadsheetResources:
    """The tables of spreadsheets, and the types that they may have."""

    store: SqlSpreadsheetStore
    types: SheetTypes


def spreadsheet_resources(database: Database) -> SpreadsheetResources:
    """Wire the adapters of spreadsheets."""
    return SpreadsheetResources(SqlSpreadsheetStore(database), SheetTypes(database))
