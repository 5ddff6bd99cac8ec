"""What the `spreadsheets` pipeline uses beyond the adapters that all pipelines share."""

from dataclasses import dataclass

from adapters.database import Database
from adapters.database.spreadsheets.store import SqlSpreadsheetStore
from domain.spreadsheets.sheet_types import SheetTypes


@dataclass(frozen=True)
class SpreadsheetResources:
    """The tables of spreadsheets, and the types that they may have."""

    store: SqlSpreadsheetStore
    types: SheetTypes


def spreadsheet_resources(database: Database) -> SpreadsheetResources:
    """Wire the adapters of spreadsheets."""
    return SpreadsheetResources(SqlSpreadsheetStore(database), SheetTypes())
