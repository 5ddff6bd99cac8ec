"""Posts messages to receivers that others name: to public addresses alone, signed, once each."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import httpx
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from adapters.guarded_http import GuardedTransport
from adapters.http import (
    AddressRefused,
    IPAddress,
    Resolve,
    is_local,
    is_public,
    resolve,
    retry_after,
    signed_headers,
)
from adapters.ports.errors import Denied


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """What is posted to one receiver."""

    url: str
    id: str
    """The same for every attempt."""
    body: bytes
    timeout: float
    """Seconds for all of one attempt."""
    secrets: Sequence[bytes] = field(default=(), repr=False)
    """Each signs it; none: it is not signed."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What became of one attempt to post a message; nothing that a receiver does is an error."""

    status: int | None = None
    """Of HTTP; None: there was no answer."""
    retry_after: float | None = None
    """Seconds that the receiver asks to be left alone."""
    problem: str | None = None
    """Why the message was not accepted; None: it was."""
    refused: bool = False
    """docflow sends nothing to this address: nothing was sent."""


class SecretKeys:
    """Encrypts the secrets of receivers.

    Args:
        keys: Fernet keys: the first encrypts, all decrypt. None: no secret can be kept.
    """

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._cipher = MultiFernet([Fernet(key) for key in keys]) if keys else None

    @property
    def is_set(self) -> bool:
        """Whether there is a key."""
        return self._cipher is not None

    def encrypt(self, secret: bytes) -> bytes:
        """Encrypt a secret.

        Raises:
            Denied: There is no key.
        """
        if self._cipher is None:
            raise Denied("the secret of a webhook cannot be kept: set DOCFLOW_WEBHOOK_KEY")
        return self._cipher.encrypt(secret)

    def decrypt(self, encrypted: bytes) -> bytes:
        """Return a secret.

        Raises:
            Denied: It cannot be read with the keys that are set.
        """
        if self._cipher is None:
            raise Denied("the secret of the webhook cannot be read: set DOCFLOW_WEBHOOK_KEY")
        try:
            return self._cipher.decrypt(encrypted)
        except InvalidToken:
            raise Denied(
                "the secret of the webhook was kept under a key that DOCFLOW_WEBHOOK_KEY "
                "no longer holds; add it behind the new one, after a comma"
            ) from None


_REDIRECTS: Final = range(300, 400)


class HttpWebhooks:
    """Posts each message once, over a connection of its own.

    Nothing is sent to an address that is not public; redirects are not followed; the body of an
    answer is not read.

    Args:
        local: Loopback addresses may be posted to as well: for development.
        resolve: Finds the addresses of a host.
        tls: Certificates that are trusted; None: those of the machine.
    """

    def __init__(
        self,
        *,
        local: bool = False,
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._local = local
        self._resolve = resolve
        self._tls = tls

    async def post(self, message: WebhookMessage) -> WebhookAnswer:
        """Post one message, once."""
        try:
            async with asyncio.timeout(message.timeout):
                status, headers = await self._post(message)
        except TimeoutError:
            return WebhookAnswer(problem=f"no answer within {message.timeout:g} s")
        except AddressRefused as refusal:
            return WebhookAnswer(problem=str(refusal), refused=True)
        except UnicodeError:
            return WebhookAnswer(problem="its host is not a name that can exist", refused=True)
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            # A connection whose encryption breaks off raises the error of its own library.
            return WebhookAnswer(problem=_reason(error))
        return _judged(status, headers)

    async def _post(self, message: WebhookMessage) -> tuple[int, httpx.Headers]:
        now = int(datetime.now(UTC).timestamp())
        headers: Mapping[str, str] = {
            "Content-Type": "application/json",
            "User-Agent": "docflow",
            **signed_headers(message.secrets, message.id, now, message.body),
        }
        request = httpx.Request(
            "POST",
            message.url,
            content=message.body,
            headers=headers,
            extensions={"timeout": httpx.Timeout(message.timeout).as_dict()},
        )
        transport = GuardedTransport(self._permitted, self._resolve, self._tls)
        # No client above it, which would read redirects and cookies, and might use a proxy that
        # makes the connection to whatever address it likes.
        async with transport:
            answer = await transport.handle_async_request(request)
            async with aclosing(answer):
                return answer.status_code, answer.headers

    def _permitted(self, address: IPAddress) -> bool:
        return is_public(address) or (self._local and is_local(address))


def _judged(status: int, headers: httpx.Headers) -> WebhookAnswer:
    if 200 <= status < 300:
        return WebhookAnswer(status)
    problem = f"answered {status}"
    if status in _REDIRECTS:
        problem += ", a redirect, which is not followed"
    return WebhookAnswer(status, retry_after(headers.get("Retry-After")), problem)


def _reason(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.RemoteProtocolError):
        return "what it answered is not HTTP"
    if isinstance(error, ssl.SSLError):
        return f"its encryption broke off: {error.reason or type(error).__name__}"
    return f"cannot be reached: {type(error).__name__}"
