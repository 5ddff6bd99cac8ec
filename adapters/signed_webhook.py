"""Signed posts to a receiver that the settings name, as Standard Webhooks describe them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import httpx

from adapters.http import retry_after, signed_headers
from adapters.ports.errors import PortError, Throttled, Unavailable

WEBHOOK_TIMEOUT_SECONDS: Final = 15.0
"""For all of one request."""


@dataclass(frozen=True, slots=True)
class SignedWebhook:
    """Posts JSON to one receiver.

    Args:
        url: Checked by `check_webhook_url`.
        secrets: Keys of the signature; none: messages are not signed.
        timeout: Seconds for all of one request.
        hint: What to say to who reads that the receiver does not take a message.
    """

    url: str = field(repr=False)
    secrets: Sequence[bytes] = field(default=(), repr=False)
    timeout: float = WEBHOOK_TIMEOUT_SECONDS
    hint: str = ""

    @property
    def host(self) -> str | None:
        """Of the receiver."""
        return urlsplit(self.url).hostname

    async def post(self, id: str, body: bytes) -> None:
        """Post one message, once; its id is the same for every attempt.

        Raises:
            Throttled: The receiver asks for a pause (429, or 503 with `Retry-After`).
            Unavailable: It does not answer, or with 408 or 5xx.
            PortError: It does not take the message: any other status, redirects included.
        """
        try:
            async with asyncio.timeout(self.timeout):
                status, headers = await self._post(id, body)
        except TimeoutError as error:
            raise Unavailable(
                f"the webhook at {self.host} did not answer within {self.timeout:g} s"
            ) from error
        except httpx.RequestError as error:
            raise Unavailable(
                f"the webhook at {self.host} cannot be reached: {type(error).__name__}"
            ) from error
        self._judge(status, headers)

    async def _post(self, id: str, body: bytes) -> tuple[int, httpx.Headers]:
        now = int(datetime.now(UTC).timestamp())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "docflow",
            "Idempotency-Key": id,
            **signed_headers(self.secrets, id, now, body),
        }
        # The answer's body is left unread: it is not needed, and it has no bound.
        async with (
            httpx.AsyncClient(timeout=self.timeout) as client,
            client.stream("POST", self.url, content=body, headers=headers) as answer,
        ):
            return answer.status_code, answer.headers

    def _judge(self, status: int, headers: httpx.Headers) -> None:
        if 200 <= status < 300:
            return
        summary = f"the webhook at {self.host} answered {status}"
        pause = retry_after(headers.get("Retry-After"))
        if status == 429 or (status == 503 and pause is not None):
            raise Throttled(summary, pause)
        if status == 408 or status >= 500:
            raise Unavailable(summary)
        raise PortError(f"{summary}; {self.hint}" if self.hint else summary)
