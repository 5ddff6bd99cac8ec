"""Import from here what a package of yours adds to docflow; everything else is internal.

A package names what it adds by entry points. `docs/extending.md` has an example of each.

| group | names | a subclass of |
|---|---|---|
| `docflow.jobs` | a job type | `JobType` |
| `docflow.actions` | an action of transfers | `FileAction` |
| `docflow.partner_kinds` | a kind of partner of transfers | `PartnerFiles` |
| `docflow.types` | a package with files of declared types | - |
| `docflow.row_checks` | a check of the rows of declared types | - |
| `docflow.readers` | a reader of a format of tables | `TableReader` |
"""

from activities.jobs.api import (
    InputNeeded,
    JobResources,
    JobType,
    NotReady,
    StageContext,
    TaskContext,
    TaskDone,
    job_type,
    task,
)
from activities.transfers.api import ActionContext, FileAction
from adapters.files.tables.custom import TableReader
from adapters.places.base import Credentials
from adapters.places.custom import PartnerFiles
from adapters.ports.blobs import Blobs
from adapters.ports.errors import (
    BlobNotFound,
    Denied,
    Throttled,
    Unavailable,
    UnreadableDocument,
)
from adapters.ports.places import Entry, FileMissing, NameTaken, PartnerAway, PlaceError
from workflows.jobs.definitions import (
    InvalidDefinition,
    Lane,
    OnFailure,
    StageDefinition,
    WorkflowDefinition,
)
from workflows.jobs.records import InputIdentity, JsonObject, TaskStatus
from workflows.jobs.runs import FinishedTask, PlannedTask
from workflows.shared.contracts import BlobRef, Contract
from workflows.shared.errors import InvalidDocument, RuleViolation
from workflows.transfers.events import FileNotice
from workflows.transfers.partners import Partner
from workflows.transfers.runs import StagedFile

__all__ = [
    "ActionContext",
    "BlobNotFound",
    "BlobRef",
    "Blobs",
    "Contract",
    "Credentials",
    "Denied",
    "Entry",
    "FileAction",
    "FileMissing",
    "FileNotice",
    "FinishedTask",
    "InputIdentity",
    "InputNeeded",
    "InvalidDefinition",
    "InvalidDocument",
    "JobResources",
    "JobType",
    "JsonObject",
    "Lane",
    "NameTaken",
    "NotReady",
    "OnFailure",
    "Partner",
    "PartnerAway",
    "PartnerFiles",
    "PlaceError",
    "PlannedTask",
    "RuleViolation",
    "StageContext",
    "StageDefinition",
    "StagedFile",
    "TableReader",
    "TaskContext",
    "TaskDone",
    "TaskStatus",
    "Throttled",
    "Unavailable",
    "UnreadableDocument",
    "WorkflowDefinition",
    "job_type",
    "task",
]
