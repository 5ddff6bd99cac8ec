"""What older senders send is accepted still, and what is not used of it is named."""

import json
from typing import Any

import pytest

from workers.catalogue import PIPELINES
from workers.imports.messages import read_message
from workers.shared.register import recognise
from workers.shared.services.bodies import RefusedMessage
from workflows.imports.findings import naming_unused_fields
from workflows.imports.messages import (
    COLUMNS,
    BulkMessage,
    ScheduleFillColumnMessage,
    encoded,
    workflow_id,
)
from workflows.imports.runs import HandlerOutcome, TaskKey
from workflows.shared.contracts import body_of, digest_of


def message(**fields: Any) -> Any:
    body = {"document_type": "equipment", "task_id": "T1", "project_id": "P1", **fields}
    return read_message(json.dumps(body).encode())


def test_a_message_with_every_field_of_the_older_model_is_read() -> None:
    older = {
        **dict.fromkeys(("service_id", "extraction_id", "operation", "filters", "payload")),
        **dict.fromkeys(("temp_blob_name", "target_blob_name", "original_filename")),
        "schedule_config": None,
        "direct_upload": False,
        "strategy": "merge",
    }
    assert message(blob_name="a.csv", **older).unknown_fields == ()


@pytest.mark.parametrize("kind", ["schedule_delete_all", "schedule_clear_level"])
def test_an_empty_list_of_activities_is_read(kind: str) -> None:
    fields = {"payload": {"level": 1}} if kind == "schedule_clear_level" else {}
    read = message(document_type=kind, activity_ids=[], **fields)
    assert isinstance(read, BulkMessage)
    assert read.activity_ids == ()


def test_an_extraction_needs_no_ids_of_its_own() -> None:
    read = message(document_type="schedule_extraction", blob_name="a.xer")
    assert (read.extraction_id, read.primavera_project_id) == (None, None)


@pytest.mark.parametrize("column", COLUMNS)
def test_every_text_of_an_activity_can_be_filled(column: str) -> None:
    read = message(document_type="schedule_fill_column", payload={"column": column, "value": "x"})
    assert isinstance(read, ScheduleFillColumnMessage)
    assert read.payload.column == column


@pytest.mark.parametrize(
    ("project", "task", "id"),
    [
        ("P1", "mto_2.a:b@c+d-e", "import/P1/mto_2.a:b@c+d-e"),
        ("Unit 100", "a/b", "import/Unit%20100/a%2Fb"),
        ("100%", "M\u00fcller #3", "import/100%25/M%C3%BCller%20%233"),
        ("P1", "a%2Fb", "import/P1/a%252Fb"),
    ],
)
def test_ids_are_encoded_in_the_id_of_the_run(project: str, task: str, id: str) -> None:
    assert message(project_id=project, task_id=task, blob_name="a.csv").workflow_id == id
    found = recognise(PIPELINES, id)
    assert found is not None
    assert found.key == TaskKey(project, task)


def test_an_id_is_one_segment() -> None:
    assert "/" not in encoded("../x/y")
    assert len(workflow_id("P" * 128, "a/" * 64)) < 1_000
    with pytest.raises(RefusedMessage, match="task_id"):
        message(task_id="\u6f22" * 128, blob_name="a.csv")


@pytest.mark.parametrize(
    "config", [{"calendar": "5-day"}, {"encoding": "cp1252", "importBaselines": True}]
)
def test_a_setting_of_schedules_that_is_not_known_is_refused_by_name(config: Any) -> None:
    with pytest.raises(RefusedMessage, match=r"calendar|importBaselines"):
        message(document_type="schedule_project_extraction", blob_name="a", schedule_config=config)


def test_fields_that_are_not_used_are_named_behind_what_else_is_noted() -> None:
    read = message(blob_name="a.csv", colour="red", priority=None, service_id="S1")
    assert read.unknown_fields == ("colour", "service_id")
    outcome = naming_unused_fields(read, HandlerOutcome(note="One row was left out."))
    assert outcome.note == (
        "One row was left out. Fields of the message that are not used: colour, service_id."
    )


def test_fields_that_are_not_used_make_no_other_message() -> None:
    plain = message(blob_name="a.csv")
    assert digest_of(message(blob_name="a.csv", colour="red")) == digest_of(plain)


def test_a_field_of_the_payload_that_is_not_used_is_named() -> None:
    payload = {"level": 1, "value": "x", "colour": "red", "sizes": {"a": 0, "b": None}}
    read = message(document_type="schedule_fill_level", payload=payload)
    assert read.unknown_fields == ("payload.colour", "payload.sizes.a")
    assert read_message(body_of(read)) == read


def test_a_message_names_a_bounded_number_of_unused_fields() -> None:
    read = message(blob_name="a.csv", **{f"{number:03}" * 40: 1 for number in range(50)})
    assert [len(name) for name in read.unknown_fields] == [64] * 20
