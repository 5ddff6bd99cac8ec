"""Where an import of a spreadsheet stands, as a part of a sentence."""

from types import MappingProxyType
from typing import Final

from contracts.spreadsheets import SpreadsheetState

_S = SpreadsheetState

_STANDS: Final = MappingProxyType(
    {
        _S.UPLOADED: "is being read",
        _S.COLUMN_MAPPING: "is at the mapping of its columns",
        _S.CELL_MAPPING: "is at the mapping of its values",
        _S.PROCESSING: "is being processed",
        _S.COMPLETED: "is complete",
        _S.FAILED: "has failed",
        _S.CANCELLED: "was cancelled",
        _S.TERMINATED: "was terminated",
    }
)


def standing(state: SpreadsheetState) -> str:
    """What follows "the import": `is complete`, `has failed`."""
    return _STANDS[state]
