"""What AWS says when it does not do what it was asked, as errors of the ports."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from adapters.ports import Denied, NotYet, Throttled, Unavailable

THROTTLING: Final = frozenset(
    {
        "OverLimit",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "Throttled",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
WAITS: Final = {
    "AWS.SimpleQueueService.QueueDeletedRecently": 61.0,
    "QueueDeletedRecently": 61.0,
    "AWS.SimpleQueueService.PurgeQueueInProgress": 61.0,
    "PurgeQueueInProgress": 61.0,
    "ResourceInUseException": 5.0,
    "ResourceNotReadyException": 5.0,
    "ConcurrentModification": 5.0,
    "ConcurrentAccess": 5.0,
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


class Missing(Denied):
    """What was asked about does not exist."""


def code_of(error: ClientError) -> str:
    """The code that AWS gave, never its words."""
    return error.response.get("Error", {}).get("Code", "")


def _status_of(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


@contextmanager
def aws(doing: str) -> Generator[None]:
    """Translate what botocore raises inside the block.

    Args:
        doing: What is being done, for the message.

    Raises:
        Missing: There is no such thing; a `Denied`.
        Throttled: AWS asks to slow down, after the client's own attempts.
        NotYet: AWS is busy with what was asked before.
        Unavailable: AWS cannot be reached, or is in trouble.
        Denied: AWS refuses.
    """
    try:
        yield
    except ClientError as error:
        code = code_of(error)
        said = f"{doing}: {error.response.get('Error', {}).get('Message', '')} ({code})"
        if code in MISSING:
            raise Missing(said) from error
        if code in THROTTLING:
            raise Throttled(said) from error
        if code in WAITS:
            raise NotYet(said, WAITS[code]) from error
        if _status_of(error) >= 500:
            raise Unavailable(said) from error
        raise Denied(said) from error
    except (HTTPClientError, BotoCoreError) as error:
        raise Unavailable(f"{doing}: {error}") from error
