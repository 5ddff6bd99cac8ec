"""Texts that Secrets Manager keeps."""

from typing import Any, cast

from adapters.aws.errors import aws
from adapters.aws.session import AwsSettings
from adapters.ports import Denied


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
