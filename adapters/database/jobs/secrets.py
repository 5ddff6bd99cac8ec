"""Secrets of webhooks: those that settings name, and those that came with requests, encrypted."""

import hmac
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import delete, insert, select

from adapters.database.engine import Database
from adapters.database.models.webhooks import webhook_secrets
from adapters.http.signatures import secret_bytes
from adapters.ports import Denied

NAMED: Final = "named:"
"""What the reference of a secret in the settings begins with."""
KEPT: Final = "kept:"
"""What the reference of a secret in the table begins with."""


class SqlWebhookSecrets:
    """Secrets, kept under a reference that says nothing about them.

    Args:
        database: With the encrypted ones.
        keys: Fernet keys: the first encrypts, all decrypt. None: requests bring no secret.
        named: Name to the secrets that are valid under it, the newest first.
    """

    def __init__(
        self,
        database: Database,
        keys: Sequence[bytes] = (),
        named: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        self._database = database
        self._cipher = MultiFernet([Fernet(key) for key in keys]) if keys else None
        self._named = named or {}

    async def keep(self, job_id: str, secret: str) -> str:
        """Keep a secret that came with a request; its reference.

        Raises:
            Denied: There is no key to keep it under; the message says what to set.
            Unavailable: The database is not available.
        """
        if self._cipher is None:
            raise Denied(
                "webhook_secret cannot be kept: DOCFLOW_JOBS_SECRET_KEY is not set; set it, or "
                "name a secret of DOCFLOW_JOBS_WEBHOOK_SECRETS as webhook_secret_name"
            )
        reference = f"{KEPT}{uuid.uuid4().hex}"
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(webhook_secrets).values(
                    reference=reference,
                    job_id=job_id,
                    encrypted=self._cipher.encrypt(secret_bytes(secret)),
                    created_at=datetime.now(UTC),
                )
            )
        return reference

    async def forget(self, reference: str) -> None:
        """Remove a secret that came with a request; one of the settings stays."""
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(webhook_secrets).where(webhook_secrets.c.reference == reference)
            )

    async def is_other(self, job_id: str, secret: str) -> bool:
        """Whether a secret differs from those that requests for a job brought.

        False as well where none of them is kept (any more), or can be read.
        """
        cipher = self._cipher
        if cipher is None:
            return False
        query = select(webhook_secrets.c.encrypted).where(webhook_secrets.c.job_id == job_id)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).scalars().all()
        known: list[bytes] = []
        for encrypted in rows:
            with suppress(InvalidToken):
                known.append(cipher.decrypt(encrypted))
        given = secret_bytes(secret)
        return bool(known) and not any(hmac.compare_digest(given, each) for each in known)

    def reference_of(self, name: str) -> str:
        """The reference of a secret in the settings.

        Raises:
            Denied: There is none of that name.
        """
        if name not in self._named:
            raise Denied(f"webhook_secret_name: DOCFLOW_JOBS_WEBHOOK_SECRETS has no {name!r}")
        return f"{NAMED}{name}"

    async def secrets(self, reference: str) -> Sequence[bytes]:
        """Every secret that is valid under a reference, the newest first.

        Raises:
            Denied: There is none, or it cannot be read with the keys that are set.
            Unavailable: The database is not available.
        """
        if reference.startswith(NAMED):
            self.reference_of(reference.removeprefix(NAMED))
            return self._named[reference.removeprefix(NAMED)]
        query = select(webhook_secrets.c.encrypted).where(webhook_secrets.c.reference == reference)
        async with self._database.reading() as connection:
            encrypted = (await connection.execute(query)).scalar_one_or_none()
        if encrypted is None:
            raise Denied("the secret of the webhook is not kept any more")
        if self._cipher is None:
            raise Denied("the secret of the webhook cannot be read: set DOCFLOW_JOBS_SECRET_KEY")
        try:
            return [self._cipher.decrypt(encrypted)]
        except InvalidToken:
            raise Denied(
                "the secret of the webhook was kept under a key that DOCFLOW_JOBS_SECRET_KEY "
                "no longer holds; add it behind the new one, after a comma"
            ) from None
