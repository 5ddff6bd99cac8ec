"""No reader crashes, hangs or fails without a reason at a damaged file of any format."""

import os
import random
from pathlib import Path
from typing import Final

import pytest

from tests.fuzz.rounds import KIND_NAMES, fuzz
from tests.support.chaos import CHAOS, kills

pytestmark = pytest.mark.chaos
TIMES: Final = kills(15, 300)


@pytest.fixture
def seed() -> str:
    """Few are the same every time; many are others."""
    found = os.environ.get("DOCFLOW_FUZZ_SEED") or (str(random.randrange(10**6)) if CHAOS else "7")
    print(f"DOCFLOW_FUZZ_SEED={found}")
    return found


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(name, marks=[pytest.mark.gnupg] if name == "openpgp" else [])
        for name in KIND_NAMES
    ],
)
async def test_damaged_files_are_read_or_refused(kind: str, seed: str, tmp_path: Path) -> None:
    async for format, outcome in fuzz(kind, TIMES, seed, tmp_path):
        assert outcome.faults == [], format
        assert outcome.read + outcome.refused + len(outcome.contained) == TIMES
