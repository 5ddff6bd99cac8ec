"""Failures as they are named in histories, and refusals of rules.

Names of failures as they stand in a workflow's history (`ApplicationError.type`).

Unavailable          something that docflow itself needs does not answer: the run waits for it
Transient            the service may recover in a moment
Throttling           the service asked us to slow down, and often for how long
NotYet               the service is still busy with an earlier request, and gives the delay
Permanent            trying again cannot help
  UnreadableDocument   the file is not what its name claims, damaged, encrypted or hostile
  InvalidDocument      the file can be read but lacks what its type requires
  MissingBlob          the file is not in the blob store
  InvalidDecision      an answer names what cannot be chosen
  WorkersLost          the step has lost its workers again and again
  TableChanged         a table is not as the version of a type knows it
  UndoRefused          an import cannot be taken back; nothing was begun

Ends of runs:

ImportFailed, SpreadsheetFailed, BatchFailed, DocumentFailed, JobFailed, TransferFailed

Refusals of updates; they change nothing:

StillOpen            required fields or values are not decided yet
VersionConflict      another person has answered meanwhile
WrongState           the run does not wait for this answer
KeyReused            the work was requested before by a message with other content
OtherWork            the message is not the one that the run was started for
OtherCase            the event belongs to another case
NotParked            the run is not parked: there is nothing to decide
TooLate              the run is done
InvalidCorrection    the corrected message cannot be used
Busy                 too many events of a case wait to be recorded

Failures of a document itself, and refusals of rules.
"""

from typing import Final

UNAVAILABLE: Final = "Unavailable"
"""Its details are those of `WaitInput`: dependency, bytes of room, and the name of one of many."""
TRANSIENT: Final = "Transient"
THROTTLING: Final = "Throttling"
NOT_YET: Final = "NotYet"
PERMANENT: Final = "Permanent"
UNREADABLE_DOCUMENT: Final = "UnreadableDocument"
INVALID_DOCUMENT: Final = "InvalidDocument"
MISSING_BLOB: Final = "MissingBlob"
INVALID_DECISION: Final = "InvalidDecision"
WORKERS_LOST: Final = "WorkersLost"
TABLE_CHANGED: Final = "TableChanged"
UNDO_REFUSED: Final = "UndoRefused"
IMPORT_FAILED: Final = "ImportFailed"
SPREADSHEET_FAILED: Final = "SpreadsheetFailed"
BATCH_FAILED: Final = "BatchFailed"
DOCUMENT_FAILED: Final = "DocumentFailed"
JOB_FAILED: Final = "JobFailed"
TRANSFER_FAILED: Final = "TransferFailed"
STILL_OPEN: Final = "StillOpen"
VERSION_CONFLICT: Final = "VersionConflict"
WRONG_STATE: Final = "WrongState"
KEY_REUSED: Final = "KeyReused"
OTHER_WORK: Final = "OtherWork"
OTHER_CASE: Final = "OtherCase"
NOT_PARKED: Final = "NotParked"
TOO_LATE: Final = "TooLate"
INVALID_CORRECTION: Final = "InvalidCorrection"
BUSY: Final = "Busy"


class InvalidDocument(Exception):
    """The file can be read but lacks what its type requires; the message says what."""


class RuleViolation(Exception):
    """A rule forbids the work as requested; the message says why."""


class WorkersLost(RuleViolation):
    """The work has lost its workers so often that it is not begun again."""


class TableChanged(RuleViolation):
    """A table was dropped or renamed, or a column of it has another kind.

    The message says what anybody can do about it. What else an import can do depends on the way
    it came in: see `explain`.
    """


class UndoRefused(RuleViolation):
    """An import cannot be taken back; nothing was begun."""
