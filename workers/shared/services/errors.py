"""Why an operation on a run is refused or cannot be done: one set of errors for every caller.

Pages and API answer with problem details, commands with one line and an exit code.

ServiceError
  NotFound            404  unknown, or another organisation's
  Forbidden           403  the token's roles do not allow it
  WrongState          409  the import has moved on, or is not there yet
  Gone                410  purged after its retention
  Conflict            412  the mappings were changed meanwhile
  TooLarge            413  more bytes than an upload may have
  UnsupportedFile     415  not a spreadsheet, or not a form upload
  Refused             422  cannot be carried out as it stands; the message says why
    InvalidRequest         an id, verb or corrected message that cannot be meant
    TemporalRefused        Temporal never takes the request, as one that is too big
  TooManyRequests     429  more uploads than one person may send in a minute
    QuotaExceeded          more than one organisation may bring
  ServiceUnavailable  503  something that docflow needs does not answer
    TemporalUnavailable    Temporal, or no worker
    QueueUnavailable       the queue of messages

Refusals that one pipeline alone knows stand in `workers/services/<word>/errors.py`.
"""

from typing import ClassVar


class ServiceError(Exception):
    """A refusal; its message is one sentence for the person who asked.

    Attributes:
        status: HTTP status code.
        kind: Problem type, a word for programs.
        title: What kind of refusal it is, for people.
        workflow_id: The run that it is about, where looking at it helps.
    """

    status: ClassVar[int] = 500
    kind: ClassVar[str] = "error"
    title: ClassVar[str] = "Something went wrong"

    def __init__(self, message: str, *, workflow_id: str | None = None) -> None:
        super().__init__(message)
        self.workflow_id = workflow_id


class NotFound(ServiceError):
    """Unknown, or of an organisation that is not the caller's."""

    status = 404
    kind = "not-found"
    title = "Not found"


class Forbidden(ServiceError):
    """The roles of the token do not allow it."""

    status = 403
    kind = "forbidden"
    title = "Not allowed"


class WrongState(ServiceError):
    """Not in this state of the import."""

    status = 409
    kind = "wrong-state"
    title = "Not in this state"


class Gone(ServiceError):
    """What was asked for has been removed after its retention."""

    status = 410
    kind = "gone"
    title = "Removed after its retention"


class Conflict(ServiceError):
    """Another person has changed it meanwhile.

    Attributes:
        version: Of mappings as they are now; None when it is not known.
    """

    status = 412
    kind = "version-conflict"
    title = "Changed by someone else"

    def __init__(self, message: str, version: int | None = None) -> None:
        super().__init__(message)
        self.version = version


class TooLarge(ServiceError):
    """More bytes than an upload may have."""

    status = 413
    kind = "too-large"
    title = "The file is too large"


class UnsupportedFile(ServiceError):
    """No spreadsheet, or no form upload."""

    status = 415
    kind = "unsupported-file"
    title = "Not a spreadsheet"


class Refused(ServiceError):
    """The request is well-formed and cannot be carried out as it stands."""

    status = 422
    kind = "refused"
    title = "Unprocessable request"


class InvalidRequest(Refused):
    """An id, a verb or a corrected message that cannot be meant; nothing was sent."""


class TemporalRefused(Refused):
    """Temporal does not take the request, and never will; its own error is the cause."""


class TooManyRequests(ServiceError):
    """More than one caller may ask for in a minute.

    Attributes:
        retry_after: Seconds.
    """

    status = 429
    kind = "too-many-requests"
    title = "Too many requests"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceeded(TooManyRequests):
    """More than one organisation may bring; nothing was started."""

    kind = "quota-exceeded"
    title = "A quota of the organisation is used up"


class ServiceUnavailable(ServiceError):
    """Something that docflow needs does not answer; trying again in a moment helps."""

    status = 503
    kind = "unavailable"
    title = "Not available at the moment"


class TemporalUnavailable(ServiceUnavailable):
    """Temporal does not answer, or no worker does."""


class QueueUnavailable(ServiceUnavailable):
    """The queue of messages does not answer."""


def no_role() -> Forbidden:
    """The refusal for a caller without any role."""
    return Forbidden("your token has none of the roles viewer, mapper, operator and admin")
