"""`docflow type export`: into a file, to standard output, and onto a disk without room."""

import asyncio
import logging
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from activities.imports.store import SqlImportStore
from adapters.database.engine import open_database
from tests.support.cli import run_docflow
from tests.support.fresh_database import fresh_url
from tests.support.imports.store import chunk
from workers.shared.cli.context import CliContext
from workflows.imports.messages import Strategy
from workflows.imports.runs import TaskKey

ROWS = 6_000
ROOM = 40_000
"""Bytes that a file may have where there is no room for more; SQLite needs 32,768 to read."""


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> CliContext:
    """An installation with more machines than a page holds."""
    url = fresh_url()

    async def fill() -> None:
        async with open_database(url) as database:
            rows = [("P1", f"E-{number:05}") for number in range(ROWS)]
            machines = chunk("equipment", "project_id code", *rows, cells=False)
            await SqlImportStore(database).write(TaskKey("P1", "T0"), machines, Strategy.MERGE)

    asyncio.run(fill())
    return CliContext({"DATABASE_URL": url})


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process may become larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_rows_go_into_a_file(context: CliContext, tmp_path: Path) -> None:
    out = str(tmp_path / "rows.csv")
    done = run_docflow(
        "type", "export", "equipment", "--project", "P1", "--out", out, context=context
    )
    assert (done.exit_code, done.stderr) == (0, f"{ROWS:,} rows\n"), done.output
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == ROWS + 1
    again = run_docflow(
        "type", "export", "equipment", "--project", "P1", "--out", out, context=context
    )
    assert (again.exit_code, "add --force" in again.stderr) == (2, True)


def test_a_disk_without_room_is_one_line_and_nothing_is_left_behind(
    context: CliContext, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = str(tmp_path / "rows.csv")
    with full_disk(), caplog.at_level(logging.WARNING):
        done = run_docflow(
            "type", "export", "equipment", "--project", "P1", "--out", out, context=context
        )
    assert (done.exit_code, done.stderr) == (5, f"docflow: cannot write {out}: File too large\n")
    assert list(tmp_path.iterdir()) == []
    # No rows are left half read either.
    assert [record.message for record in caplog.records] == []
