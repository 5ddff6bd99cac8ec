"""Fixtures of the tests of files."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.files.texts.pool import FileTexts
from tests.support.files.reading import Reading


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def read(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reading]:
    """Reads documents with processes that the tests of a module share."""
    async with FileTexts() as texts:
        yield Reading(texts, tmp_path_factory.mktemp("documents"))
