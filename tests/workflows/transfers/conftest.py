"""Runs of transfers."""

from typing import Any

import pytest

from tests.support.transfers.runs import TransferRuns


@pytest.fixture
def transfers(server: Any, run_worker: Any) -> TransferRuns:
    return TransferRuns(server, run_worker)
