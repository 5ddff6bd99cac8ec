"""What activities ask of the world, as protocols; `workers` wires the adapters.

Errors of the ports:

    PortError
      BlobNotFound          there is no blob of that name
      UnreadableDocument    the file is not what it says, damaged, encrypted or hostile
      Denied                the world refuses and will refuse again: rights, limits, names
      NotYet                the world is still busy with what was asked before
      Unavailable           the world may be well again in a moment
        Throttled           the world asked us to slow down

Adapters translate what their library raises into these, and nothing else is caught on them.
"""

from adapters.ports.batches import (
    WORKFLOW_TAG,
    BatchFacts,
    BatchFunctions,
    BatchGrants,
    BatchQueues,
    BatchStore,
    BatchTopic,
    BatchView,
    FoundResource,
    OpenRuns,
    SourceFunction,
)
from adapters.ports.blobs import (
    Blobs,
)
from adapters.ports.documents import (
    Cell,
    Documents,
    RejectedRow,
    ReportWriter,
    ScheduleItem,
    ScheduleProject,
    ScheduleSource,
    TableSource,
)
from adapters.ports.errors import (
    BlobNotFound,
    Denied,
    NotYet,
    PortError,
    Throttled,
    Unavailable,
    UnreadableDocument,
)
from adapters.ports.imports import (
    ImportStore,
    LoadMark,
    RowChunk,
    TaskKey,
)
from adapters.ports.loads import (
    Attached,
    DocumentTexts,
    Extracted,
    ExtractedFile,
    LoadFacts,
    LoadStore,
)
from adapters.ports.rejected import (
    REJECTED_BODY_BYTES,
    RejectedMessage,
    RejectedMessages,
)
from adapters.ports.spreadsheets import (
    CustomList,
    Entity,
    EntityScope,
    FoundValue,
    Notifications,
    ParkedRow,
    Preview,
    SheetChunk,
    SheetMark,
    SpreadsheetStore,
    TargetRows,
)

__all__ = [
    "REJECTED_BODY_BYTES",
    "WORKFLOW_TAG",
    "Attached",
    "BatchFacts",
    "BatchFunctions",
    "BatchGrants",
    "BatchQueues",
    "BatchStore",
    "BatchTopic",
    "BatchView",
    "BlobNotFound",
    "Blobs",
    "Cell",
    "CustomList",
    "Denied",
    "DocumentTexts",
    "Documents",
    "Entity",
    "EntityScope",
    "Extracted",
    "ExtractedFile",
    "FoundResource",
    "FoundValue",
    "ImportStore",
    "LoadFacts",
    "LoadMark",
    "LoadStore",
    "NotYet",
    "Notifications",
    "OpenRuns",
    "ParkedRow",
    "PortError",
    "Preview",
    "RejectedMessage",
    "RejectedMessages",
    "RejectedRow",
    "ReportWriter",
    "RowChunk",
    "ScheduleItem",
    "ScheduleProject",
    "ScheduleSource",
    "SheetChunk",
    "SheetMark",
    "SourceFunction",
    "SpreadsheetStore",
    "TableSource",
    "TargetRows",
    "TaskKey",
    "Throttled",
    "Unavailable",
    "UnreadableDocument",
]
