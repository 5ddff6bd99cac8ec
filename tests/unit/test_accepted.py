"""What is noted of a run whose start Temporal has accepted."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.ports.errors import Unavailable
from workers.shared.services import accepted
from workflows.shared import attributes
from workflows.shared.dependencies import Dependency
from workflows.shared.runs import ACCEPTED, RunRecord, RunState

DIGEST = "0123456789abcdef" * 4
UUID = "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1"


class Rows:
    """The table of runs, and what writing to it does."""

    def __init__(self, writing: Callable[[], Awaitable[object]] | None = None) -> None:
        self.kept: list[RunRecord] = []
        self._writing = writing

    async def accept(self, run: RunRecord) -> None:
        if self._writing is not None:
            await self._writing()
        self.kept.append(run)


async def started(id: str, rows: Rows) -> object:
    """What a start returns, when Temporal has accepted it."""

    async def start_workflow(input: object) -> str:
        return "handle"

    following: Any = SimpleNamespace(start_workflow=start_workflow)
    client = accepted._Noting(cast(Any, rows)).intercept_client(following)  # pyright: ignore[reportPrivateUsage]
    known = attributes.at_start("imports", "mto", "P1")
    start: Any = SimpleNamespace(id=id, workflow="Any", search_attributes=known)
    return await client.start_workflow(start)


@pytest.mark.parametrize(
    ("id", "row", "key", "short"),
    [
        ("import/P%201/T1", "import/P%201/T1", "P%201/T1", "T1"),
        (f"job/{DIGEST}", f"job/{DIGEST}", DIGEST, DIGEST),
        (f"transfer/{DIGEST}", f"transfer/{DIGEST}", DIGEST, DIGEST),
        (f"transfer/{DIGEST}/job", f"transfer/{DIGEST}", DIGEST, DIGEST),
        (f"spreadsheet/{UUID}", f"spreadsheet/{UUID}", UUID, UUID),
    ],
)
async def test_a_start_has_the_row_that_its_first_step_writes(
    id: str, row: str, key: str, short: str
) -> None:
    rows = Rows()
    assert await started(id, rows) == "handle"
    [run] = rows.kept
    assert (run.id, run.key, run.short, run.answers_at) == (row, key, short, id)
    assert (run.state, run.own_state, run.kind) == (RunState.WAITING, ACCEPTED, "mto")
    assert run.project == "P1"


@pytest.mark.parametrize("id", ["case/7", "load/7/1/a", "outage/database", "anything"])
async def test_what_is_not_listed_as_a_run_is_not_noted(id: str) -> None:
    rows = Rows()
    assert await started(id, rows) == "handle"
    assert rows.kept == []


async def test_a_database_that_is_away_or_hangs_does_not_hold_up_a_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accepted, "PATIENCE_SECONDS", 0.01)
    answers = asyncio.Event()

    async def refused() -> None:
        raise Unavailable("refused", Dependency.DATABASE)

    assert await started("import/P1/T1", Rows(refused)) == "handle"
    hanging = Rows(answers.wait)
    async with asyncio.timeout(5):
        assert await started("import/P1/T1", hanging) == "handle"
    assert hanging.kept == []
    # It is written once the database answers.
    answers.set()
    async with asyncio.timeout(5):
        while not hanging.kept:
            await asyncio.sleep(0)
