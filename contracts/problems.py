"""What is wrong with a row, a cell or a document, for the person who sent it."""

from pydantic import Field

from contracts.base import Contract


class Problem(Contract):
    """One thing that is wrong with one row."""

    line: int | None = None
    """Row number as the user's program shows it, from 1; None: the whole document."""
    sheet: str | None = Field(default=None, max_length=64)
    """Sheet of the row, where rows of several sheets were read."""
    column: str | None = Field(default=None, max_length=200)
    """Header as it stands in the document, or the field's name."""
    value: str | None = Field(default=None, max_length=200)
    reason: str = Field(max_length=500)
    mark: str | None = Field(default=None, max_length=16)
    """Recognises the row when it comes back unchanged in a corrected report."""
