"""The site that page tests share."""

import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.installation import Installation, running_installation
from tests.support.pages import PagesSetup, running_pages


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_site(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[PagesSetup]:
    async with running_pages(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def site(shared_site: PagesSetup) -> PagesSetup:
    """With a club of the test's own: docflow remembers what the people of a club decide."""
    return await shared_site.with_new_club()


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that the account of a PostgreSQL server may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="docflow-stack-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def installation(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[Installation]:
    """Two workers and two gateways over one PostgreSQL."""
    async with running_installation(
        tmp_path_factory.mktemp("installation"),
        workers=2,
        gateways=2,
        settings={"DOCFLOW_UPLOAD_LIMIT_MB": "20"},
    ) as running:
        yield running
