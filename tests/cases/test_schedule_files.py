"""Primavera files as programs write them: `schedule_files/*.toml` has what is read of each.

A case is a text or the first bytes (`hex`) of a file. `tables` are those of an XER file behind its
project P1; `inside` and `outside` are elements of a PMXML file, of its project P1 and beside it.
What is read are rows by table without blank values (`only` some fields of them), remarks on values
(line, column, value, reason), left-out rows (line, table, column, value, reason), or why the file
is refused.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.files.schedules.primavera import open_schedule
from adapters.ports.errors import UnreadableDocument
from tests.cases.corpus import Case, cases
from tests.support.imports.schedule_reading import ReadSchedule, read_project

FOLDER: Final = Path(__file__).parent / "schedule_files"
CASES: Final = cases(FOLDER)
TABLES: Final = (
    *("activities", "activity_codes", "assignments", "relationships", "resources"),
    *("udf_values", "wbs", "projects"),
)
XER: Final = (
    "ERMHDR\t22.12\t2025-04-01\n%T\tPROJECT\n%F\tproj_id\tproj_short_name\tlast_recalc_date\n"
    "%R\t1\tP1\t2025-04-01 00:00\n"
)
PMXML: Final = (
    '<APIBusinessObjects xmlns="http://xmlns.oracle.com/Primavera/P6/V22.12/API/BusinessObjects"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
)
PROJECT: Final = "<ObjectId>1</ObjectId><Id>P1</Id><Name>Piping</Name><WBSObjectId>9</WBSObjectId>"


def content_of(case: Case) -> bytes:
    """The bytes that a case writes."""
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "tables" in case:
        text, written_in = f"{XER}{case['tables']}%E\n", "cp1252"
    elif "inside" in case:
        project = f"<Project>{PROJECT}{case['inside']}</Project>"
        text = f"{PMXML}{case.get('outside', '')}{project}</APIBusinessObjects>"
        written_in = "utf-8"
    else:
        text, written_in = case["content"], "utf-8"
    text = text.replace("\n", "\r\n") if "crlf" in case else text
    return text.encode(case.get("written_in", written_in))


def rows_of(read: ReadSchedule, table: str, only: list[str] | None) -> list[dict[str, str]]:
    """Values of a table as a case writes them."""
    return [
        {
            name: f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
            for name, value in row.items()
            if value not in (None, "")
            if (name != "primavera_project_id" if only is None else name in only)
        }
        for row in read.of_table(f"schedule_{table}")
    ]


def told(problem: Any) -> list[Any]:
    """Column, value and reason of a problem."""
    return [problem.column or "", problem.value or "", problem.reason]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_schedule_file_becomes_these_rows(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "schedule"
    file.write_bytes(content_of(case))
    encoding, project = case.get("encoding"), case.get("project", "P1")
    if "refused" in case:
        with (
            pytest.raises(UnreadableDocument) as refused,
            open_schedule(file, encoding=encoding) as source,
        ):
            read_project(source, project)
        assert str(refused.value) == case["refused"]
        return
    with open_schedule(file, encoding=encoding) as source:
        read = read_project(source, project)
    for table in TABLES:
        rows = rows_of(read, table, case.get("only"))
        if table in case or (table not in ("wbs", "projects") and not case.get("only")):
            assert rows == case.get(table, []), table
    assert [[each.line, *told(each)] for each in read.remarks] == case.get("remarks", [])
    assert [
        [row.line, str(row.cells[0]).removeprefix("schedule_"), *told(row.problems[0])]
        for row in read.rejected
    ] == case.get("rejected", [])
