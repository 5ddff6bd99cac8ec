"""Tables of the spreadsheets pipeline, and of the people that its rows are about."""

from adapters.database.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.spreadsheets.views import SqlSpreadsheetViews

__all__ = ["SqlSpreadsheetStore", "SqlSpreadsheetViews"]
