"""What activities ask of external services, as protocols; `workers` wires the adapters.

Errors of the ports:

    PortError
      BlobNotFound          there is no blob of that name
      UnreadableDocument    the file is not what its name claims, damaged, encrypted or hostile
        ReaderFailed        its reader met an exception that no rule explains
      Denied                the service refuses permanently: rights, limits, names
        NotInstalled        a program that is needed is not on this machine
        NoRoom              a limit of the account is reached
      NotYet                the service is still busy with an earlier request
      Unavailable           the service may recover in a moment; or one that docflow itself needs
                            does not answer, and is waited for
        Throttled           the service asked us to slow down
        ProcessLost         a process that did the work was killed

Adapters translate what their library raises into these, and nothing else is caught on them.
"""

from adapters.ports.batch_topic import BatchTopic
from adapters.ports.batch_views import (
    BatchFacts,
    BatchView,
    DocumentView,
    FailedMessage,
    QueuedDeadLetter,
)
from adapters.ports.batches import (
    BatchFunctions,
    BatchGrants,
    BatchQueues,
    BatchStore,
    OpenRuns,
    SourceFunction,
)
from adapters.ports.blobs import Blobs
from adapters.ports.columns import ColumnBlock, ColumnBlocks, ColumnSource
from adapters.ports.document_loads import (
    Attached,
    DocumentTexts,
    Extracted,
    ExtractedFile,
    LoadFacts,
    LoadStore,
    Superseded,
    WholeDocument,
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
    NoRoom,
    NotInstalled,
    NotYet,
    PortError,
    ProcessLost,
    ReaderFailed,
    Throttled,
    Unavailable,
    UnreadableDocument,
)
from adapters.ports.imports import (
    EarlierImport,
    HeldBy,
    ImportStore,
    ScheduleClaim,
    WholeImport,
)
from adapters.ports.notices import Notifications
from adapters.ports.outages import Outages
from adapters.ports.rejected import (
    REJECTED_BODY_BYTES,
    OpenRejections,
    RejectedMessage,
    RejectedMessages,
    RejectionRecord,
)
from adapters.ports.retention import KeptRows, OldRow, OldRows
from adapters.ports.runs import OpenRow, OpenRows, RunEnd, Runs
from adapters.ports.spreadsheet_reviews import SpreadsheetReviews
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
    "ColumnBlock",
    "ColumnBlocks",
    "ColumnSource",
    "Denied",
    "DocumentTexts",
    "DocumentView",
    "Documents",
    "EarlierImport",
    "Extracted",
    "ExtractedFile",
    "FailedMessage",
    "HeldBy",
    "ImportStore",
    "KeptRows",
    "LoadFacts",
    "LoadStore",
    "NoRoom",
    "NotInstalled",
    "NotYet",
    "Notifications",
    "OldRow",
    "OldRows",
    "OpenRejections",
    "OpenRow",
    "OpenRows",
    "OpenRuns",
    "Outages",
    "PortError",
    "ProcessLost",
    "QueuedDeadLetter",
    "ReaderFailed",
    "RejectedMessage",
    "RejectedMessages",
    "RejectionRecord",
    "ReportWriter",
    "RunEnd",
    "Runs",
    "ScheduleClaim",
    "ScheduleSource",
    "SourceFunction",
    "SpreadsheetReviews",
    "SpreadsheetStore",
    "Superseded",
    "TableBook",
    "TableSource",
    "Throttled",
    "Unavailable",
    "UnreadableDocument",
    "WholeDocument",
    "WholeImport",
]
