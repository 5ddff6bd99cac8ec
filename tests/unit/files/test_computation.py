"""Computing beside the worker: what a call may do and cost, and what its failure says."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.files import limits
from adapters.files.computation import ForkingExecutor
from adapters.ports.errors import UnreadableDocument
from tests.support.jobs import computations
from workflows.shared.errors import RuleViolation


@pytest.fixture
async def computing() -> AsyncIterator[ForkingExecutor]:
    async with ForkingExecutor(1, "MEMORY_MB", 256 * limits.MB) as found:
        yield found


async def test_a_function_works_in_its_folder_alone(
    computing: ForkingExecutor, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    folder = tmp_path / "folder"
    folder.mkdir()
    found = await computing.compute(computations.doubled, {"number": 21}, folder)
    assert (found, (folder / "doubled").read_text()) == ({"number": 42}, "42")
    with pytest.raises(RuleViolation, match="stolen failed: PermissionError"):
        await computing.compute(computations.stolen, {"path": str(secret)}, folder)


async def test_more_memory_than_the_limit_names_limit_and_setting(
    computing: ForkingExecutor, tmp_path: Path
) -> None:
    with pytest.raises(
        UnreadableDocument, match=r"more than 256 MB of memory \(MEMORY_MB\); divide it"
    ):
        await computing.compute(computations.swollen, {"bytes": 1 << 30}, tmp_path)
    small: dict[str, Any] = {"bytes": 1_000}
    assert await computing.compute(computations.swollen, small, tmp_path) == small


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (computations.refused, "^0 is odd$"),
        (computations.surprised, "surprised failed: ZeroDivisionError: division by zero"),
    ],
)
async def test_what_a_function_raises_is_the_reason(
    computing: ForkingExecutor, tmp_path: Path, function: Any, reason: str
) -> None:
    with pytest.raises(RuleViolation, match=reason):
        await computing.compute(function, {"number": 0}, tmp_path)
