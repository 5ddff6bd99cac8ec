"""What a port may raise.

PortError
  BlobNotFound         no blob of that name
  UnreadableDocument   the file is damaged, encrypted, hostile or of another format
    ReaderFailed         its reader met an exception that no rule explains
  Unavailable          the service cannot be reached or is overloaded; worth another attempt, and
                       one of docflow's own dependencies is waited for
    Throttled            the service asked for fewer requests
  Denied               the service refuses permanently
    NotInstalled         a program that is needed is not on this machine
    NoRoom               a limit of the account is reached; there is room when others have ended
  NotYet               an earlier request is still in progress
"""

from workflows.shared.dependencies import Dependency


class PortError(Exception):
    """Any failure that a port promises."""


class BlobNotFound(PortError):
    """There is no blob of that name."""


class UnreadableDocument(PortError):
    """The file is of another kind, damaged, encrypted or hostile; the message says which."""


class ReaderFailed(UnreadableDocument):
    """The reader of the file met an exception that no rule explains: the file may be sound."""


class Unavailable(PortError):
    """The service cannot be reached, or is overloaded; another attempt may succeed.

    Attributes:
        dependency: What docflow itself needs and does not answer: the run waits for it. None:
            another attempt in a moment is all that helps.
        name: Which one, where there are many.
        room: Bytes that the step needs on the scratch disk, or at the partner; 0: not known.
        misconfigured: It has no such address or refuses who asks: a setting is wrong.
    """

    def __init__(
        self,
        message: str = "",
        dependency: Dependency | None = None,
        *,
        name: str | None = None,
        room: int = 0,
        misconfigured: bool = False,
    ) -> None:
        super().__init__(message)
        self.dependency = dependency
        self.name = name
        self.room = room
        self.misconfigured = misconfigured


class ProcessLost(Unavailable):
    """The process that did the work was killed, which is not the work's doing."""


class Denied(PortError):
    """The service refuses permanently: rights, limits or names; the message says which."""


class NotInstalled(Denied):
    """A program that is needed is not on this machine."""


class NoRoom(Denied):
    """A limit of the account is reached: there is room when others have ended."""


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

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        dependency: Dependency | None = None,
    ) -> None:
        super().__init__(message, dependency)
        self.retry_after = retry_after
