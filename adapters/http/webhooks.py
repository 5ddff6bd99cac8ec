"""Posts messages to receivers that others name."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

import httpx

from adapters.http.addresses import IPAddress, is_local, is_public
from adapters.http.answers import retry_after
from adapters.http.guarded import GuardedTransport
from adapters.http.resolved import AddressRefused, Resolve, resolve
from adapters.http.signatures import signed_headers
from adapters.ports.webhooks import WebhookAnswer, WebhookMessage

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
