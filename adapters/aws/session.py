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
READ_SECONDS: Final = 60
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


@dataclass(frozen=True)
class AwsClients:
    """Clients of the services that batches use."""

    sqs: "SQSClient"
    sns: "SNSClient"
    lambda_: "LambdaClient"
    iam: "IAMClient"


def _config(attempts: int) -> "AioConfig":
    from aiobotocore.config import AioConfig

    # botocore changes the retries that it is given: each client gets its own.
    return AioConfig(
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=POOL,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
    )


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
    url, attempts = settings.endpoint_url, settings.attempts
    async with AsyncExitStack() as stack:
        yield AwsClients(
            sqs=await stack.enter_async_context(
                session.client("sqs", endpoint_url=url, config=_config(attempts))
            ),
            sns=await stack.enter_async_context(
                session.client("sns", endpoint_url=url, config=_config(attempts))
            ),
            lambda_=await stack.enter_async_context(
                session.client("lambda", endpoint_url=url, config=_config(attempts))
            ),
            iam=await stack.enter_async_context(
                session.client("iam", endpoint_url=url, config=_config(attempts))
            ),
        )
