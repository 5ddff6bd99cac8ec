"""What object stores answer, as errors of the ports.

`obstore` has classes for few of the answers, and texts for all of them: the status, and the code of
the store where its answer has one.

Sources: the lists of error codes of Amazon S3 and of Azure Blob Storage.
"""

import re
from typing import Final

from obstore.exceptions import (
    AlreadyExistsError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from adapters.places.credentials import Credentials
from adapters.places.write_order import taken
from adapters.ports import Denied, PortError, Throttled
from adapters.ports.places import (
    FileChanged,
    FileMissing,
    LoginRefused,
    NameRefused,
    PartnerAway,
    PlaceError,
)
from contracts.transfers import Partner
from domain.transfers.paths import printable

_STATUS: Final = re.compile(
    r"status code: (\d{3})|status: (\d{3})|\(code: (\d{3})\)|\b(\d{3}) [A-Z][a-z]+ ?[A-Z]?"
)
_CODE: Final = re.compile(r"<Code>(\w+)</Code>|\(code: ([A-Za-z]\w+)\)")
_QUERY: Final = re.compile(r"\?\S*")
"""Of a URL: it may hold a signature."""
_ODD_KEY: Final = re.compile(r'invalid path: (?:Error parsing )?Path "(.*?)"')
"""Of an object in a list: the library has no name for it, and returns no list."""
_NO_CONTAINER: Final = ("ContainerNotFound", "NoSuchBucket", "container does not exist")
_LEASED: Final = ("LeaseIdMissing", "currently a lease")
_REFUSED: Final = frozenset({"AccessDenied", "AuthorizationPermissionMismatch"})
"""Of one object, or of all: rights are given by either."""
_NOT_LET_IN: Final = frozenset(
    {
        "AccountIsDisabled",
        "AllAccessDisabled",
        "AuthenticationFailed",
        "AuthorizationFailure",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)
"""Of the credentials or the account, whatever object is asked for."""
_BUSY: Final = frozenset({"ServerBusy", "SlowDown", "TooManyRequests"})
_NAMES: Final = frozenset(
    {"InvalidResourceName", "InvalidURI", "InvalidUri", "KeyTooLongError", "OutOfRangeInput"}
)


def answered(
    partner: Partner, credentials: Credentials, path: str, status: int, text: str
) -> PortError:
    """What an answer means that is not success, without secrets.

    Args:
        partner: Whose store it is.
        credentials: Kept out of the text.
        path: Of the object.
        status: Of HTTP.
        text: The store's name for the failure, and the beginning of the body.
    """
    name, shown, code = partner.name, printable(path), _first(_CODE, text)
    if found := _of_container_or_lease(partner, path, text):
        return found
    if status == 404:
        return FileMissing(f"there is no file {shown} at {name}")
    if status == 412:
        return FileChanged(f"{shown} is another one now")
    answer = credentials.hide(f"it answered {status} {code}".rstrip())
    return _by_status(name, shown, status, code, answer)


def failure(partner: Partner, credentials: Credentials, path: str, error: Exception) -> PortError:
    """What went wrong with an object, without secrets.

    Args:
        partner: Whose store it is.
        credentials: Kept out of the text.
        path: Of the object, or folder of a list.
        error: Of the library.
    """
    text, name, shown = str(error), partner.name, printable(path)
    code = _first(_CODE, text)
    if found := _of_container_or_lease(partner, path, text):
        return found
    if odd := _first(_ODD_KEY, text):
        return PlaceError(
            f"{name}, {shown}: nothing can be listed beside the key {printable(odd)}, which has an "
            "empty segment, `.` or `..`; give that object another key"
        )
    match error:
        case FileNotFoundError():
            return FileMissing(f"there is no file {shown} at {name}")
        case AlreadyExistsError():
            return taken(path)
        case PreconditionError():
            return FileChanged(f"{shown} is another one now")
        case PermissionDeniedError() | UnauthenticatedError():
            return _refused(name, shown, code)
        case _:
            answer = _QUERY.sub("", credentials.hide(text.partition("\n")[0]))[:300]
            return _by_status(name, shown, int(_first(_STATUS, text) or 0), code, answer)


def _of_container_or_lease(partner: Partner, path: str, text: str) -> PortError | None:
    name = partner.name
    if any(mark in text for mark in _NO_CONTAINER):
        return PlaceError(f"{name} has no container or bucket {printable(partner.container or '')}")
    if any(mark in text for mark in _LEASED):
        return PlaceError(
            f"{printable(path)} at {name} has a lease of another client: it cannot be changed"
        )
    return None


def _by_status(name: str, shown: str, status: int, code: str, answer: str) -> PortError:
    if status in (429, 503) or code in _BUSY:
        return Throttled(f"{name} asks for fewer requests: {answer}")
    if status in (401, 403, 407) or code in _REFUSED or code in _NOT_LET_IN:
        return _refused(name, shown, code)
    if code in _NAMES:
        return NameRefused(f"{shown} cannot be a name at {name} ({code})")
    if 400 <= status < 500 or (code and status < 500):
        return PlaceError(f"{name}, {shown}: {answer}")
    return PartnerAway(name, f"{name} cannot be reached: {answer}")


def _refused(name: str, shown: str, code: str) -> PortError:
    if code in _NOT_LET_IN:
        return LoginRefused(
            name,
            f"{name} does not accept our credentials ({code}); once that is put right, runs "
            "continue within five minutes",
        )
    return Denied(f"{name} refuses access to {shown}{f' ({code})' if code else ''}")


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return next(filter(None, found.groups()), "") if found else ""
