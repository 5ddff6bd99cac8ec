"""Receivers of webhooks, as a request names them; its secret goes no further than here."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from adapters.http.addresses import is_local, is_public, literal
from adapters.http.signatures import secret_bytes
from adapters.ports import Denied
from adapters.ports.webhooks import WebhookSecrets
from contracts.jobs import WEBHOOK_URLS, WebhookParameters, WebhookReceiver
from domain.jobs.webhooks import InvalidReceiver, check_receiver
from workers.services.jobs.errors import FieldError, InvalidJob
from workers.settings.webhooks import WebhookSettings

_URL: Final = "parameters.webhook_url"
_SECRET: Final = "parameters.webhook_secret"  # noqa: S105 - the name of a field


class WebhookReceivers:
    """Makes receivers of the parameters of a request.

    Args:
        secrets: Where secrets are kept.
        settings: Which receivers are accepted.
    """

    def __init__(self, secrets: WebhookSecrets, settings: WebhookSettings) -> None:
        self._secrets = secrets
        self._settings = settings

    def check(self, given: WebhookParameters) -> None:
        """See whether the parameters can be used.

        Raises:
            InvalidJob: They cannot.
        """
        urls = _urls(given)
        errors = [
            FieldError(_URL, str(refusal))
            for url in urls
            if (refusal := self._refusal(url)) is not None
        ]
        if len(urls) > WEBHOOK_URLS:
            errors.append(FieldError(_URL, f"names more than {WEBHOOK_URLS} receivers"))
        if given.webhook_secret is not None and given.webhook_secret_name is not None:
            errors.append(FieldError(_SECRET, "give it or webhook_secret_name, not both"))
        if not urls and (given.webhook_secret or given.webhook_secret_name):
            errors.append(FieldError(_SECRET, "is of no use without webhook_url"))
        try:
            if given.webhook_secret is not None:
                secret_bytes(given.webhook_secret)
        except ValueError as error:
            errors.append(FieldError(_SECRET, str(error)))
        if errors:
            raise InvalidJob(errors)

    async def keep(self, job_id: str, given: WebhookParameters) -> tuple[WebhookReceiver, ...]:
        """The receivers, with a reference in the place of a secret.

        Args:
            job_id: Of the job.
            given: As `check` accepts them.

        Raises:
            InvalidJob: The secret cannot be kept, or there is none of that name.
            Unavailable: The database is not available.
        """
        urls = _urls(given)
        if not urls:
            return ()
        try:
            reference = await self._reference(job_id, given)
        except Denied as error:
            raise InvalidJob([FieldError(_SECRET, str(error))]) from error
        return tuple(
            WebhookReceiver(
                url=url,
                secret=reference,
                retry_count=given.webhook_retry_count,
                timeout_seconds=given.webhook_timeout_seconds,
            )
            for url in urls
        )

    async def has_other_secret(self, job_id: str, given: WebhookParameters) -> bool:
        """Whether the parameters bring another secret than those that a job was asked for with.

        Raises:
            Unavailable: The database is not available.
        """
        secret = given.webhook_secret
        return secret is not None and await self._secrets.is_other(job_id, secret)

    async def forget(self, receivers: Sequence[WebhookReceiver]) -> None:
        """Remove the secret of receivers that are not used.

        Raises:
            Unavailable: The database is not available.
        """
        for reference in {each.secret for each in receivers if each.secret is not None}:
            await self._secrets.forget(reference)

    async def _reference(self, job_id: str, given: WebhookParameters) -> str | None:
        if given.webhook_secret is not None:
            return await self._secrets.keep(job_id, given.webhook_secret)
        if given.webhook_secret_name is not None:
            return self._secrets.reference_of(given.webhook_secret_name)
        return None

    def _refusal(self, url: str) -> str | None:
        local = self._settings.local
        try:
            check_receiver(url, self._settings.hosts, local=local)
        except InvalidReceiver as refusal:
            return str(refusal)
        address = literal(urlsplit(url).hostname or "")
        if address is None or is_public(address) or (local and is_local(address)):
            return None
        return "names an address that is not of the public internet"


def _urls(given: WebhookParameters) -> Sequence[str]:
    if given.webhook_url is None:
        return ()
    urls = (given.webhook_url,) if isinstance(given.webhook_url, str) else given.webhook_url
    return tuple(dict.fromkeys(urls))
