"""The table of the demo can be read in any window."""

import json
from io import StringIO

import pytest
from rich.console import Console

from stack.demo.samples import Run, Sample, prepare
from stack.demo.table import demo_table
from tests.support.imports.schedules import SAMPLES
from workflows.imports.runs import Counts


def runs() -> list[Run]:
    phases = json.loads((SAMPLES / "demo.json").read_text())
    samples = [Sample.model_validate(each) for phase in phases for each in phase]
    made = [prepare(sample, number) for number, sample in enumerate(samples, 1)]
    for run in made:
        run.state, run.seconds = "completed", 12.3
        run.counts = Counts(created=5, updated=50, unchanged=141, deleted=4, flagged=1)
    return made


def drawn(width: int, *, links: bool) -> list[list[str]]:
    """The cells of each row, lines of one joined."""
    out = StringIO()
    console = Console(file=out, width=width)
    console.print(demo_table(runs(), "http://127.0.0.1:1", links=links, wide=width > 200))
    rows: list[list[str]] = []
    for line in out.getvalue().splitlines():
        if not line.startswith("│"):
            continue
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if cells[0] and cells[-1 - links]:
            rows.append(cells)
        elif rows:
            rows[-1] = [one + other for one, other in zip(rows[-1], cells, strict=True)]
    return rows


@pytest.mark.parametrize("width", [60, 80, 120, 280])
def test_no_name_is_cut(width: int) -> None:
    rows = drawn(width, links=False)
    assert [row[0] for row in rows] == [run.document for run in runs()]
    kinds = [str(run.body["document_type"]) for run in runs()]
    assert [row[1].partition(",")[0] for row in rows] == kinds
    assert not any("…" in cell for row in rows for cell in row)


def test_a_stack_that_stays_up_is_linked() -> None:
    assert all(row[-1].startswith("http://127.0.0.1:1/") for row in drawn(280, links=True)[:3])
