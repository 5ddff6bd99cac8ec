"""Imports on a real server."""

from typing import Any

import pytest

from tests.support.imports.runs import Imports


@pytest.fixture
def imports(server: Any, run_worker: Any) -> Imports:
    """Starts imports."""
    return Imports(server, run_worker)
