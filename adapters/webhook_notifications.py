"""Notices as signed posts to a webhook."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from pydantic.alias_generators import to_camel

from adapters.http import retry_after, signed_headers
from adapters.ports.errors import PortError, Throttled, Unavailable
from workflows.shared.notifications import Notification

WEBHOOK_TIMEOUT_SECONDS: Final = 15.0
"""For all of one request."""


class WebhookNotifications:
    """Posts notices as JSON with names in camelCase.

    Args:
        url: Checked by `check_webhook_url`.
        secret: Key of the signature; None: notices are not signed.
        timeout: Seconds for all of one request.
    """

    def __init__(
        self, url: str, secret: bytes | None = None, *, timeout: float = WEBHOOK_TIMEOUT_SECONDS
    ) -> None:
        self._url = url
        self._host = urlsplit(url).hostname
        self._secret = secret
        self._timeout = timeout

    async def send(self, notice: Notification) -> None:
        """Post one notice.

        Raises:
            Throttled: The receiver asks for a pause (429, or 503 with `Retry-After`).
            Unavailable: It does not answer, or with 408 or 5xx.
            PortError: It does not take notices: any other status, redirects included.
        """
        try:
            async with asyncio.timeout(self._timeout):
                status, headers = await self._post(notice)
        except TimeoutError as error:
            raise Unavailable(
                f"the webhook at {self._host} did not answer within {self._timeout:g} s"
            ) from error
        except httpx.RequestError as error:
            raise Unavailable(
                f"the webhook at {self._host} cannot be reached: {type(error).__name__}"
            ) from error
        self._judge(status, headers)

    async def _post(self, notice: Notification) -> tuple[int, httpx.Headers]:
        body = json.dumps(_content(notice)).encode()
        now = int(datetime.now(UTC).timestamp())
        secrets = () if self._secret is None else (self._secret,)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "docflow",
            "Idempotency-Key": notice.id,
            **signed_headers(secrets, notice.id, now, body),
        }
        # The answer's body is left unread: it is not needed, and it has no bound.
        async with (
            httpx.AsyncClient(timeout=self._timeout) as client,
            client.stream("POST", self._url, content=body, headers=headers) as answer,
        ):
            return answer.status_code, answer.headers

    def _judge(self, status: int, headers: httpx.Headers) -> None:
        if 200 <= status < 300:
            return
        summary = f"the webhook at {self._host} answered {status}"
        pause = retry_after(headers.get("Retry-After"))
        if status == 429 or (status == 503 and pause is not None):
            raise Throttled(summary, pause)
        if status == 408 or status >= 500:
            raise Unavailable(summary)
        raise PortError(f"{summary}; does DOCFLOW_NOTIFY_WEBHOOK_URL name a receiver of notices?")


def _content(notice: Notification) -> dict[str, Any]:
    """The fields of a notice, and beside them the facts that only its pipeline has."""
    fields = notice.model_dump(mode="json", exclude={"about", "recipients"})
    return {to_camel(name): value for name, value in {**notice.about, **fields}.items()}
