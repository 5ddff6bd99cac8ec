"""A message names blobs only where its queue's documents are."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches import document_load
from activities.imports import rows
from activities.imports.lifecycle import ImportLifecycle
from activities.jobs import folders
from activities.spreadsheets import rows as spreadsheet_reports
from adapters.staging import KEPT, stem_of
from tests.support.imports.activities import KEY, ActivityPorts, environment, message_of
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.memory.runs import MemoryRuns
from workers.imports.intake import ImportIntake
from workers.imports.settings import RunSettings
from workers.shared.errors import SettingsError
from workers.shared.services.bodies import INVALID_MESSAGE, DeadLetter
from workflows.batches.loads import DocumentProcessed
from workflows.imports.findings import foreign_blob
from workflows.imports.runs import ImportInput
from workflows.jobs.runs import StageRef
from workflows.shared.contracts import OWN_PLACES
from workflows.shared.errors import PERMANENT
from workflows.transfers.runs import receipt_blob

PREFIXES = ("uploads/", "sched/")
UPLOAD = {"temp_blob_name": "uploads/a", "target_blob_name": "sched/a"}


@pytest.mark.parametrize(
    ("document_type", "fields", "prefixes", "says"),
    [
        ("equipment", {"blob_name": "anywhere/a.csv"}, (), None),
        ("equipment", {"blob_name": "uploads/a.csv"}, PREFIXES, None),
        ("equipment", {"blob_name": "uploadsX/a.csv"}, PREFIXES, "below uploads/, sched/"),
        ("equipment", {"blob_name": "a.csv"}, PREFIXES, "blob_name: must be below"),
        ("equipment", {"blob_name": "spreadsheets/u/x"}, (), "spreadsheets/ is docflow's own"),
        ("equipment", {"blob_name": "reports/P1/T1.xlsx"}, PREFIXES, "reports/ is docflow's own"),
        ("schedule_upload", UPLOAD, PREFIXES, None),
        ("schedule_upload", {**UPLOAD, "target_blob_name": "reports/a"}, (), "target_blob_name"),
        ("schedule_upload", {**UPLOAD, "temp_blob_name": "x/a"}, PREFIXES, "temp_blob_name"),
        ("mto_delete", {"service_id": "S1"}, PREFIXES, None),
        ("equipment", {"blob_name": "uploads/P1/T1/0a1b/a.csv"}, ("sched/",), None),
        ("equipment", {"blob_name": "uploads/P1/T2/a.csv"}, ("sched/",), "below sched/"),
        ("schedule_upload", {**UPLOAD, "temp_blob_name": "jobs/0a/plan"}, (), "jobs/ is docflow's"),
        ("schedule_upload", {**UPLOAD, "target_blob_name": "receipts/0a/r.json"}, (), "receipts/"),
    ],
)
def test_blobs_lie_where_the_queue_says(
    document_type: str, fields: dict[str, Any], prefixes: tuple[str, ...], says: str | None
) -> None:
    found = foreign_blob(message_of(document_type, **fields), prefixes)
    assert (found is None) if says is None else (says in (found or ""))


def test_what_docflow_stores_among_the_documents_lies_in_its_own_places() -> None:
    processed = DocumentProcessed(case_id=1, batch_id=1, document_id="d", blob_name="in/d.pdf")
    names = [
        rows.report_name(KEY),
        spreadsheet_reports.report_name("u"),
        folders.folder_of("j", StageRef(stage=1, attempt=1)),
        document_load.folder_of(processed),
        receipt_blob("0a1b"),
        stem_of("transfer/1"),
        f"{KEPT}/",
    ]
    assert [name for name in names if not name.startswith(OWN_PLACES)] == []


async def test_the_intake_refuses_a_message_that_names_another_place() -> None:
    rejected = MemoryRejectedMessages()
    client: Any = None
    intake = ImportIntake(client, rejected, queue="q", prefixes=PREFIXES)
    body = message_of("equipment", blob_name="spreadsheets/u/x").model_dump_json().encode()
    verdict = await intake.accept(body, 0, "m")
    assert isinstance(verdict, DeadLetter)
    assert verdict.reason == INVALID_MESSAGE
    (kept,) = await rejected.list(1)
    assert "docflow's own place" in kept.description


async def test_a_corrected_message_is_held_to_it_as_well(tmp_path: Path) -> None:
    ports = ActivityPorts(tmp_path)
    await ports.put("other/a.csv", b"x")
    lifecycle = ImportLifecycle(
        ports.store, ports.blobs, MemoryRuns(), ports.rejected, prefixes=PREFIXES
    )
    order = ImportInput(message=message_of("equipment", blob_name="other/a.csv"))
    with pytest.raises(ApplicationError, match="must be below uploads/") as caught:
        await environment().run(lifecycle.prepare, order)
    assert caught.value.type == PERMANENT
    assert "T1" in ports.store.tasks


def test_prefixes_are_folders() -> None:
    read = RunSettings.read({"DOCFLOW_IMPORT_PREFIXES": "uploads, /sched/plans/"})
    assert read.blob_prefixes == ("uploads/", "sched/plans/")
    assert RunSettings.read({}).blob_prefixes == ()
    with pytest.raises(SettingsError, match="permits nothing"):
        RunSettings.read({"DOCFLOW_IMPORT_PREFIXES": "uploads/, /"})
    for own in OWN_PLACES:
        with pytest.raises(SettingsError, match="docflow's own place"):
            RunSettings.read({"DOCFLOW_IMPORT_PREFIXES": own})
