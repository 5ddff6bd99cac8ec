"""One session and one client per service, shared by everything in a process."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

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
