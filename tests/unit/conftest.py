"""A club in a database of its own, for tests of the spreadsheets pipeline."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.fresh_database import fresh_url
from tests.support.spreadsheets.activities import SpreadsheetSetup, open_spreadsheet_setup


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncGenerator[SpreadsheetSetup]:
    """A club with an event, and no registrations yet."""
    url = fresh_url()
    async with open_spreadsheet_setup(url, tmp_path) as setup:
        yield setup
