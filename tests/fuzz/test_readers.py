"""No reader crashes, hangs or fails without a reason at a damaged file of any format."""

from pathlib import Path

import pytest

from tests.fuzz.rounds import KIND_NAMES, fuzz
from tests.support.chaos import kills, seed

pytestmark = pytest.mark.chaos
FIRST, TIMES = kills(0, 15), kills(15, 30)
"""Of each format; the first ones are those of `make test`."""


@pytest.fixture(name="seed")
def _seed() -> str:
    return seed()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(name, marks=[pytest.mark.gnupg] if name == "openpgp" else [])
        for name in KIND_NAMES
    ],
)
async def test_damaged_files_are_read_or_refused(kind: str, seed: str, tmp_path: Path) -> None:
    async for format, outcome in fuzz(kind, TIMES, seed, tmp_path, first=FIRST):
        assert outcome.faults == [], format
        assert outcome.read + outcome.refused + len(outcome.contained) == TIMES
