"""What activities ask of external services, as protocols; `workers` wires the adapters.

Errors of the ports:

    PortError
      BlobNotFound          there is no blob of that name
      UnreadableDocument    the file is not what its name claims, damaged, encrypted or hostile
      Denied                the service refuses permanently: rights, limits, names
        NotInstalled        a program that is needed is not on this machine
      NotYet                the service is still busy with an earlier request
      Unavailable           the service may recover in a moment; or one that docflow itself needs
                            does not answer, and is waited for
        Throttled           the service asked us to slow down
        ProcessLost         a process that did the work was killed

Adapters translate what their library raises into these, and nothing else is caught on them.
"""

from adapters.ports.batches import (
    BatchFacts,
    BatchFunctions,
    BatchGrants,
    BatchQueues,
    BatchStore,
    BatchTopic,
    BatchView,
    OpenRuns,
    SourceFunction,
)
from adapters.ports.blobs import Blobs
from adapters.ports.document_loads import (
    Attached,
    DocumentTexts,
    Extracted,
    ExtractedFile,
    LoadFacts,
    LoadStore,
)
from adapters.ports.documents import (
    Documents,
    ReportWriter,
    ScheduleSource,
    TableBook,
    TableSource,
)
from adapters.ports.errors import (
    BlobNotFound,
    Denied,
    NotInstalled,
    NotYet,
    PortError,
    ProcessLost,
    Throttled,
    Unavailable,
    UnreadableDocument,
)
from adapters.ports.imports import EarlierImport, HeldBy, ImportStore, ScheduleClaim
from adapters.ports.notices import Notifications
from adapters.ports.outages import Outages
from adapters.ports.rejected import (
    REJECTED_BODY_BYTES,
    OpenRejections,
    RejectedMessage,
    RejectedMessages,
    RejectionRecord,
)
from adapters.ports.runs import OpenRow, OpenRows, RunEnd, Runs
from adapters.ports.spreadsheets import SpreadsheetStore

__all__ = [
    "REJECTED_BODY_BYTES",
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
    "Denied",
    "DocumentTexts",
    "Documents",
    "EarlierImport",
    "Extracted",
    "ExtractedFile",
    "HeldBy",
    "ImportStore",
    "LoadFacts",
    "LoadStore",
    "NotInstalled",
    "NotYet",
    "Notifications",
    "OpenRejections",
    "OpenRow",
    "OpenRows",
    "OpenRuns",
    "Outages",
    "PortError",
    "ProcessLost",
    "RejectedMessage",
    "RejectedMessages",
    "RejectionRecord",
    "ReportWriter",
    "RunEnd",
    "Runs",
    "ScheduleClaim",
    "ScheduleSource",
    "SourceFunction",
    "SpreadsheetStore",
    "TableBook",
    "TableSource",
    "Throttled",
    "Unavailable",
    "UnreadableDocument",
]
