"""From options to messages: every document type, and what is said when something is missing."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from workers.imports.drafts import MESSAGE_CLASSES, build_message, new_task_id
from workers.imports.messages import read_message, upload_name
from workers.shared.cli.errors import UsageError
from workers.shared.services.bodies import RefusedMessage
from workflows.imports.messages import IMPORT_MESSAGE, DocumentType, Key
from workflows.shared.contracts import BlobName

FILE = Path("/data/Läger list.xlsx")
UPLOADED = "uploads/P1/T1/Lager_list.xlsx"
TABLE = {"blob_name": UPLOADED, "filename": "Läger list.xlsx"}
LEVEL = '{"level": 3}'

CASES: dict[DocumentType, tuple[Path | None, dict[str, Any], dict[str, Any]]] = {
    DocumentType.MTO: (FILE, {"service_id": "S1"}, {**TABLE, "service_id": "S1"}),
    DocumentType.ESTIMATION_MASTER: (
        FILE,
        {"service_id": "S1", "strategy": "replace", "all_or_nothing": True},
        {**TABLE, "service_id": "S1", "strategy": "replace", "all_or_nothing": True},
    ),
    DocumentType.EQUIPMENT: (
        FILE,
        {"strategy": "append", "idempotency_key": "K"},
        {**TABLE, "strategy": "append", "idempotency_key": "K"},
    ),
    DocumentType.MATERIAL: (FILE, {"encoding": "cp1252"}, {**TABLE, "encoding": "cp1252"}),
    DocumentType.CREW: (FILE, {"sheet": "Crews"}, {**TABLE, "sheet": "Crews"}),
    DocumentType.CREW_MEMBER: (FILE, {}, TABLE),
    DocumentType.CREW_TRADE: (FILE, {}, TABLE),
    DocumentType.SCHEDULE_EXTRACTION: (
        FILE,
        {"primavera_project_id": "PLANT"},
        {**TABLE, "primavera_project_id": "PLANT"},
    ),
    DocumentType.SCHEDULE_PROJECT_EXTRACTION: (FILE, {}, TABLE),
    DocumentType.SCHEDULE_UPLOAD: (
        FILE,
        {"target_blob_name": "schedules/plan.xer"},
        {
            "temp_blob_name": UPLOADED,
            "original_filename": "Läger list.xlsx",
            "target_blob_name": "schedules/plan.xer",
        },
    ),
    DocumentType.SCHEDULE_DELETE_ALL: (
        None,
        {"activity_ids": ["A100", "A200"]},
        {"activity_ids": ["A100", "A200"]},
    ),
    DocumentType.SCHEDULE_FILL_LEVEL: (
        None,
        {"payload": '{"level": 3, "value": "Piping"}', "filters": '{"area": ["A", null]}'},
        {"payload": {"level": 3, "value": "Piping"}, "filters": {"area": ["A", None]}},
    ),
    DocumentType.SCHEDULE_CLEAR_LEVEL: (None, {"payload": LEVEL}, {"payload": {"level": 3}}),
    DocumentType.SCHEDULE_FILL_COLUMN: (
        None,
        {"payload": '{"column": "notes", "value": null}'},
        {"payload": {"column": "notes", "value": None}},
    ),
    DocumentType.ESTIMATION_MASTER_DELETE: (None, {"service_id": "S1"}, {"service_id": "S1"}),
    DocumentType.MTO_DELETE: (None, {"service_id": "S1"}, {"service_id": "S1"}),
}


def test_every_document_type_has_a_contract_and_a_case() -> None:
    assert set(MESSAGE_CLASSES) == set(CASES) == set(DocumentType)


@pytest.mark.parametrize("document_type", DocumentType)
def test_what_is_given_is_what_is_sent(document_type: DocumentType) -> None:
    file, options, expected = CASES[document_type]
    message = build_message(document_type, "P1", "T1", file, options)
    body = message.model_dump_json(exclude_unset=True)
    assert json.loads(body) == {
        "document_type": document_type,
        "project_id": "P1",
        "task_id": "T1",
        **expected,
    }
    assert IMPORT_MESSAGE.validate_json(body).workflow_id == "import/P1/T1"


@pytest.mark.parametrize("document_type", DocumentType)
def test_a_file_is_asked_for_exactly_where_there_is_one(document_type: DocumentType) -> None:
    file, options, _ = CASES[document_type]
    with pytest.raises(UsageError, match="takes no FILE" if file is None else "needs a FILE"):
        build_message(document_type, "P1", "T1", FILE if file is None else None, options)


@pytest.mark.parametrize(
    ("document_type", "options", "says"),
    [
        ("mto", {}, "mto: needs --service"),
        ("estimation_master_delete", {}, "estimation_master_delete: needs --service"),
        ("schedule_upload", {}, "schedule_upload: needs --target-blob"),
        ("schedule_clear_level", {}, "schedule_clear_level: needs --payload"),
        ("schedule_fill_level", {"payload": LEVEL}, "needs --payload.value"),
        ("equipment", {"strategy": "append"}, "strategy 'append' needs an --idempotency-key"),
        ("equipment", {"service_id": "S1"}, "equipment does not take --service; it takes --all"),
        ("crew", {"date_order": "ymd"}, "crew: --date-order: "),
        ("crew", {"max_rejected_share": 2.0}, "crew: --max-rejected-share: "),
        ("schedule_delete_all", {"decimal": ","}, "does not take --decimal; it takes --activity"),
        ("mto_delete", {"service_id": "=S1"}, "mto_delete: --service: "),
        ("schedule_fill_level", {"payload": "{level: 3}"}, "--payload is not JSON: "),
        ("schedule_delete_all", {"filters": "[" * 100_000}, "--filters is not JSON: "),
        ("schedule_delete_all", {"filters": '{"colour": "red"}'}, "unknown filters ['colour']"),
        ("schedule_clear_level", {"payload": '{"level": 11}'}, "--payload.level: "),
        ("schedule_upload", {"target_blob_name": "../x"}, "--target-blob: must not hold empty"),
    ],
)
def test_invalid_settings_are_named_with_the_option_to_set(
    document_type: str, options: dict[str, Any], says: str
) -> None:
    kind = DocumentType(document_type)
    with pytest.raises(UsageError) as refused:
        build_message(kind, "P1", "T1", CASES[kind][0], options)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_text_that_names_no_type_is_refused_as_one() -> None:
    with pytest.raises(UsageError) as refused:
        build_message("../x", "P1", "T1", FILE, {})
    assert str(refused.value) == "there is no type '../x'"


@pytest.mark.parametrize(
    ("project", "task", "option"),
    [("=P1", "T1", "--project '=P1'"), ("P1", "/b", "--task '/b'"), ("P1", "", "--task ''")],
)
def test_names_that_cannot_be_part_of_a_workflow_id(project: str, task: str, option: str) -> None:
    with pytest.raises(UsageError, match=re.escape(option)):
        build_message(DocumentType.CREW, project, task, FILE, {})


@given(st.text(min_size=1, max_size=300))
def test_any_file_name_becomes_a_safe_blob_name(filename: str) -> None:
    name = upload_name("P1", "T1", filename)
    assert re.fullmatch(r"uploads/P1/T1/[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", name)
    assert TypeAdapter[str](BlobName).validate_python(name) == name


def test_a_long_file_name_keeps_its_extension() -> None:
    assert upload_name("P1", "T1", "x" * 240 + ".xlsx").endswith("x.xlsx")


@pytest.mark.parametrize("document_type", DocumentType)
def test_made_up_task_ids_are_keys_and_differ(document_type: DocumentType) -> None:
    moment = datetime(2026, 2, 3, 10, 15, tzinfo=UTC)
    first, second = (new_task_id(document_type, moment) for _ in range(2))
    assert first != second
    assert TypeAdapter[str](Key).validate_python(first) == first


def test_a_message_file_is_described_by_its_fields() -> None:
    with pytest.raises(RefusedMessage) as refused:
        read_message(b'{"document_type": "mto", "task_id": "T1", "blob_name": "x", "sheet": ""}')
    assert str(refused.value) == (
        "project_id: Field required; sheet: String should have at least 1 character; "
        "service_id: Field required"
    )


def test_an_unknown_document_type_is_named_in_one_line() -> None:
    with pytest.raises(RefusedMessage, match="'drawing'") as refused:
        read_message(b'{"document_type": "drawing"}')
    assert "\n" not in str(refused.value)


@given(st.binary(max_size=200))
def test_no_message_file_is_worse_than_a_refusal(body: bytes) -> None:
    with pytest.raises((RefusedMessage, ValidationError)) as refused:
        read_message(body)
    assert refused.type is RefusedMessage
