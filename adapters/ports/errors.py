"""What a port may raise.

PortError
  BlobNotFound         no blob of that name
  UnreadableDocument   the file is damaged, encrypted, hostile or of another format
  Unavailable          the service cannot be reached or is overloaded; worth another attempt
    Throttled            the service asked for fewer requests
  Denied               the service refuses permanently
  NotYet               an earlier request is still in progress
"""


class PortError(Exception):
    """Any failure that a port promises."""


class BlobNotFound(PortError):
    """There is no blob of that name."""


class UnreadableDocument(PortError):
    """The file is of another kind, damaged, encrypted or hostile; the message says which."""


class Unavailable(PortError):
    """The service cannot be reached, or is overloaded; another attempt may succeed."""


class Denied(PortError):
    """The service refuses permanently: rights, limits or names; the message says which."""


class NotYet(PortError):
    """An earlier request is still in progress; ask again later.

    Attributes:
        retry_after: Seconds after which to ask again.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Throttled(Unavailable):
    """The service asked for fewer requests.

    Attributes:
        retry_after: Seconds that the server asked for, or None.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
