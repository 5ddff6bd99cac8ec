"""Receivers are told what becomes of runs, over a real database and real receivers."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Table, insert, select, update
from temporalio.testing import ActivityEnvironment

from activities.shared.run_webhooks import RunWebhooks
from adapters.database.engine import Database
from adapters.database.models.imports import import_tasks
from adapters.database.models.spreadsheets import spreadsheet_imports
from adapters.database.models.webhooks import run_messages, run_webhooks
from adapters.database.run_webhooks import SqlRunWebhooks, old_messages
from adapters.http import signature
from adapters.webhooks import SecretKeys
from tests.support.webhook import Receiver, receiving
from workers.shared.resources import Resources
from workers.shared.run_webhooks import webhook_steps
from workers.shared.settings.webhooks import ReceiverSettings
from workflows.shared.notifications import NotificationPolicies
from workflows.shared.run_webhooks import ATTEMPTS, TOLD, RunEvent, RunsTold, RunWebhooksInput

NOW = datetime(2026, 2, 3, 10, 15, tzinfo=UTC)
KEY = Fernet.generate_key()
SECRET = b"a secret of a receiver"
UUID = "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1"


def steps(database: Database, **settings: str) -> RunWebhooks:
    unused: Any = None
    named = {"key": KEY.decode(), "local": "true", **settings}
    receivers = ReceiverSettings.read(
        {f"DOCFLOW_WEBHOOK_{name.upper()}": value for name, value in named.items()}
    )
    resources = Resources(
        *(database, unused, unused, unused, NotificationPolicies(), Path()), receivers=receivers
    )
    return webhook_steps(resources)


async def told(database: Database, changes: int = 500) -> RunsTold:
    order = RunWebhooksInput(changes=changes)
    return await ActivityEnvironment().run(steps(database).tell, order)


async def a_webhook(
    database: Database,
    url: str,
    organisation: int | None = None,
    events: Sequence[RunEvent] = TOLD,
    pipelines: Sequence[str] = (),
) -> int:
    made = await SqlRunWebhooks(database).add(
        organisation,
        url,
        events,
        pipelines,
        SecretKeys([KEY]).encrypt(SECRET),
        "ann",
        datetime.now(UTC),
        most=10,
    )
    assert made is not None
    return made.id


async def an_import(database: Database, task: str, state: str, **changes: Any) -> None:
    """A row of an import; the row of its run follows it."""
    row = {
        "project_id": "P1",
        "task_id": task,
        "document_type": "mto",
        "workflow_id": f"import/P1/{task}",
        "created_at": NOW,
        "updated_at": NOW,
        "state": state,
        **changes,
    }
    async with database.transaction() as connection:
        await connection.execute(insert(import_tasks).values(row))


async def an_upload(database: Database, organisation: int, **changes: Any) -> str:
    id = f"spreadsheet/{UUID}"
    row = {
        "uuid": UUID,
        "workflow_id": id,
        "organisation_id": organisation,
        "import_type": "MEMBERSHIP",
        "filename": "members.xlsx",
        "by": "ann",
        "auto_start": False,
        "dry_run": False,
        "state": "COMPLETED",
        "state_since": NOW,
        "assignee": "ann",
        "created_at": NOW,
        "updated_at": NOW,
        **changes,
    }
    async with database.transaction() as connection:
        await connection.execute(insert(spreadsheet_imports).values(row))
    return id


async def changed(database: Database, table: Table, **values: Any) -> None:
    async with database.transaction() as connection:
        await connection.execute(update(table).values(values))


def seen(receiver: Receiver) -> list[tuple[str, str]]:
    bodies = [json.loads(body) for _, _, body in receiver.requests]
    return [(each["type"], each["data"].get("id", "")) for each in bodies]


async def test_an_end_with_rejected_rows_is_told_signed(database: Database) -> None:
    async with receiving() as site:
        await a_webhook(database, site.url)
        await an_import(database, "T1", "completed", created=5, rejected=2, problem_count=2)
        assert await told(database) == RunsTold(queued=2, delivered=2)
        assert await told(database) == RunsTold()
    (_, headers, body), (_, others, other) = site.requests
    content = json.loads(body)
    assert (content["type"], content["timestamp"]) == ("run.ended", "2026-02-03T10:15:00Z")
    assert content["data"]["id"] == "import/P1/T1"
    assert content["data"]["state"] == "completed_with_problems"
    assert content["data"]["counts"] == {"created": 5, "rejected": 2, "problems": 2}
    assert (json.loads(other)["type"], json.loads(other)["data"]["rejected_rows"]) == (
        "rows.rejected",
        2,
    )
    assert headers["webhook-id"] != others["webhook-id"]
    at = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == signature(SECRET, headers["webhook-id"], at, body)


async def test_attention_is_told_once_until_it_is_over(database: Database) -> None:
    async with receiving() as site:
        await a_webhook(database, site.url, events=[RunEvent.NEEDS_ATTENTION])
        await an_import(database, "T1", "parked", reason="no blob")
        await told(database)
        await changed(database, import_tasks, reason="still no blob", updated_at=datetime.now(UTC))
        assert await told(database) == RunsTold()
        await changed(database, import_tasks, state="running")
        await told(database)
        await changed(database, import_tasks, state="parked", updated_at=datetime.now(UTC))
        assert (await told(database)).delivered == 1
    assert seen(site) == [("run.needs_attention", "import/P1/T1")] * 2


async def test_a_run_that_ends_again_is_told_again(database: Database) -> None:
    async with receiving() as site:
        await a_webhook(database, site.url)
        await an_import(database, "T1", "failed", finished_at=NOW)
        await told(database)
        await changed(database, import_tasks, note="looked at")
        assert await told(database) == RunsTold()
        later = NOW + timedelta(hours=1)
        await changed(database, import_tasks, state="completed", finished_at=later)
        assert (await told(database)).delivered == 1
    assert len({headers["webhook-id"] for _, headers, _ in site.requests}) == 2


async def test_an_organisation_is_told_of_its_own_runs_alone(database: Database) -> None:
    async with receiving() as ours, receiving() as theirs, receiving() as everything:
        await a_webhook(database, ours.url, 3)
        await a_webhook(database, theirs.url, 4)
        await a_webhook(database, everything.url)
        await an_import(database, "T1", "completed")
        upload = await an_upload(database, 3, error=1)
        await told(database)
    of_upload = [("run.ended", upload), ("rows.rejected", upload)]
    assert seen(ours) == of_upload and seen(theirs) == []
    assert sorted(seen(everything)) == sorted([*of_upload, ("run.ended", "import/P1/T1")])


async def test_only_the_wanted_pipelines_and_later_changes_are_told(database: Database) -> None:
    async with receiving() as site:
        await an_import(database, "T0", "completed")
        await a_webhook(database, site.url, pipelines=["imports"])
        await an_import(database, "T1", "completed")
        await an_upload(database, 3)
        await told(database)
    assert seen(site) == [("run.ended", "import/P1/T1")]


async def test_more_changes_than_a_page_are_all_told(database: Database) -> None:
    async with receiving() as site:
        await a_webhook(database, site.url)
        for number in range(7):
            await an_import(database, f"T{number}", "completed")
        await told(database, changes=2)
    assert seen(site) == [("run.ended", f"import/P1/T{number}") for number in range(7)]


async def test_a_change_that_commits_late_is_not_missed(database: Database) -> None:
    async with receiving() as site:
        await a_webhook(database, site.url)
        async with database.transaction() as late:
            await late.execute(
                insert(import_tasks).values(
                    project_id="P1",
                    task_id="late",
                    document_type="mto",
                    workflow_id="import/P1/late",
                    created_at=NOW,
                    updated_at=NOW,
                    state="completed",
                )
            )
            await an_import(database, "T1", "completed")
            await told(database)
        await told(database)
    assert sorted(run for _, run in seen(site)) == ["import/P1/T1", "import/P1/late"]


class Killed(BaseException):
    """The worker dies here."""


@pytest.mark.parametrize("step", ["keep", "note"])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_a_worker_killed_at_any_step_loses_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, step: str, is_done: bool
) -> None:
    carried_out = getattr(SqlRunWebhooks, step)

    async def dies(*given: Any) -> None:
        if is_done:
            await carried_out(*given)
        raise Killed

    async with receiving() as site:
        await a_webhook(database, site.url, events=[RunEvent.ENDED])
        await an_import(database, "T1", "completed")
        with monkeypatch.context() as patch:
            patch.setattr(SqlRunWebhooks, step, dies)
            with pytest.raises(Killed):
                await told(database)
        await told(database)
        await told(database)
    sent_twice = step == "note" and not is_done
    assert len(site.requests) == (2 if sent_twice else 1)
    assert len({headers["webhook-id"] for _, headers, _ in site.requests}) == 1


async def test_two_workers_at_once_make_each_message_once(database: Database) -> None:
    async with receiving() as site:
        await a_webhook(database, site.url)
        for number in range(20):
            await an_import(database, f"T{number}", "completed")
        await asyncio.gather(*(told(database) for _ in range(4)))
    assert len({headers["webhook-id"] for _, headers, _ in site.requests}) == 20


async def test_a_receiver_that_is_down_delays_nobody_else(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.shared.run_webhooks._TIMEOUT_SECONDS", 0.5)
    async with receiving() as down, receiving() as up:
        down.silent = True
        first = await a_webhook(database, down.url)
        await a_webhook(database, up.url)
        for number in range(20):
            await an_import(database, f"T{number}", "completed")
        result = await told(database)
    assert (result.delivered, result.failed) == (20, 1)
    assert len(down.requests) == 1
    [*_, oldest] = await SqlRunWebhooks(database).messages(first, None, 50)
    assert (oldest.attempts, oldest.problem) == (1, "no answer within 0.5 s")


async def test_a_message_that_is_never_accepted_fails_and_can_be_sent_again(
    database: Database,
) -> None:
    store, waits = SqlRunWebhooks(database), list[timedelta]()
    async with receiving() as site:
        site.answers = ["503 Down"]
        webhook = await a_webhook(database, site.url)
        await an_import(database, "T1", "completed")
        for _ in range(ATTEMPTS):
            now = datetime.now(UTC)
            await told(database)
            [message] = await store.messages(webhook, None, 10)
            if message.due_at is not None:
                waits.append(message.due_at - now)
                await changed(database, run_messages, due_at=now)
        [message] = await store.messages(webhook, None, 10)
        assert message.due_at is None and message.delivered_at is None
        assert (message.attempts, message.status_code) == (ATTEMPTS, 503)
        assert timedelta(days=3) < sum(waits, timedelta()) < timedelta(days=4)
        assert max(waits) < timedelta(hours=25) and await told(database) == RunsTold()
        site.answers = ["200 OK"]
        await store.send_again(webhook, message.id, datetime.now(UTC))
        assert (await told(database)).delivered == 1
    assert len({headers["webhook-id"] for _, headers, _ in site.requests}) == 1


async def test_a_receiver_rests_for_as_long_as_it_asks(database: Database) -> None:
    async with receiving() as site:
        site.answers = ["429 Slow\r\nRetry-After: 600"]
        webhook = await a_webhook(database, site.url)
        await an_import(database, "T1", "completed")
        await an_import(database, "T2", "completed")
        assert await told(database) == RunsTold(queued=2, failed=1)
        assert await told(database) == RunsTold()
    messages = await SqlRunWebhooks(database).messages(webhook, None, 10)
    soonest = datetime.now(UTC) + timedelta(seconds=500)
    assert all(each.due_at and each.due_at > soonest for each in messages)


async def test_one_message_that_is_not_accepted_holds_no_other_up(database: Database) -> None:
    async with receiving() as site:
        site.answers = ["400 No", "200 OK"]
        await a_webhook(database, site.url)
        await an_import(database, "T1", "completed")
        await an_import(database, "T2", "completed")
        assert await told(database) == RunsTold(queued=2, delivered=1, failed=1)


async def test_a_receiver_that_is_gone_is_disabled_and_continues_when_enabled(
    database: Database,
) -> None:
    store = SqlRunWebhooks(database)
    async with receiving() as site:
        site.answers = ["410 Gone", "200 OK"]
        webhook = await a_webhook(database, site.url)
        await an_import(database, "T1", "completed")
        await told(database)
        await an_import(database, "T2", "completed")
        assert await told(database) == RunsTold()
        found = await store.get(webhook)
        assert found is not None and not found.enabled
        assert found.problem == "the receiver answered 410: it wants nothing more"
        await store.change(webhook, {"enabled": True, "problem": None})
        assert (await told(database)).delivered == 1
    assert seen(site) == [("run.ended", "import/P1/T1"), ("run.ended", "import/P1/T2")]


@asynccontextmanager
async def redirecting(target: str) -> AsyncGenerator[Receiver]:
    async with receiving() as site:
        site.answers = [f"307 Elsewhere\r\nLocation: {target}"]
        yield site


async def test_a_redirect_is_not_followed(database: Database) -> None:
    async with receiving() as inside, redirecting(inside.url) as site:
        webhook = await a_webhook(database, site.url)
        await an_import(database, "T1", "completed")
        assert (await told(database)).failed == 1
    assert inside.requests == []
    [message] = await SqlRunWebhooks(database).messages(webhook, None, 10)
    assert message.problem == "answered 307, a redirect, which is not followed"


@pytest.mark.parametrize(
    ("url", "settings", "problem"),
    [
        ("https://127.0.0.1:9/", {"local": "false"}, "not of the public internet"),
        ("https://localhost:9/", {"local": "false"}, "not of the public internet"),
        ("https://169.254.169.254/", {}, "not of the public internet"),
        ("https://[::ffff:10.0.0.1]/", {}, "not of the public internet"),
        ("http://example.org/", {"local": "false"}, "must begin with https://"),
        ("https://example.org/", {"hosts": "example.net"}, "DOCFLOW_WEBHOOK_HOSTS"),
        ("https://example.org/", {"key": ""}, "set DOCFLOW_WEBHOOK_KEY"),
        (
            "https://example.org/",
            {"key": base64.urlsafe_b64encode(b"x" * 32).decode()},
            "under a key that DOCFLOW_WEBHOOK_KEY no longer holds",
        ),
    ],
)
async def test_an_address_that_is_refused_is_sent_nothing(
    database: Database, url: str, settings: dict[str, str], problem: str
) -> None:
    webhook = await a_webhook(database, url)
    await an_import(database, "T1", "completed")
    tell = steps(database, **settings).tell
    assert (await ActivityEnvironment().run(tell, RunWebhooksInput())).failed == 1
    [message] = await SqlRunWebhooks(database).messages(webhook, None, 10)
    assert message.problem is not None and problem in message.problem
    assert message.status_code is None and message.due_at is not None


async def test_both_secrets_sign_for_a_while_after_a_rotation(database: Database) -> None:
    store, keys = SqlRunWebhooks(database), SecretKeys([KEY])
    async with receiving() as site:
        webhook = await a_webhook(database, site.url)
        for task, valid in (("T1", timedelta(days=1)), ("T2", -timedelta(days=1))):
            await store.rotate(webhook, keys.encrypt(task.encode()), datetime.now(UTC) + valid)
            await an_import(database, task, "completed")
            await told(database)
    signed = [headers["webhook-signature"].split() for _, headers, _ in site.requests]
    assert [len(each) for each in signed] == [2, 1]
    _, headers, body = site.requests[0]
    at = int(headers["webhook-timestamp"])
    own = [signature(secret, headers["webhook-id"], at, body) for secret in (b"T1", SECRET)]
    assert signed[0] == own


async def test_a_restored_database_hides_no_change(database: Database) -> None:
    async with receiving() as site:
        await a_webhook(database, site.url)
        await changed(database, run_webhooks, revision=2**40)
        await an_import(database, "T1", "completed")
        assert (await told(database)).delivered == 1


async def test_an_organisation_has_so_many_webhooks_and_no_more(database: Database) -> None:
    store = SqlRunWebhooks(database)
    new = ("https://a.example.org/", TOLD, (), b"secret", "ann", datetime.now(UTC))
    made = [await store.add(whose, *new, most=1) for whose in (None, None, 3, 3, 4)]
    assert [each is not None for each in made] == [True, False, True, False, True]


async def test_old_messages_are_removed_unless_they_are_due(database: Database) -> None:
    async with receiving() as site:
        site.answers = ["200 OK", "500 Down"]
        await a_webhook(database, site.url)
        await an_import(database, "T1", "completed")
        await an_import(database, "T2", "completed")
        await told(database)
    rows, before = old_messages(database), datetime.now(UTC) + timedelta(days=1)
    assert await rows.remove(await rows.due(before, 10), before) == 1
    async with database.reading() as connection:
        left = (await connection.execute(select(run_messages.c.run_id))).scalars().all()
    assert left == ["import/P1/T2"]
