"""Webhooks about runs: added, told, tested, sent again, by API and by commands."""

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from cryptography.fernet import Fernet
from sqlalchemy import insert
from temporalio.worker import Worker

from activities.shared.dependencies import Dependencies
from adapters.database.models.imports import import_tasks
from tests.gateway.test_commands import Terminal
from tests.support.gateway import Stack, build_app, served, token
from tests.support.scripted import scripted
from tests.support.waiting import eventually
from tests.support.webhook import receiving
from workers.shared.register import activities_of
from workers.shared.run_webhooks import webhook_steps
from workers.shared.schedules import declared_schedules, reconcile
from workers.shared.settings.webhooks import ReceiverSettings
from workflows.imports.runs import TASK_QUEUE
from workflows.shared.record_workflows import RunWebhooks
from workflows.shared.run_webhooks import SCHEDULE

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOOKS = "/api/v1/webhooks"
ADMIN = token("alma", 1, "admin")
KEY = Fernet.generate_key().decode()
PAGE = Path(__file__).parents[2] / "docs" / "webhooks.md"


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def hooks(stack: Stack) -> AsyncGenerator[Stack]:
    """A gateway with a key, and the schedule with a worker that tells receivers."""
    environment = {"DOCFLOW_WEBHOOK_KEY": KEY, "DOCFLOW_WEBHOOK_LOCAL": "true"}
    receivers = ReceiverSettings.read(environment)
    resources = replace(stack.resources, receivers=receivers)
    app, service = build_app(stack.client, resources, allowed_hosts=("gateway", "127.0.0.1"))
    declared = declared_schedules(["imports"], environment)
    await reconcile(stack.client, ["imports"], {SCHEDULE: declared[SCHEDULE]})
    steps = webhook_steps(resources)
    worker = Worker(
        stack.client,
        task_queue=TASK_QUEUE,
        workflows=[RunWebhooks],
        activities=[*activities_of(steps), *scripted(Dependencies).activities()],
    )
    async with worker:
        yield Stack(stack.client, resources, app, service)
    await stack.client.get_schedule_handle(SCHEDULE).delete()


async def added(admin: httpx.AsyncClient, url: str, **more: Any) -> dict[str, Any]:
    answer = await admin.post(HOOKS, json={"url": url, **more})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"{HOOKS}/{answer.json()['id']}"
    return answer.json()


def is_genuine(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As the page shows it."""
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: dict[str, Any] = {}
    exec(block, found)
    return found["is_genuine"](secret, headers, body)


async def test_a_receiver_is_told_and_shown_what_it_was_sent(hooks: Stack) -> None:
    async with receiving() as site, hooks.browser(ADMIN) as admin:
        made = await added(admin, site.url)
        assert made["url"].endswith("/hook?...") and made["secret"].startswith("whsec_")
        at, now = f"{HOOKS}/{made['id']}", datetime.now(UTC)
        async with hooks.resources.database.transaction() as connection:
            await connection.execute(
                insert(import_tasks).values(
                    project_id="hooks",
                    task_id="T1",
                    document_type="mto",
                    workflow_id="import/hooks/T1",
                    created_at=now,
                    updated_at=now,
                    state="completed",
                )
            )
        sent = (await admin.post(f"{at}/test")).json()
        assert (sent["event"], sent["attempts"]) == ("webhook.test", 0)

        async def all_came() -> bool:
            return len(site.requests) == 2

        await eventually(all_came, seconds=90)

        async def noted() -> bool:
            items = (await admin.get(f"{at}/messages")).json()["items"]
            return all(each["delivered_at"] for each in items)

        await eventually(noted)
        first = (await admin.get(f"{at}/messages", params={"limit": 1})).json()
        rest = (await admin.get(f"{at}/messages", params={"cursor": first["next"]})).json()
        assert rest["next"] is None
        kinds = [(each["event"], each["run_id"]) for each in (*first["items"], *rest["items"])]
        assert sorted(kinds) == [("run.ended", "import/hooks/T1"), ("webhook.test", "")]
        assert (await admin.get(f"{at}/messages/{sent['id']}")).json()["status_code"] == 204
        for _, headers, body in site.requests:
            assert is_genuine(made["secret"], headers, body)
            assert not is_genuine(made["secret"], headers, body + b" ")
        again = await admin.post(f"{at}/messages/{sent['id']}/resend")
        assert again.status_code == 200 and again.json()["due_at"] is not None

        async def came_again() -> bool:
            return len(site.requests) == 3

        await eventually(came_again, seconds=90)
        assert site.requests[2][1]["webhook-id"] == sent["message_id"]
        assert (await admin.delete(at)).status_code == 204
        assert (await admin.get(at)).status_code == 404


async def test_a_webhook_is_changed_and_the_audit_knows_no_secret(hooks: Stack) -> None:
    async with hooks.browser(ADMIN) as admin:
        made = await added(admin, "https://a.example.org/?token=planted", organisation_id=1)
        at = f"{HOOKS}/{made['id']}"
        shown = (await admin.get(at)).json()
        assert "secret" not in shown and shown["url"] == "https://a.example.org/?..."
        assert shown in (await admin.get(HOOKS)).json()["items"]
        changes = {"events": ["rows.rejected"], "pipelines": ["spreadsheets"], "enabled": False}
        changed = (await admin.patch(at, json=changes)).json()
        assert changed == {**shown, **changes}
        assert (await admin.patch(at, json={})).json() == changed
        for refused in ("test", "messages/1/resend"):
            answer = await admin.post(f"{at}/{refused}")
            assert (answer.status_code, "enable it" in answer.text) == (409, True)
        rotated = (await admin.post(f"{at}/rotate")).json()["secret"]
        assert rotated != made["secret"]
        enabled = await admin.patch(at, json={"enabled": True, "url": "https://b.example.org/"})
        assert (enabled.json()["enabled"], enabled.json()["url"]) == (
            True,
            "https://b.example.org/",
        )
        assert (await admin.post(f"{at}/messages/1/resend")).status_code == 404
        assert (await admin.delete(at)).status_code == 204
        trail = (await admin.get("/api/v1/audit", params={"object": str(made["id"])})).text
        for action in ("addWebhook", "changeWebhook", "rotateWebhookSecret", "removeWebhook"):
            assert f'"{action}"' in trail
        for secret in (made["secret"], rotated, "planted"):
            assert secret not in trail


async def test_a_webhook_belongs_to_the_admins_of_its_organisation(hooks: Stack) -> None:
    async with hooks.browser(ADMIN) as admin:
        ours = (await added(admin, "https://a.example.org/", organisation_id=1))["id"]
        refused = await admin.post(
            HOOKS, json={"url": "https://a.example.org/", "organisation_id": 2}
        )
        assert refused.status_code == 403
    async with hooks.browser(token("olga", 1, "operator")) as olga:
        assert (await olga.get(HOOKS)).status_code == 403
    async with hooks.browser(token("otto", 2, "admin")) as stranger:
        at = f"{HOOKS}/{ours}"
        assert ours not in [each["id"] for each in (await stranger.get(HOOKS)).json()["items"]]
        for method, path in (
            *(("GET", at), ("DELETE", at), ("PATCH", at), ("POST", f"{at}/test")),
            *(("POST", f"{at}/rotate"), ("GET", f"{at}/messages"), ("GET", f"{at}/messages/1")),
            ("POST", f"{at}/messages/1/resend"),
        ):
            body = {"enabled": False} if method == "PATCH" else None
            assert (await stranger.request(method, path, json=body)).status_code == 404, path


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"url": "http://example.org/"}, "must begin with https://"),
        ({"url": "https://u:p@example.org/"}, "must not hold a user or password"),
        ({"url": "https://10.0.0.7/"}, "not of the public internet"),
        ({"url": "https://127.0.0.1/"}, "not of the public internet"),
        ({"url": "https://[::1]/"}, "not of the public internet"),
        ({"url": "https://169.254.169.254./latest"}, "not of the public internet"),
        ({"url": "file:///etc/passwd"}, "not a URL that can be posted to"),
        ({"url": "https://a.example.org/", "pipelines": ["x"]}, "there is no pipeline x"),
        ({"url": "https://a.example.org/", "events": []}, 'List should have at least 1 item"'),
        (
            {"url": "https://a.example.org/", "events": ["webhook.test"]},
            "events.0: Input should be 'run.ended', 'run.needs_attention' or 'rows.rejected'\"",
        ),
        ({"url": "https://a.example.org/", "secret": "mine"}, "secret"),
    ],
)
async def test_a_webhook_that_cannot_be_used_is_refused(
    hooks: Stack, body: dict[str, Any], says: str
) -> None:
    receivers = ReceiverSettings.read({"DOCFLOW_WEBHOOK_KEY": KEY})
    resources = replace(hooks.resources, receivers=receivers)
    app, _ = build_app(hooks.client, resources)
    async with hooks.browser(ADMIN, app=app) as admin:
        answer = await admin.post(HOOKS, json=body)
    assert answer.status_code == 422 and says in answer.text, answer.text


async def test_without_a_key_no_webhook_is_added(stack: Stack) -> None:
    async with stack.browser(ADMIN) as admin:
        answer = await admin.post(HOOKS, json={"url": "https://a.example.org/"})
    assert (answer.status_code, "set DOCFLOW_WEBHOOK_KEY" in answer.text) == (422, True)


async def test_commands_add_test_and_remove_a_webhook(hooks: Stack) -> None:
    async with receiving() as site, served(hooks.app) as address:
        alma = Terminal(address, ADMIN)
        made = await alma.json("webhook", "add", site.url, "--event", "run.ended")
        id = str(made["id"])
        assert made["events"] == ["run.ended"] and made["secret"].startswith("whsec_")
        assert "127.0.0.1" in await alma.says("webhook", "list")
        assert "all" in await alma.says("webhook", "show", id)
        sent = await alma.json("webhook", "test", id)
        assert (sent["attempts"], sent["status_code"]) == (1, 204)
        assert json.loads(site.requests[0][2])["type"] == "webhook.test"
        assert "delivered" in await alma.says("webhook", "messages", id)
        again = ("messages", id, "--retry", str(sent["id"]))
        assert "webhook.test" in await alma.says("webhook", *again)
        anew = ("change", id, "--new-secret", "-o", "name")
        assert await alma.says("webhook", *anew) != made["secret"]
        site.answers = ["500 Down"]
        failed = await alma.says("webhook", "test", id, code=1)
        assert "the receiver did not accept it: answered 500" in failed
        changed = await alma.json(*("webhook", "change", id, "--disable", "--pipeline", "imports"))
        assert (changed["enabled"], changed["pipelines"]) == (False, ["imports"])
        assert "enable it" in await alma.says("webhook", "test", id, code=1)
        opened = await alma.json("webhook", "change", id, "--enable", "--all-pipelines")
        assert (opened["enabled"], opened["pipelines"]) == (True, [])
        assert f"removed webhook {id}" in await alma.says("webhook", "remove", id, "--yes")
