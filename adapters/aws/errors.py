"""Errors of AWS as errors of the ports.

By its codes, and never by its words, which change.
"""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
)

from adapters.ports import Denied, NotYet, PortError, Throttled, Unavailable
from contracts.dependencies import Dependency

DELETED_RECENTLY: Final = 61.0
"""Seconds: SQS gives the name of a deleted queue, and its right to be purged, free after 60."""

THROTTLING: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "KMSThrottling",
        "KMSThrottlingException",
        "KmsThrottled",
        "OverLimit",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttled",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
WAITS: Final = {
    "AWS.SimpleQueueService.QueueDeletedRecently": DELETED_RECENTLY,
    "QueueDeletedRecently": DELETED_RECENTLY,
    "AWS.SimpleQueueService.PurgeQueueInProgress": DELETED_RECENTLY,
    "PurgeQueueInProgress": DELETED_RECENTLY,
    "ResourceInUseException": 5.0,
    "ResourceNotReadyException": 5.0,
    "ConcurrentAccess": 5.0,
    "ConcurrentModification": 5.0,
    "OptimisticLockException": 5.0,
}
"""Code to the seconds after which asking again is right."""
MISSING: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
        "NotFound",
        "NotFoundException",
        "NoSuchEntity",
        "ResourceNotFoundException",
    }
)
"""There is no such queue, topic, subscription, policy, function or mapping."""
SERVER_ERRORS: Final = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
"""AWS's own, whatever the status that comes with it."""
SETTLED: Final = (
    "AWS.SimpleQueueService.MessageNotInflight",
    "MessageNotInflight",
    "ReceiptHandleIsInvalid",
)
"""A received message belongs to another receiver by now, or is gone."""
CREDENTIALS: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
"""It does not know who asks, whatever is asked: no step can work before that is put right."""
_NO_CREDENTIALS: Final = (CredentialRetrievalError, NoCredentialsError, PartialCredentialsError)
_OURS: Final = (ParamValidationError, NoRegionError, InvalidRegionError)
"""What botocore refuses to send: it would refuse again."""


class Missing(Denied):
    """What was asked about does not exist."""


def code_of(error: ClientError) -> str:
    """The code that AWS gave."""
    return error.response.get("Error", {}).get("Code", "")


def has_code(error: PortError, *codes: str) -> bool:
    """Whether an error of a port was made from one of these codes of AWS."""
    cause = error.__cause__
    return isinstance(cause, ClientError) and code_of(cause) in codes


def is_trouble(error: PortError) -> bool:
    """Whether AWS answered, and its answer was that something is wrong on its side."""
    cause = error.__cause__
    return isinstance(cause, ClientError) and (
        code_of(cause) in SERVER_ERRORS or _status_of(cause) >= 500
    )


@contextmanager
def aws(doing: str) -> Generator[None]:
    """Translate what botocore raises inside the block.

    Args:
        doing: What is being done, for the message.

    Raises:
        Missing: There is no such thing; a `Denied`.
        Throttled: AWS asks to slow down, after the client's own attempts.
        NotYet: AWS is busy with what was asked before.
        Unavailable: AWS cannot be reached, is in trouble, or does not know who asks.
        Denied: AWS refuses, or nothing was sent because it would refuse.
    """
    try:
        yield
    except ClientError as error:
        raise _translated(doing, error) from error
    except _OURS as error:
        raise Denied(f"{doing}: {error}") from error
    except (HTTPClientError, BotoCoreError) as error:
        wrong = isinstance(error, _NO_CREDENTIALS) or _is_unresolved(error)
        raise Unavailable(f"{doing}: {error}", Dependency.CLOUD, misconfigured=wrong) from error


@contextmanager
def settling(doing: str) -> Generator[None]:
    """As `aws`, for what is done with a received message: one that is settled is not an error."""
    try:
        with aws(doing):
            yield
    except Denied as error:
        if not has_code(error, *SETTLED):
            raise


def _is_unresolved(error: BaseException) -> bool:
    """Whether the address of the service has no such name."""
    causes = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    return any(isinstance(cause, socket.gaierror) for cause in causes)


def _translated(doing: str, error: ClientError) -> PortError:
    code = code_of(error)
    text = f"{doing}: {error.response.get('Error', {}).get('Message', '')} ({code})"
    if code in MISSING:
        return Missing(text)
    if code in THROTTLING:
        return Throttled(text, _retry_after(error), Dependency.CLOUD)
    if code in WAITS:
        return NotYet(text, WAITS[code])
    status = _status_of(error)
    if status == 429:
        return Throttled(text, _retry_after(error), Dependency.CLOUD)
    if code in SERVER_ERRORS or status >= 500:
        return Unavailable(text, Dependency.CLOUD)
    if code in CREDENTIALS:
        return Unavailable(text, Dependency.CLOUD, misconfigured=True)
    return Denied(text)


def _status_of(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def _retry_after(error: ClientError) -> float | None:
    """What the server asked for, in seconds."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    asked = headers.get("retry-after", "")
    return float(asked) if asked.isdecimal() else None
