"""Rows that are no data: what the report keeps of them, and what a person may answer."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from adapters.files.documents import FileDocuments
from tests.support.imports.activities import ActivityPorts
from tests.support.imports.documents import workbook
from tests.support.imports.loads import codes, load
from workflows.imports.runs import Counts

FILE = b"Code,Description,Rate\nE-1,Crane,10\nE-2,Pump,20\nTotal,,30\n,Rented,\nPage 1\nPage 2\n"


@pytest.fixture
def ports(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


async def report_of(ports: ActivityPorts, name: str, tmp_path: Path) -> list[list[Any]]:
    path = tmp_path / "report.xlsx"
    await ports.blobs.download(name, path)
    with FileDocuments().open_workbook(path, filename=None, encoding=None) as book:
        return [list(cells) for _, cells in book.table("left out").rows()]


async def test_the_report_keeps_what_is_left_out(ports: ActivityPorts, tmp_path: Path) -> None:
    outcome = await load(ports, FILE)
    assert (outcome.counts, outcome.held_back) == (Counts(created=2), None)
    assert (outcome.problem_count, outcome.problems[0].reason) == (4, "left out: total")
    assert outcome.report is not None
    assert await report_of(ports, outcome.report.name, tmp_path) == [
        ["what is wrong", "Code", "Description", "Rate"],
        ["line 4: left out: total", "Total", None, "30"],
        ["line 5: left out: heading or remark without a key", None, "Rented"],
        ["line 6: left out: page footer", "Page 1"],
        ["line 7: left out: page footer", "Page 2"],
    ]


async def test_each_sheet_has_its_titles_and_lines(ports: ActivityPorts, tmp_path: Path) -> None:
    sheets = {
        "North": [["Code", "Rate"], ["E-1", 10], ["E-2", 20], ["Total", 30]],
        "South": [["Note", "Code", "Rate"], ["x", "E-3", 1], ["y", "E-4", 2], [None, "Total", 3]],
    }
    content = workbook(tmp_path / "two.xlsx", sheets).read_bytes()
    with pytest.raises(ApplicationError, match=r"line 4 stands on 2 sheets; write 'North!4' or"):
        await load(ports, content, keep_lines=["4"])
    outcome = await load(ports, content)
    assert outcome.report is not None
    assert await report_of(ports, outcome.report.name, tmp_path) == [
        ["what is wrong", "Code", "Rate"],
        ["'North' line 4: left out: total", "Total", 30],
        ["what is wrong", "Note", "Code", "Rate"],
        ["'South' line 4: left out: total", None, "Total", 3],
    ]
    kept = await load(ports, content, task_id="T2", keep_lines=["south!4"])
    assert (kept.counts.created, kept.counts.unchanged) == (1, 4)
    assert "No row" not in (kept.note or "")


async def test_a_report_that_comes_back_holds_no_left_out_rows(
    ports: ActivityPorts, tmp_path: Path
) -> None:
    outcome = await load(ports, FILE.replace(b"20\n", b"many\n"))
    assert outcome.report is not None
    path = tmp_path / "report.xlsx"
    await ports.blobs.download(outcome.report.name, path)
    again = await load(ports, path.read_bytes(), task_id="T2")
    assert (again.counts.created, again.counts.rejected, again.note) == (0, 1, None)


async def test_a_person_is_asked_before_any_row_is_written(
    ports: ActivityPorts, tmp_path: Path
) -> None:
    await load(ports, b"Code,Rate\nE-1,x\n", all_or_nothing=True)
    asked = await load(ports, FILE, left_out="ask")
    assert (asked.counts, asked.problem_count, codes(ports)) == (Counts(), 4, [])
    assert asked.held_back is not None
    assert asked.held_back.startswith("4 rows look like totals, page footers or headings")
    assert [(each.line, each.value) for each in asked.problems] == [
        (4, "Total | 30"),
        (5, "Rented"),
        (6, "Page 1"),
        (7, "Page 2"),
    ]
    assert asked.report is not None
    await ports.blobs.download(asked.report.name, tmp_path / "asked.xlsx")
    with FileDocuments().open_workbook(
        tmp_path / "asked.xlsx", filename=None, encoding=None
    ) as book:
        assert len([*book.table("Sheet1").rows()]) == 1, "rows of an earlier file"
    assert asked.question is not None and asked.question.field == "left_out"
    wrong = await load(ports, FILE, left_out="ask", keep_lines=["6", "40"])
    assert (wrong.held_back or "").startswith("keep_lines: on '40' stands no row")
    noted = await load(ports, FILE, keep_lines=["40"])
    assert "stands on these `keep_lines`: '40'." in (noted.note or "")
