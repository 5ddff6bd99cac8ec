"""Secrets by reference: `env:NAME`, `file:PATH`, `aws:NAME` or `aws:NAME#KEY`."""

import asyncio
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from adapters.aws.session import Missing, aws
from adapters.ports.errors import Denied

if TYPE_CHECKING:
    from adapters.aws.session import AwsSettings

CACHE_SECONDS: Final = 60.0
"""A secret that was changed counts after so long."""
FILE_BYTES: Final = 64 * 1024


@dataclass
class ReferencedSecrets:
    """Looks secrets up where they are used; nothing is kept for longer than a minute.

    Args:
        environment: Variables of this process.
        own: Variables that are docflow's own secrets, which no partner is given.
        own_files: Files with such secrets.
        folders: Folders below which `file:` may name files.
        aws: Secrets Manager; None: there is none, and `aws:` is refused.
    """

    environment: Mapping[str, str] = field(repr=False)
    own: Collection[str] = ()
    own_files: Collection[Path] = ()
    folders: Sequence[Path] = ()
    aws: "AwsSettings | None" = None
    _known: dict[str, tuple[float, str]] = field(
        default_factory=dict[str, tuple[float, str]], repr=False
    )

    async def secret(self, reference: str) -> str:
        """The secret of a reference.

        Raises:
            Denied: There is none, or it may not be used.
            Unavailable: The service that keeps it does not answer.
        """
        known = self._known.get(reference)
        if known is not None and time.monotonic() - known[0] < CACHE_SECONDS:
            return known[1]
        kind, _, name = reference.partition(":")
        match kind:
            case "env":
                value = self._variable(reference, name)
            case "file":
                value = await asyncio.to_thread(self._file, reference, name)
            case "aws":
                value = await self._managed(reference, name)
            case _:
                raise Denied(f"{reference[:50]!r} is not a reference to a secret")
        if not value:
            raise Denied(f"the secret {reference} is empty")
        self._known[reference] = (time.monotonic(), value)
        return value

    def _variable(self, reference: str, name: str) -> str:
        if name in self.own:
            raise Denied(f"{reference} is a secret of docflow itself, and no partner's")
        value = self.environment.get(name)
        if value is None:
            raise Denied(f"there is no secret {reference}: the variable is not set")
        return value

    def _file(self, reference: str, name: str) -> str:
        path = Path(name)
        if not any(path.resolve().is_relative_to(each.resolve()) for each in self.folders):
            raise Denied(f"{reference} lies in none of DOCFLOW_TRANSFERS_SECRET_FOLDERS")
        if path.resolve() in {each.resolve() for each in self.own_files}:
            raise Denied(f"{reference} is a secret of docflow itself, and no partner's")
        try:
            with path.open("rb") as file:
                content = file.read(FILE_BYTES + 1)
            text = content.decode().rstrip("\r\n")
        except OSError as error:
            raise Denied(f"the secret {reference} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise Denied(f"the secret {reference} is not UTF-8") from None
        if len(content) > FILE_BYTES:
            raise Denied(f"the secret {reference} has more than {FILE_BYTES:,} bytes")
        return text

    async def _managed(self, reference: str, name: str) -> str:
        if self.aws is None:
            raise Denied(f"{reference}: AWS_REGION is not set, so there is no Secrets Manager")
        id, _, key = name.partition("#")
        answer: dict[str, Any] = {}
        try:
            with aws(f"looking up {reference}"):
                answer = await _secret_value(self.aws, id)
        except Missing:
            raise Denied(f"there is no secret {reference}") from None
        text = answer.get("SecretString")
        if not isinstance(text, str):
            raise Denied(f"the secret {reference} is not text")
        return _of_key(reference, text, key) if key else text


async def _secret_value(settings: "AwsSettings", id: str) -> dict[str, Any]:
    # A quarter of a second that processes without such secrets do not pay.
    import aioboto3
    from aiobotocore.config import AioConfig

    config = AioConfig(
        retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=5, read_timeout=10
    )
    session = aioboto3.Session(
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        aws_session_token=settings.session_token,
        region_name=settings.region,
    )
    # The stubs know no Secrets Manager.
    opening = cast(Any, session).client(
        "secretsmanager", endpoint_url=settings.endpoint_url, config=config
    )
    async with opening as client:
        return await client.get_secret_value(SecretId=id)


def _of_key(reference: str, text: str, key: str) -> str:
    try:
        value: Any = json.loads(text)[key]
    except (ValueError, KeyError, TypeError):
        raise Denied(f"the secret {reference} is not JSON with such a key") from None
    return str(value)
