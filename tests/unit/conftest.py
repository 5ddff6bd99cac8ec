"""A club in a database of its own, for tests of the spreadsheets pipeline."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from adapters.database import upgrade
from tests.support.spreadsheets.activities import SpreadsheetSetup, open_spreadsheet_setup


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database file to copy."""
    path = tmp_path_factory.mktemp("migrated") / "docflow.db"
    asyncio.run(upgrade(f"sqlite:///{path}"))
    return path


@pytest.fixture
async def setup(migrated: Path, tmp_path: Path) -> AsyncGenerator[SpreadsheetSetup]:
    """A club with an event, and no registrations yet."""
    path = tmp_path / "docflow.db"
    shutil.copy(migrated, path)
    async with open_spreadsheet_setup(f"sqlite:///{path}", tmp_path) as setup:
        yield setup
