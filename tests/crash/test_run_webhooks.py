"""A worker is killed while a receiver of messages about runs does not answer."""

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import insert

from adapters.database.models.imports import import_tasks
from adapters.database.run_webhooks import SqlRunWebhooks
from adapters.http import signature
from tests.crash.harness import running_system, until
from tests.support.webhook import receiving
from workflows.shared.run_webhooks import RunEvent

pytestmark = pytest.mark.chaos(alone=True)

WITHIN = 180
"""Seconds: a look each minute, and a dead worker that goes unnoticed for ten seconds."""
SECRET = b"a secret of a receiver"


async def test_a_message_that_a_killed_worker_was_sending_comes_again(tmp_path: Path) -> None:
    key = Fernet(base64.urlsafe_b64encode(b"k" * 32))
    settings = {
        "DOCFLOW_WEBHOOK_KEY": base64.urlsafe_b64encode(b"k" * 32).decode(),
        "DOCFLOW_WEBHOOK_LOCAL": "true",
    }
    command = ("worker", "imports")
    async with receiving() as site, running_system(tmp_path, command, settings=settings) as system:
        store, now = SqlRunWebhooks(system.resources.database), datetime.now(UTC)
        site.silent = True
        made = await store.add(
            None, site.url, [RunEvent.ENDED], [], key.encrypt(SECRET), "ann", now, most=1
        )
        assert made is not None
        async with system.resources.database.transaction() as connection:
            await connection.execute(
                insert(import_tasks).values(
                    project_id="P1",
                    task_id="T1",
                    document_type="mto",
                    workflow_id="import/P1/T1",
                    created_at=now,
                    updated_at=now,
                    state="completed",
                )
            )

        async def asked() -> bool:
            return len(site.requests) == 1

        await until(asked, "the receiver has the message and does not answer", WITHIN)
        (worker,) = system.docflow
        await worker.kill()
        site.silent = False
        await worker.start()

        async def delivered() -> bool:
            messages = await store.messages(made.id, None, 10)
            return all(each.delivered_at is not None for each in messages)

        await until(delivered, "the message is delivered", WITHIN)
    (_, first, body), (_, second, same) = site.requests
    assert (first["webhook-id"], body) == (second["webhook-id"], same)
    for headers in (first, second):
        at = int(headers["webhook-timestamp"])
        assert headers["webhook-signature"] == signature(SECRET, headers["webhook-id"], at, body)
