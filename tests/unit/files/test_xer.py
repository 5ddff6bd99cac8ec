"""XER files as Primavera and others write them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.files.compound import COMPOUND_HEAD
from adapters.files.schedules import source as xer
from adapters.files.schedules.primavera import open_schedule
from adapters.files.schedules.records import ActivityRecord, RelationshipRecord, UdfValueRecord
from adapters.files.schedules.source import open_xer
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.imports.schedule_reading import read_project
from workflows.shared.contracts import Problem

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


def activities(entities: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    return [values for table, values in entities if table == "schedule_activities"]


def test_lines_without_a_mark_continue_the_field_before(tmp_path: Path) -> None:
    content = text_of(
        tasks(
            "7\t1\tA1\tfirst\nsecond line\n%Reduction of flow\t80",
            "8\t1\tA2\tplain",
            fields="task_id proj_id task_code task_name target_drtn_hr_cnt",
        )
    )
    first, second = activities(read(tmp_path, content))
    assert first["name"] == "first\nsecond line\n%Reduction of flow"
    assert first["original_duration_hours"] == 80
    assert second["name"] == "plain"


def test_short_rows_lack_values_and_extra_cells_of_long_rows_are_ignored(tmp_path: Path) -> None:
    fields = "task_id proj_id task_code task_name total_float_hr_cnt"
    content = text_of(tasks("7\t1\tA1", "8\t1\tA2\tname\t0\tmore\tand more", fields=fields))
    short, long = activities(read(tmp_path, content))
    assert (short["name"], short["total_float_hours"]) == (None, None)
    assert (long["name"], long["total_float_hours"]) == ("name", 0)


def test_an_empty_number_is_not_zero(tmp_path: Path) -> None:
    fields = "task_id proj_id task_code total_float_hr_cnt remain_drtn_hr_cnt"
    (values,) = activities(read(tmp_path, text_of(tasks("7\t1\tA1\t\t0", fields=fields))))
    assert values["total_float_hours"] is None
    assert values["remaining_duration_hours"] == 0


def test_dates_are_local_and_naive(tmp_path: Path) -> None:
    fields = "task_id proj_id task_code early_start_date early_end_date"
    rows = "7\t1\tA1\t2025-03-30 02:30\t31.03.2025"
    path = tmp_path / "schedule.xer"
    path.write_text(text_of(tasks(rows, fields=fields)), encoding="cp1252")
    with open_schedule(path) as source:
        reading = read_project(source, "P1")
    (values,) = activities(reading.entities)
    reason = "is not a date of the form 2025-01-31 08:00; the value was left empty"
    assert reading.remarks == [
        Problem(line=7, column="early_finish", value="31.03.2025", reason=reason)
    ]
    assert values["early_start"].isoformat() == "2025-03-30T02:30:00"
    assert values["early_start"].tzinfo is None
    assert values["early_finish"] is None


@pytest.mark.parametrize(
    ("encoding", "asked"),
    [
        ("cp1252", None),
        ("utf-8-sig", None),
        ("utf-16", None),
        ("utf-16-le", None),
        ("utf-16-be", None),
        ("utf-8", "utf-8"),
        ("utf-16", "cp1252"),
        ("latin-1", "iso-8859-1"),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, asked: str | None) -> None:
    content = text_of(tasks("7\t1\tA1\tDämmung Kühlwasser")).encode(encoding)
    assert activities(read(tmp_path, content, asked))[0]["name"] == "Dämmung Kühlwasser"


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("cp932", "配管工事ソ表"),
        ("gb18030", "管道安装"),
        ("cp1251", "Монтаж"),
        ("iso2022_jp", "配管"),
    ],
)
def test_code_pages_of_other_scripts(tmp_path: Path, encoding: str, name: str) -> None:
    content = text_of(tasks(f"7\t1\tA1\t{name}")).encode(encoding)
    assert activities(read(tmp_path, content, encoding))[0]["name"] == name


def test_utf_8_needs_no_mark(tmp_path: Path) -> None:
    content = text_of(tasks("7\t1\tA1\tÁrea, Größe"))
    assert activities(read(tmp_path, content.encode()))[0]["name"] == "Área, Größe"
    assert activities(read(tmp_path, content))[0]["name"] == "Área, Größe"
    named = activities(read(tmp_path, content.encode(), "latin-1"))[0]["name"]
    assert named != "Área, Größe"


LINKS = "task_id pred_task_id pred_type"


def relationships(entities: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [
        (values["predecessor_code"], values["successor_code"])
        for table, values in entities
        if table == "schedule_relationships"
    ]


def test_relationships_without_a_project_are_kept_or_reported(tmp_path: Path) -> None:
    """Also where only one of the two columns is there, or is empty in a row."""
    own = tasks("7\t1\tA1\tone", "8\t1\tA2\ttwo")
    for fields, rows in (
        (LINKS, ("8\t7\tPR_FS", "8\t99\tPR_FS")),
        (f"{LINKS} proj_id", ("8\t7\tPR_FS\t", "8\t99\tPR_FS\t")),
        (f"{LINKS} pred_proj_id", ("8\t7\tPR_FS", "8\t99\tPR_FS\t")),
    ):
        file = tmp_path / "links.xer"
        file.write_text(text_of(own, table("TASKPRED", fields, *rows)), "cp1252")
        with open_schedule(file) as source:
            found = read_project(source, "P1")
        assert relationships(found.entities) == [("A1", "A2")], fields
        assert [row.problems[0].value for row in found.rejected] == ["99"], fields


def test_relationships_of_another_project_are_left_alone(tmp_path: Path) -> None:
    own = tasks("7\t1\tA1\tone", "8\t2\tB1\ttwo", "9\t2\tB2\tthree")
    both = PROJECT + "\n%R\t2\tP2\t"
    links = table("TASKPRED", LINKS, "9\t8\tPR_FS", "8\t7\tPR_FS")
    content = "\n".join((HEAD, both, own, links, "%E", ""))
    assert relationships(read(tmp_path, content)) == [("A1", "B1")]


def test_rows_without_a_project_are_of_the_only_one(tmp_path: Path) -> None:
    content = text_of(
        table("TASK", "task_id task_code", "7\tA1"),
        table("RSRC", "rsrc_id rsrc_short_name", "5\tCREW"),
        table("TASKRSRC", "task_id rsrc_id target_qty", "7\t5\t10"),
    )
    entities = read(tmp_path, content)
    assert [each["task_code"] for each in activities(entities)] == ["A1"]
    assert [values["task_code"] for name, values in entities if name == "schedule_assignments"] == [
        "A1"
    ]


def test_activities_without_a_project_are_reported_where_there_are_several(
    tmp_path: Path,
) -> None:
    content = "\n".join(
        (HEAD, PROJECT, "%R\t2\tP2\t", table("TASK", "task_id task_code", "7\tA1"), "%E", "")
    )
    file = tmp_path / "several.xer"
    file.write_text(content, "cp1252")
    with open_schedule(file) as source:
        found = read_project(source, "P1")
    assert found.of_table("schedule_activities") == []
    assert "names no project" in found.rejected[0].problems[0].reason


def test_a_wrong_code_page_is_reported(tmp_path: Path) -> None:
    content = text_of(tasks("7\t1\tA1\tArea")).encode("cp1252").replace(b"Area", b"\x81rea")
    with pytest.raises(UnreadableDocument, match=r"row at line 7 is not cp1252: set schedule_conf"):
        read(tmp_path, content, "cp1252")
    for name in ("klingon", "zlib", "rot13", "idna", "undefined"):
        with pytest.raises(UnreadableDocument, match=f"'{name}' is not a text encoding"):
            read(tmp_path, content, name)


def test_carriage_returns_and_unknown_tables(tmp_path: Path) -> None:
    content = text_of(
        table("ZZ_UNKNOWN", "a b", "1\t2"),
        tasks("7\t1\tA1\tname"),
        "%T\tEMPTY",
        "%T\tALSO_EMPTY\n%F\ta",
    ).replace("\n", "\r\n")
    (values,) = activities(read(tmp_path, content))
    assert values["name"] == "name"


@pytest.mark.parametrize("end", ["", "%R\t9\t1\tA9\tcut of", "%E?"])
def test_a_file_without_its_end_is_refused(tmp_path: Path, end: str) -> None:
    with pytest.raises(UnreadableDocument, match="cut off"):
        read(tmp_path, text_of(tasks("7\t1\tA1\tname"), end=end))


def test_tables_in_any_order_and_in_pieces(tmp_path: Path) -> None:
    content = text_of(
        table(
            "TASKPRED", "task_id pred_task_id proj_id pred_proj_id pred_type", "8\t7\t1\t1\tPR_SS"
        ),
        tasks("7\t1\tA1\tone"),
        table("TASK", "task_code task_id proj_id", "A2\t8\t1"),
    )
    entities = read(tmp_path, content)
    assert [values["task_code"] for values in activities(entities)] == ["A1", "A2"]
    (relationship,) = (v for name, v in entities if name == "schedule_relationships")
    assert (relationship["predecessor_code"], relationship["type"]) == ("A1", "SS")


def test_dangling_references_are_left_out_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "schedule.xer"
    fields = "task_id pred_task_id proj_id pred_proj_id pred_type"
    path.write_text(
        text_of(
            tasks("7\t1\tA1\tone", "8\t1\tA2\ttwo"),
            table(
                "TASKPRED", fields, "8\t7\t1\t1\tPR_FS", "8\t99\t1\t1\tPR_FS", "8\t7\t1\t1\tPR_XX"
            ),
            table("TASKRSRC", "task_id proj_id rsrc_id", "7\t1\t55", "66\t1\t"),
            table("TASKACTV", "task_id proj_id actv_code_type_id actv_code_id", "7\t1\t1\t1"),
            table("UDFVALUE", "udf_type_id fk_id proj_id udf_text", "1\t7\t1\tx"),
        ),
        encoding="cp1252",
    )
    with open_schedule(path) as source:
        reading = read_project(source, "P1")
    tables = [table for table, _ in reading.entities]
    assert tables.count("schedule_relationships") == 1
    assert not {"schedule_assignments", "schedule_activity_codes", "schedule_udf_values"} & {
        *tables
    }
    assert [(row.line, row.cells[0], row.problems[0].column) for row in reading.rejected] == [
        (12, "schedule_relationships", "predecessor_code"),
        (13, "schedule_relationships", "type"),
        (16, "schedule_assignments", "resource_code"),
        (17, "schedule_assignments", "task_code"),
        (20, "schedule_activity_codes", "code_type"),
        (23, "schedule_udf_values", "udf"),
    ]
    assert reading.remarks == []


def test_a_left_out_row_names_its_values(tmp_path: Path) -> None:
    path = tmp_path / "schedule.xer"
    path.write_text(text_of(tasks("7\t1\t\tno code", "8\t1\tA2\tname")), encoding="cp1252")
    with open_schedule(path) as source:
        reading = read_project(source, "P1")
    (left_out,) = reading.rejected
    assert left_out.cells[:2] == ("schedule_activities", 7)
    assert [cell for cell in left_out.cells[2:] if cell] == [
        "id: 7",
        "project: 1",
        "name: no code",
    ]
    assert [values["task_code"] for values in activities(reading.entities)] == ["A2"]


def test_relationships_across_projects_name_the_other_one(tmp_path: Path) -> None:
    fields = "task_id pred_task_id proj_id pred_proj_id pred_type lag_hr_cnt"
    content = text_of(
        table("PROJECT", "proj_id proj_short_name", "2\tP2"),
        tasks("7\t1\tA1\tone", "8\t2\tB1\ttwo"),
        table("TASKPRED", fields, "7\t8\t1\t2\tPR_FS\t-8", "8\t7\t2\t1\tPR_FF\t"),
    )
    path = tmp_path / "schedule.xer"
    path.write_text(content, encoding="cp1252")
    with open_schedule(path) as source:
        inward, outward = read_project(source, "P1").of_table("schedule_relationships")
        assert read_project(source, "2").of_table("schedule_activities")
    assert (inward["predecessor_project"], inward["predecessor_code"]) == ("P2", "B1")
    assert (inward["successor_project"], inward["lag_hours"]) == ("", -8)
    assert (outward["successor_project"], outward["lag_hours"]) == ("P2", None)


def test_an_unknown_project_names_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "schedule.xer"
    path.write_text(text_of(), encoding="cp1252")
    with (
        open_schedule(path) as source,
        pytest.raises(UnreadableDocument, match="holds no project 'NOPE'; it holds P1"),
    ):
        list(source.read("NOPE"))


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("CP_Phys", "35\t80\t20\t0\t0", 35),
        ("CP_Drtn", "35\t80\t20\t0\t0", 75),
        ("CP_Drtn", "35\t0\t0\t0\t0", 0),
        ("CP_Drtn", "35\t\t20\t0\t0", None),
        ("CP_Units", "35\t80\t20\t30\t10", 75),
        ("CP_Drtn", "35\t80\t120\t0\t0", 0),
    ],
)
def test_percent_complete_by_its_type(
    tmp_path: Path, kind: str, fields: str, expected: int | None
) -> None:
    names = "task_id proj_id task_code status_code complete_pct_type phys_complete_pct"
    names += " target_drtn_hr_cnt remain_drtn_hr_cnt act_work_qty remain_work_qty"
    row = f"7\t1\tA1\tTK_Active\t{kind}\t{fields}"
    (values,) = activities(read(tmp_path, text_of(tasks(row, fields=names))))
    assert values["percent_complete"] == expected


def test_lines_and_rows_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xer, "LINE_BYTES", 200)
    with pytest.raises(UnreadableDocument, match="line 7 is longer than 200 bytes"):
        read(tmp_path, text_of(tasks("7\t1\tA1\t" + "x" * 500)))
    monkeypatch.setattr(xer, "ROW_LINES", 50)
    with pytest.raises(UnreadableDocument, match="row at line 7 never ends"):
        read(tmp_path, text_of(tasks("7\t1\tA1\tx" + "\n" * 100)))


def test_other_files_are_named(tmp_path: Path) -> None:
    for content, words in (
        (b"", "is empty"),
        (b"PK\x03\x04....", "a zip or Office file"),
        (COMPOUND_HEAD, "a Microsoft Project or old Office file"),
        (b"%PDF-1.7", "seems to be a PDF document; export"),
        (b"\x89PNG", "seems to be a PNG image; export"),
        (b"code;name\n1;2\n", "not a Primavera XER or PMXML file; export"),
        (HEAD.encode() + b"\n%E\n", "holds no project"),
    ):
        with pytest.raises(UnreadableDocument, match=words):
            read(tmp_path, content)


FIELD = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\r\n\0", exclude_categories=["Cs"]),
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
