"""Entities of a schedule in chunks that can be resumed anywhere."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from activities.imports.schedule_chunks import ScheduleChunks, read_items
from adapters.ports import RejectedRow, RowChunk, ScheduleProject
from contracts.imports import Problem

Item = tuple[int, str, dict[str, Any]] | RejectedRow | Problem

TABLES = ("schedule_activities", "schedule_relationships")


def item_of(kind: str, number: int, code: str) -> Item:
    if kind == "rejected":
        return RejectedRow(number, (code,), (Problem(line=number, reason="dangling"),))
    if kind == "remark":
        return Problem(line=number, reason="no number")
    values = {"primavera_project_id": "U", "task_code": code}
    if kind == "schedule_relationships":
        values = {"predecessor_code": code, "successor_code": "B", "type": "FS"}
        values = {"primavera_project_id": "U", **values}
    return number, kind, values


@st.composite
def streams(draw: st.DrawFn) -> list[Item]:
    """Tables in their order, remarks and left-out rows in between."""
    kinds = [
        kind
        for table in TABLES
        for kind in draw(st.lists(st.sampled_from([table, "rejected", "remark"]), max_size=12))
    ]
    codes = st.sampled_from(["A", "B", "C", "D"])
    project: Item = (1, "schedule_projects", {"primavera_project_id": "U"})
    return [project, *(item_of(kind, n, draw(codes)) for n, kind in enumerate(kinds, 2))]


def consume(items: Sequence[Item], resume_at: int, chunk_rows: int) -> tuple[list[Any], int]:
    """Every row behind the cursor with its place, and how many things are wrong."""
    chunks = ScheduleChunks(iter(items), "P1", resume_at, chunk_rows)
    rows: list[Any] = []

    def all_chunks() -> Iterator[RowChunk]:
        while (chunk := chunks.next()) is not None:
            yield chunk

    for chunk in all_chunks():
        assert len(chunk.rows) + len(chunk.rejected) <= chunk_rows
        assert all(len(row) == len(chunk.columns) for row in chunk.rows)
        if chunk.cursor > resume_at:
            rows += [(chunk.table, row) for row in chunk.rows]
            rows += [("rejected", row.line) for row in chunk.rejected]
    chunks.close()
    return sorted(rows, key=repr), chunks.problem_count


@given(streams(), st.integers(0, 30), st.integers(1, 7), st.integers(1, 7))
def test_resuming_anywhere_gives_the_rest_and_no_more(
    items: list[Item], resume_at: int, one_size: int, other_size: int
) -> None:
    every, wrong = consume(items, 0, one_size)
    resumed = min(resume_at, len(every))
    before, _ = consume(items[: place_behind(items, resumed)], 0, one_size)
    behind, still_wrong = consume(items, resumed, other_size)
    assert sorted(before + behind, key=repr) == every
    assert still_wrong == wrong


def place_behind(items: Sequence[Item], rows: int) -> int:
    """Place in the stream behind so many rows."""
    seen = 0
    for place, item in enumerate(items):
        if seen == rows:
            return place
        seen += not isinstance(item, Problem)
    return len(items)


def test_moments_and_decimals_of_a_repeated_row_can_be_kept() -> None:
    values = {"primavera_project_id": "U", "task_code": "A", "planned_start": datetime(2025, 1, 1)}
    items: list[Item] = [(n, "schedule_activities", values) for n in (1, 2)]
    chunk = ScheduleChunks(iter(items), "P1").next()
    assert chunk is not None
    ((row, rejected),) = zip(chunk.rows, chunk.rejected, strict=True)
    assert row == ("P1", "U", "A", datetime(2025, 1, 1))
    assert rejected.cells == ("schedule_activities", "U", "A", datetime(2025, 1, 1))
    assert rejected.problems[0].reason.endswith("more than once; the first one counts")


def test_a_source_that_tells_no_lines_gets_numbers() -> None:
    class PlainSource:
        format = "xer"

        def projects(self) -> list[ScheduleProject]:
            return []

        def entities(self, primavera_project_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
            yield "schedule_projects", {"primavera_project_id": primavera_project_id}
            yield "schedule_wbs", {"primavera_project_id": primavera_project_id, "wbs_code": "W"}

    chunks = ScheduleChunks(read_items(PlainSource(), "U"), "P1")
    found = [chunks.next(), chunks.next(), chunks.next()]
    assert [(c.table, c.lines, c.rows) for c in found if c] == [
        ("schedule_projects", [1], [("P1", "U")]),
        ("schedule_wbs", [2], [("P1", "U", "W")]),
    ]
