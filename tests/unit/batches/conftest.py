"""Documents that are loaded by real readers into real tables."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from adapters.files.texts.pool import FileTexts
from tests.support.batches.document_loading import (
    DocumentLoading,
    document_loading,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def texts() -> AsyncIterator[FileTexts]:
    """Processes that read documents."""
    async with FileTexts() as texts:
        yield texts


@pytest_asyncio.fixture(loop_scope="module")
async def loading(tmp_path: Path, texts: FileTexts) -> AsyncIterator[DocumentLoading]:
    """Steps of documents."""
    async with document_loading(tmp_path, texts) as loading:
        yield loading
