"""The sample documents of the demo, and how each has to end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from stack.demo import batches as demo_batch
from stack.demo.batches import ExpectedBatch
from stack.demo.jobs import FILE, JOB_TYPE, Scene
from stack.demo.spreadsheets import Answers
from stack.demo.transfers.file_transfer import TransferSample
from workflows.imports.messages import IMPORT_MESSAGE, ImportMessage, workflow_id
from workflows.imports.runs import Counts, ImportState
from workflows.jobs.runs import job_workflow_id
from workflows.shared.contracts import Contract
from workflows.spreadsheets.runs import workflow_id as spreadsheet_id
from workflows.transfers.runs import file_job_id

PROJECT = "demo"


class Expected(Contract):
    """How a sample has to end."""

    state: str = ImportState.COMPLETED
    counts: Counts = Counts()
    parked: bool = False
    """The run parks first, and the demo answers `skip`."""
    rejected_message: bool = False
    """The message itself is refused and never becomes a run."""


class Sample(Contract):
    """One document of the demo."""

    file: str | None = None
    """Name below the samples folder; None for types that need no file."""
    message: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The message, without task, project and blob name."""
    spreadsheet: Answers | None = None
    """It goes to the gateway instead of the queue, and is answered with this."""
    batch: ExpectedBatch | None = None
    """It is a batch of documents that are made up on the spot."""
    scene: Scene | None = None
    """It is a raster that is made on the spot and processed by a job."""
    transfer: TransferSample | None = None
    """A supplier sends it, and it is carried to where it belongs."""
    expect: Expected


@dataclass
class Run:
    """A sample on its way."""

    sample: Sample
    task_id: str
    body: dict[str, Any]
    message: ImportMessage | None
    state: str = "queued"
    counts: Counts = field(default_factory=Counts)
    seconds: float | None = None
    wrong: str | None = None
    began: float = 0.0
    uuid: str | None = None
    """Of a spreadsheet, once it is uploaded."""
    job_id: str | None = None
    """Of a scene's job, once it is submitted."""
    transfer_id: str | None = None
    """Of a file that is carried, once its event is accepted."""
    notes: Sequence[str] = ()
    """What a person wants to know beside it."""

    @property
    def document(self) -> str:
        """What it is called in the table."""
        if self.sample.batch is not None:
            return "40 files"
        if self.sample.transfer is not None:
            return self.sample.transfer.name(self.sample.file or "")
        return FILE if self.sample.scene is not None else self.sample.file or "-"

    @property
    def workflow_id(self) -> str:
        """Also the id of its message."""
        if self.sample.batch is not None:
            return demo_batch.KEY.workflow_id
        if self.job_id is not None:
            return job_workflow_id(self.job_id)
        if self.transfer_id is not None:
            return file_job_id(self.transfer_id)
        if self.uuid is not None:
            return spreadsheet_id(self.uuid)
        return workflow_id(PROJECT, self.task_id)


def divided(
    phases: Sequence[Sequence[Sample]], lacking: Sequence[str]
) -> tuple[Sequence[Sequence[Sample]], str | None]:
    """The samples that this machine can process, and which others are left out and why.

    Args:
        phases: All samples.
        lacking: What is missing for files that are carried, a sentence each.
    """
    left_out = [str(each.file) for phase in phases for each in phase if each.transfer and lacking]
    if not left_out:
        return phases, None
    kept = [[each for each in phase if each.transfer is None] for phase in phases]
    return kept, f"not carried: {', '.join(left_out)}; {'; '.join(lacking)}"


def prepare(sample: Sample, number: int) -> Run:
    """A sample under its number, with the message that it comes by."""
    if sample.batch is not None:
        return Run(sample, f"{number:02}-batch", {"document_type": "batch"}, None)
    if sample.scene is not None:
        return Run(sample, f"{number:02}-scene", {"document_type": JOB_TYPE}, None)
    if sample.transfer is not None:
        return Run(sample, f"{number:02}-transfer", {"document_type": "transfer"}, None)
    if sample.spreadsheet is not None:
        kind = sample.spreadsheet.import_type
        task_id = f"{number:02}-{kind.lower().replace('_', '-')}"
        return Run(sample, task_id, {"document_type": kind}, None)
    kind = str(sample.message.get("document_type", "unknown")).replace("_", "-")
    task_id = f"{number:02}-{kind}"
    body = {**sample.message, "task_id": task_id, "project_id": PROJECT}
    if sample.file:
        blob = blob_name(task_id, sample.file)
        body |= {"temp_blob_name" if "target_blob_name" in body else "blob_name": blob}
        body["filename"] = sample.file
    message = None if sample.expect.rejected_message else IMPORT_MESSAGE.validate_python(body)
    return Run(sample, task_id, body, message)


def blob_name(task_id: str, file: str) -> str:
    """Where the document of a task is uploaded."""
    return f"uploads/{PROJECT}/{task_id}/{file}"
