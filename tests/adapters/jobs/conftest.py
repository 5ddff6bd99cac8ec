from collections.abc import AsyncIterator

import pytest

from adapters.files.rasters.pool import FileRasters


@pytest.fixture(scope="module")
def _at_once() -> int:
    return 2


@pytest.fixture
async def rasters() -> AsyncIterator[FileRasters]:
    async with FileRasters() as found:
        yield found
