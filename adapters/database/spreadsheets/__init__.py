"""Tables of the spreadsheets pipeline, and of the people that its rows are about."""

from adapters.database.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.spreadsheets.views import SqlSpreadsheetViews
from stack.sample_club import SampleClub, sample_club

__all__ = ["SampleClub", "SqlSpreadsheetStore", "SqlSpreadsheetViews", "sample_club"]
