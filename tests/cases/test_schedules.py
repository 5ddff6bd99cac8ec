"""Schedule files as exporters leave them: what goes in, and what the note says."""

import tomllib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.imports.schedules import ScheduleSetup, open_schedule_setup

FOLDER: Final = Path(__file__).parent
CASES: Final[Mapping[str, Any]] = tomllib.loads((FOLDER / "schedules.toml").read_text())


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncGenerator[ScheduleSetup]:
    async with open_schedule_setup(tmp_path) as setup:
        yield setup


@pytest.mark.parametrize("name", CASES)
async def test_schedules_of_exporters(setup: ScheduleSetup, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    own = FOLDER / "schedules" / name
    content = own.read_bytes() if own.exists() else _made(case)
    file = tmp_path / name
    file.write_bytes(content)
    await setup.blobs.upload(file, name)
    outcome = await setup.load(name, primavera_project_id=case.get("project", "LAKE"))
    assert outcome.counts.rejected == case.get("rejected", 0), outcome.problems
    if note := case.get("note"):
        assert outcome.note is not None
        assert outcome.note.endswith(note)
    if names := case.get("activities"):
        assert await setup.rows("SELECT task_code, name FROM schedule_activities ORDER BY 1") == [
            tuple(each) for each in names
        ]
    if "relationships" in case:
        found = await setup.rows(
            "SELECT predecessor_project, predecessor_code, successor_project, successor_code,"
            " type FROM schedule_relationships ORDER BY 2, 4"
        )
        own_schedule = case.get("project", "LAKE")
        assert [["" if part == own_schedule else part for part in row] for row in found] == case[
            "relationships"
        ]


def _made(case: Mapping[str, Any]) -> bytes:
    """The case that only names differ in, with its own names and code page."""
    text = (FOLDER / "schedules" / "y10_names.xer").read_bytes().decode("ascii")
    return text.replace("Total station survey", case["text"]).encode(case["written_in"])
