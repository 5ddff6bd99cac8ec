"""PMXML files, honest and hostile."""

import time
import tracemalloc
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.files.schedules import source as pmxml
from adapters.files.schedules.primavera import open_schedule
from adapters.files.schedules.records import ActivityRecord
from adapters.files.schedules.source import open_pmxml
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.imports.schedule_reading import read_project
from workflows.shared.contracts import Problem

ROOT = (
    '<APIBusinessObjects xmlns="http://xmlns.oracle.com/Primavera/P6/V22.12/API/BusinessObjects"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
)
PROJECT = "<ObjectId>1</ObjectId><Id>P1</Id><Name>Piping</Name><WBSObjectId>9</WBSObjectId>"


def document(inside: str, outside: str = "", head: str = "") -> str:
    return f"{head}{ROOT}{outside}<Project>{PROJECT}{inside}</Project></APIBusinessObjects>"


def read(folder: Path, content: str | bytes, project: str = "P1") -> list[tuple[str, Any]]:
    path = folder / "schedule.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_schedule(path) as source:
        return read_project(source, project).entities


def of_table(entities: list[tuple[str, Any]], table: str) -> list[dict[str, Any]]:
    return [values for name, values in entities if name == table]


ACTIVITY = (
    "<Activity><Id>A1</Id><Name>Spool &amp; weld</Name><WBSObjectId>11</WBSObjectId>"
    "<PercentComplete>0.355</PercentComplete><PlannedDuration>80.0</PlannedDuration>"
    '<TotalFloat xsi:nil="true"/><EarlyStartDate>2025-04-02T07:00:00</EarlyStartDate>'
    "<RemainingEarlyStartDate>2025-05-05T07:00:00</RemainingEarlyStartDate>"
    "<RemainingLateStartDate>2025-06-06T07:00:00</RemainingLateStartDate>"
    "<Code><TypeObjectId>5</TypeObjectId><ValueObjectId>6</ValueObjectId></Code>"
    "<UDF><TypeObjectId>7</TypeObjectId><IntegerValue>12</IntegerValue></UDF>"
    "<Notebook><Id>other</Id><Activity><Id>inner</Id></Activity></Notebook>"
    "<ObjectId>21</ObjectId></Activity>"
)


BILLION_LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (document("<Name>&m;</Name>", head=BILLION_LAUGHS + "]>"), "document type"),
        (
            document(
                "<Name>&e;</Name>", head='<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hosts">]>'
            ),
            "document type",
        ),
        (document("", head='<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd">'), "document type"),
        (document("<Name>&nothing;</Name>"), "damaged"),
        (document("<a>" * 10_000 + "</a>" * 10_000), "more than 64 deep"),
        (document(ACTIVITY)[:-60], "damaged or was cut off"),
        (document("<Activity><Id>A1</Id>"), "damaged"),
        ('<?xml version="1.0" encoding="klingon"?>' + document(""), "damaged|encoding"),
        (document("<Name>\x00</Name>"), "damaged"),
        (document('<x y="' + "z" * 9_000_000 + '"/>'), "tag of more than"),
        (document("<Activity>" + "<UDF></UDF>" * 10_001 + "</Activity>"), "codes and fields"),
    ],
    ids=lambda value: str(value)[:12] if len(str(value)) < 60 else "document",
)
def test_hostile_files_cost_little(tmp_path: Path, content: str, words: str) -> None:
    begin = time.process_time()
    with pytest.raises(UnreadableDocument, match=words):
        read(tmp_path, content)
    assert time.process_time() - begin < 5


def test_one_endless_value_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "schedule.xml"
    piece = "x" * 1_000 + "&amp;"
    path.write_text(document(f"<Activity><Id>A1</Id><Name>{piece * 20_000}</Name></Activity>"))
    tracemalloc.start()
    with open_schedule(path) as source:
        reading = read_project(source, "P1")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (values,) = reading.of_table("schedule_activities")
    assert len(values["name"]) == 4_000
    assert reading.remarks == [
        Problem(
            line=1,
            column="name",
            value=piece[:200],
            reason="is longer than 4000 characters; it was cut",
        )
    ]
    assert peak < 5_000_000


def test_records_wait_on_disk_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pmxml, "_BATCH", 3)
    path = tmp_path / "schedule.xml"
    codes = [f"A{number}" for number in range(10)]
    path.write_text(document("".join(f"<Activity><Id>{c}</Id></Activity>" for c in codes)))
    with open_pmxml(path) as records:
        first, second = records.rows(ActivityRecord), records.rows(ActivityRecord)
        # Two readers of one kind, in turn.
        pairs = [(one.code, other.code) for one, other in zip(first, second, strict=True)]
    assert pairs == [(code, code) for code in codes]
    assert list(tmp_path.iterdir()) == [path]


TEXT = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc", "Z"]),
    min_size=1,
    max_size=10,
)


@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=8))
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    inside = "".join(
        f"<Activity>\n<Name>{escape(name)}</Name><Id>{escape(code)}</Id>\n</Activity>"
        for code, name in rows
    )
    path = tmp_path / "random.xml"
    path.write_text(document(inside), encoding="utf-8")
    with open_pmxml(path) as records:
        found = [(record.code, record.name) for record in records.rows(ActivityRecord)]
    assert found == rows
