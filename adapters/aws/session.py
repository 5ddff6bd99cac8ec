"""One session and one client per service, the errors of AWS, and its secrets.

Errors of AWS as errors of the ports.

By its codes, and never by its words, which change.
"""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

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

from adapters.ports.errors import Denied, NotYet, PortError, Throttled, Unavailable
from workflows.shared.dependencies import Dependency

if TYPE_CHECKING:
    from aiobotocore.config import AioConfig
    from types_aiobotocore_iam import IAMClient
    from types_aiobotocore_lambda import LambdaClient
    from types_aiobotocore_sns import SNSClient
    from types_aiobotocore_sqs import SQSClient


ATTEMPTS: Final = 5
"""Of one call, for throttling and for failures that pass; what fails then is tried again later."""
POOL: Final = 50
"""Connections per client: long polls hold theirs for 20 s, and would starve other calls."""
CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 30
"""More than the longest poll."""


@dataclass(frozen=True)
class AwsSettings:
    """Where AWS is, and who asks; what is None comes from the SDK's own chain of settings."""

    region: str
    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    attempts: int = ATTEMPTS
    read_seconds: float = READ_SECONDS


@dataclass(frozen=True)
class AwsClients:
    """Clients of the services that batches use."""

    sqs: "SQSClient"
    sns: "SNSClient"
    lambda_: "LambdaClient"
    iam: "IAMClient"


def _config(settings: AwsSettings) -> "AioConfig":
    from aiobotocore.config import AioConfig

    # botocore changes the retries that it is given: each client gets its own.
    return AioConfig(
        retries={"mode": "standard", "total_max_attempts": settings.attempts},
        max_pool_connections=POOL,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=settings.read_seconds,
    )


def _give_up_silence(caught_exception: Exception | None, **_: object) -> None:
    """Let a call fail that was not answered at all: what makes it retries or waits visibly.

    The client itself would ask an endpoint that hangs five times, and nothing would show it.
    """
    from botocore.exceptions import ReadTimeoutError

    if isinstance(caught_exception, ReadTimeoutError):
        raise caught_exception


@asynccontextmanager
async def open_aws(settings: AwsSettings) -> AsyncGenerator[AwsClients]:
    """Open the clients.

    The first client of a process reads the service models and holds the event loop for 50 to
    190 ms: open them before the first request is served.
    """
    # A quarter of a second that processes which open nothing here do not pay.
    import aioboto3

    session = aioboto3.Session(
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        aws_session_token=settings.session_token,
        region_name=settings.region,
    )
    url = settings.endpoint_url
    async with AsyncExitStack() as stack:
        clients = AwsClients(
            sqs=await stack.enter_async_context(
                session.client("sqs", endpoint_url=url, config=_config(settings))
            ),
            sns=await stack.enter_async_context(
                session.client("sns", endpoint_url=url, config=_config(settings))
            ),
            lambda_=await stack.enter_async_context(
                session.client("lambda", endpoint_url=url, config=_config(settings))
            ),
            iam=await stack.enter_async_context(
                session.client("iam", endpoint_url=url, config=_config(settings))
            ),
        )
        for client in (clients.sqs, clients.sns, clients.lambda_, clients.iam):
            client.meta.events.register("needs-retry", _give_up_silence)
        yield clients


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


SHORTEST: Final = 0.5
LONGEST: Final = 10.0


def backoff_proportional_to_elapsed(since: datetime | None) -> float:
    """Seconds until something is looked at again: as long as it has taken so far.

    Most of it is there within a second or two, a function in a private network within minutes.

    Args:
        since: When it was asked for; None: just now.
    """
    waited = 0.0 if since is None else (datetime.now(UTC) - since).total_seconds()
    return min(max(waited, SHORTEST), LONGEST)


def queue_arn(topic_arn: str, queue: str) -> str:
    """ARN of a batch's queue: its queues and functions are where its topic is."""
    partition, region, account = (topic_arn.split(":")[place] for place in (1, 3, 4))
    return f"arn:{partition}:sqs:{region}:{account}:{queue}"


async def secret_text(settings: AwsSettings, name: str) -> str:
    """The text of a secret.

    Args:
        settings: Where AWS is, and who asks.
        name: Its ARN or name.

    Raises:
        Denied: There is none of that name, it holds no text, or AWS refuses.
        Unavailable: AWS does not answer.
    """
    # As in `open_aws`: processes that ask for no secret do not pay for it.
    import aioboto3

    session = cast(Any, aioboto3.Session)(
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        aws_session_token=settings.session_token,
        region_name=settings.region,
    )
    async with session.client("secretsmanager", endpoint_url=settings.endpoint_url) as client:
        with aws(f"read the secret {name}"):
            answer = await client.get_secret_value(SecretId=name)
    text = str(answer.get("SecretString") or "").strip()
    if not text:
        raise Denied(f"the secret {name} holds no text")
    return text
