"""Cases on a worker of the test's own."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.batches.installation import (
    BatchInstallation,
    Installations,
    batch_installation,
)
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.case_queue import CaseQueue
from workflows.batches.sweeper import BatchSweeper


@pytest.fixture
def installations(server: Any, run_worker: Any, tmp_path: Path) -> Installations:
    @asynccontextmanager
    async def build(**options: Any) -> AsyncIterator[BatchInstallation]:
        queue = f"cases-{uuid.uuid4().hex}"
        async with (
            batch_installation(server.client, tmp_path, queue, **options) as installation,
            run_worker(
                queue,
                [CaseQueue, BatchLifecycle, BatchSweeper],
                installation.activities(),
                # What is being written when a test ends is written.
                graceful_shutdown_timeout=timedelta(seconds=5),
            ),
        ):
            yield installation

    return build
