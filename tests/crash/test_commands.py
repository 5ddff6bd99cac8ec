"""Commands that talk to Temporal end with their own exit code, under load and however often."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.crash.harness import WORKER_WITH_BRIDGE, running_system, until
from tests.support.processes import start
from workers.imports.runs import ImportRuns
from workflows.imports.runs import ImportState

pytestmark = pytest.mark.chaos(alone=True)

DOCUMENTS = 67
"""Each is submitted, tried again and skipped: three commands."""
AT_ONCE = 4
CALLS = 3
"""Of one command, on a machine that is too busy for an answer."""


async def docflow(settings: Mapping[str, str], *arguments: str) -> int:
    """The exit code of a command; negative when a signal ended it.

    A command that no worker answered in time says so and is called again, as a person would.
    """
    for left in reversed(range(CALLS)):
        process = await start(settings, *arguments)
        output, errors = await process.communicate()
        code = process.returncode
        assert code is not None
        if left and code == 1 and b"no worker answered within" in errors:
            continue
        assert code == 0, f"{arguments}: {code}: {output.decode()}{errors.decode()}"
        return code
    raise AssertionError("unreachable")


async def test_every_call_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "equipment.csv"
    # No column of it is known: the import parks.
    file.write_text("nothing,that,is,known\n1,2,3,4\n")
    (tmp_path / "system").mkdir()
    turn, codes = asyncio.Semaphore(AT_ONCE), Counter[int]()
    async with running_system(tmp_path / "system", WORKER_WITH_BRIDGE) as system:
        runs = ImportRuns(await system.client(), {})

        async def parked(task: str) -> None:
            async def is_parked() -> bool:
                status = await runs.status(f"import/P1/{task}")
                return status is not None and status.state is ImportState.PARKED

            await until(is_parked, f"{task} is parked", every=0.1)

        async def call(*arguments: str) -> None:
            async with turn:
                codes[await docflow(system.settings, *arguments)] += 1

        async def document(task: str) -> None:
            options = ("--type", "equipment", "--project", "P1", "--task", task, "--no-follow")
            await call("submit", "imports", str(file), *options)
            await parked(task)
            await call("retry", f"P1/{task}")
            await parked(task)
            await call("skip", f"P1/{task}", "--reason", "planned")

        async with asyncio.TaskGroup() as group:
            for number in range(DOCUMENTS):
                group.create_task(document(f"T{number}"))
    assert codes == {0: 3 * DOCUMENTS}
