"""Notices as signed posts to a webhook."""

import json
from typing import Any

from pydantic.alias_generators import to_camel

from adapters.signed_webhook import WEBHOOK_TIMEOUT_SECONDS, SignedWebhook
from workflows.shared.notifications import Notification


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
        secrets = () if secret is None else (secret,)
        hint = "does DOCFLOW_NOTIFY_WEBHOOK_URL name a receiver of notices?"
        self._webhook = SignedWebhook(url, secrets, timeout, hint)

    async def send(self, notice: Notification) -> None:
        """Post one notice.

        Raises:
            Throttled: The receiver asks for a pause (429, or 503 with `Retry-After`).
            Unavailable: It does not answer, or with 408 or 5xx.
            PortError: It does not take notices: any other status, redirects included.
        """
        await self._webhook.post(notice.id, json.dumps(_content(notice)).encode())


def _content(notice: Notification) -> dict[str, Any]:
    """The fields of a notice, and beside them the facts that only its pipeline has."""
    fields = notice.model_dump(mode="json", exclude={"about", "recipients"})
    return {to_camel(name): value for name, value in {**notice.about, **fields}.items()}
