"""Entities of a schedule in chunks that can be resumed anywhere."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from activities.shared.scratch import SeenKeys
from adapters.database.models.every import DOMAIN, key_of
from adapters.database.models.imports import SCOPE
from workflows.imports.runs import RowChunk
from workflows.imports.schedules import KEYS, ScheduleChunks, ScheduleItem
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import Problem

TABLES = ("schedule_activities", "schedule_relationships")

IN_MEMORY = partial(SeenKeys, Path())


def item_of(kind: str, number: int, code: str) -> ScheduleItem:
    if kind == "rejected":
        return RejectedRow(number, (code,), (Problem(line=number, reason="dangling"),))
    if kind == "remark":
        return Problem(line=number, reason="no number")
    values = {"primavera_project_id": "U", "task_code": code}
    if kind == "schedule_relationships":
        values = {"predecessor_code": code, "successor_code": "B", "type": "FS"}
        ends = {"predecessor_project": "", "successor_project": ""}
        values = {"primavera_project_id": "U", **values, **ends}
    return number, kind, values


@st.composite
def streams(draw: st.DrawFn) -> list[ScheduleItem]:
    """Tables in their order, remarks and left-out rows in between."""
    kinds = [
        kind
        for table in TABLES
        for kind in draw(st.lists(st.sampled_from([table, "rejected", "remark"]), max_size=12))
    ]
    codes = st.sampled_from(["A", "B", "C", "D"])
    project: ScheduleItem = (1, "schedule_projects", {"primavera_project_id": "U"})
    return [project, *(item_of(kind, n, draw(codes)) for n, kind in enumerate(kinds, 2))]


def consume(
    items: Sequence[ScheduleItem], resume_at: int, chunk_rows: int
) -> tuple[list[Any], int]:
    """Every row behind the cursor with its place, and how many remarks there are."""
    chunks = ScheduleChunks(iter(items), "P1", "U", {}, IN_MEMORY, resume_at, chunk_rows)
    rows: list[Any] = []

    def all_chunks() -> Iterator[RowChunk]:
        while (chunk := chunks.next()) is not None:
            yield chunk

    for chunk in all_chunks():
        assert len(chunk.rows) + len(chunk.rejected) <= chunk_rows
        assert all(len(row) == len(chunk.columns) for row in chunk.rows)
        assert chunk.columns[:2] == ("project_id", "schedule_id")
        if chunk.cursor > resume_at:
            rows += [(chunk.table, row) for row in chunk.rows]
            rows += [("rejected", row.line) for row in chunk.rejected]
    chunks.close()
    return sorted(rows, key=repr), chunks.remark_count


@given(streams(), st.integers(0, 30), st.integers(1, 7), st.integers(1, 7))
def test_resuming_anywhere_gives_exactly_the_rest(
    items: list[ScheduleItem], resume_at: int, one_size: int, other_size: int
) -> None:
    every, remarks = consume(items, 0, one_size)
    resumed = min(resume_at, len(every))
    before, _ = consume(items[: place_behind(items, resumed)], 0, one_size)
    behind, still_remarks = consume(items, resumed, other_size)
    assert sorted(before + behind, key=repr) == every
    assert still_remarks == remarks
    assert remarks == sum(isinstance(item, Problem) for item in items)


def place_behind(items: Sequence[ScheduleItem], rows: int) -> int:
    """Place in the stream behind so many rows."""
    seen = 0
    for place, item in enumerate(items):
        if seen == rows:
            return place
        seen += not isinstance(item, Problem)
    return len(items)


def test_a_row_for_the_report_names_its_values() -> None:
    values = {
        "primavera_project_id": "U",
        "task_code": "A",
        "planned_start": datetime(2025, 1, 1),
        "calendar": None,
        "total_float_hours": Decimal("-8.5"),
    }
    items: list[ScheduleItem] = [(n, "schedule_activities", values) for n in (1, 2)]
    chunk = ScheduleChunks(iter(items), "P1", "U", {}, IN_MEMORY).next()
    assert chunk is not None
    ((row, rejected),) = zip(chunk.rows, chunk.rejected, strict=True)
    assert row == ("P1", *values.values())
    cells = (
        *("schedule_id: U", "task_code: A", "planned_start: 2025-01-01 00:00:00"),
        *(None, "total_float_hours: -8.5"),
    )
    assert rejected.cells == ("schedule_activities", 2, *cells)
    assert list(chunk.cells) == [("schedule_activities", 1, *cells)]
    assert rejected.problems[0].reason.endswith("more than once; the first one counts")


def test_keys_are_those_of_the_tables() -> None:
    assert {table: key_of(DOMAIN[table]) for table in KEYS} == {
        table: (*SCOPE, *key) for table, key in KEYS.items()
    }


def relationship(line: int, predecessor_project: str) -> ScheduleItem:
    ends = {"predecessor_code": "A", "successor_code": "B", "type": "FS"}
    projects = {"predecessor_project": predecessor_project, "successor_project": ""}
    return line, "schedule_relationships", {"primavera_project_id": "U", **ends, **projects}


def test_the_same_code_in_another_project_is_another_activity() -> None:
    items = [relationship(1, ""), relationship(2, "V"), relationship(3, "V")]
    chunk = ScheduleChunks(iter(items), "P1", "U", {}, IN_MEMORY).next()
    assert chunk is not None
    assert list(chunk.lines) == [1, 2]
    assert [row.line for row in chunk.rejected] == [3]


def test_remarks_are_bounded_and_their_number_exact() -> None:
    remarks = [Problem(line=line, reason="no number") for line in range(250)]
    items: list[ScheduleItem] = [item_of("schedule_activities", 1, "A"), *remarks]
    chunks = ScheduleChunks(iter(items), "P1", "U", {}, IN_MEMORY)
    while chunks.next() is not None:
        pass
    assert chunks.remarks == remarks[:5]
    assert chunks.remark_count == 250
