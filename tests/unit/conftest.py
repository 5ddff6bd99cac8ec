"""A club in a database of its own, for tests of the spreadsheets pipeline."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.spreadsheets.activities import SpreadsheetSetup, open_spreadsheet_setup
from tests.support.tables import make_tables


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncGenerator[SpreadsheetSetup]:
    """A club with an event, and no registrations yet."""
    url = f"sqlite:///{tmp_path / 'docflow.db'}"
    await make_tables(url)
    async with open_spreadsheet_setup(url, tmp_path) as setup:
        yield setup
