"""XER files as Primavera and others write them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.files.schedules import source as xer
from adapters.files.schedules.primavera import open_schedule
from adapters.files.schedules.records import ActivityRecord, RelationshipRecord, UdfValueRecord
from adapters.files.schedules.source import open_xer
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.imports.schedule_reading import read_project

HEAD = "ERMHDR\t22.12\t2025-04-01"
PROJECT = "%T\tPROJECT\n%F\tproj_id\tproj_short_name\tlast_recalc_date\n%R\t1\tP1\t2025-04-01 00:00"


def text_of(*parts: str, end: str = "%E\n") -> str:
    return "\n".join((HEAD, PROJECT, *parts)) + "\n" + end


def table(name: str, fields: str, *rows: str) -> str:
    lines = [f"%T\t{name}", "%F\t" + "\t".join(fields.split())]
    return "\n".join([*lines, *("%R\t" + row for row in rows)])


def tasks(*rows: str, fields: str = "task_id proj_id task_code task_name") -> str:
    return table("TASK", fields, *rows)


def read(folder: Path, content: str | bytes, encoding: str | None = None) -> list[tuple[str, Any]]:
    path = folder / "schedule.xer"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("cp1252"))
    with open_schedule(path, encoding=encoding) as source:
        return read_project(source, "P1").entities


def test_lines_and_rows_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xer, "LINE_BYTES", 200)
    with pytest.raises(UnreadableDocument, match="line 7 is longer than 200 bytes"):
        read(tmp_path, text_of(tasks("7\t1\tA1\t" + "x" * 500)))
    monkeypatch.setattr(xer, "ROW_LINES", 50)
    with pytest.raises(UnreadableDocument, match="row at line 7 never ends"):
        read(tmp_path, text_of(tasks("7\t1\tA1\tx" + "\n" * 100)))


FIELD = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\r\n\0\x7f", exclude_categories=["Cs"]),
    max_size=12,
)
LINES = st.lists(FIELD.filter(lambda line: not line.startswith("%")), min_size=1, max_size=3)


@given(
    rows=st.lists(st.tuples(FIELD, FIELD, LINES.map("\n".join)), max_size=6),
    line_end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-16"]),
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(
    tmp_path: Path, rows: list[tuple[str, str, str]], line_end: str, encoding: str
) -> None:
    content = text_of(
        table("TASKPRED", "x"),
        table("UDFVALUE", "udf_type_id fk_id udf_text", *("\t".join(row) for row in rows)),
    )
    path = tmp_path / "random.xer"
    path.write_bytes(content.replace("\n", line_end).encode(encoding))
    with open_xer(path, encoding) as records:
        found = [(r.type, r.owner, r.text) for r in records.rows(UdfValueRecord)]
        assert list(records.rows(ActivityRecord)) == []
        assert list(records.rows(RelationshipRecord)) == []
    assert found == rows


def test_projects_without_a_short_name_are_named_by_id(tmp_path: Path) -> None:
    path = tmp_path / "schedule.xer"
    path.write_text(text_of(table("PROJECT", "proj_id proj_short_name", "2\t")), encoding="cp1252")
    with open_schedule(path) as source:
        assert [project.primavera_project_id for project in source.projects()] == ["P1", "2"]
    with pytest.raises(UnreadableDocument, match="project at line 7 has no usable id"):
        read(tmp_path, text_of(table("PROJECT", "proj_id proj_short_name", "\t")))
