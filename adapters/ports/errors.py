"""What a port may raise."""


class PortError(Exception):
    """Any failure that a port promises."""


class BlobNotFound(PortError):
    """There is no blob of that name."""


class UnreadableDocument(PortError):
    """The file is not what it says, damaged, encrypted or hostile; the message says which."""


class Unavailable(PortError):
    """The world may be well again in a moment."""


class Denied(PortError):
    """The world refuses and will refuse again: rights, limits, names; the message says which."""


class NotYet(PortError):
    """The world is still busy with what was asked before; asking again later is right.

    Attributes:
        retry_after: Seconds after which to ask again.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Throttled(Unavailable):
    """The world asked us to slow down.

    Attributes:
        retry_after: Seconds that the server asked for, or None.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
