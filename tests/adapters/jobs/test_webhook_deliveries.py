"""Deliveries over a real database and real receivers."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import text
from temporalio.testing import ActivityEnvironment

from activities.jobs.ports import Webhooks
from activities.jobs.webhook_store import SqlWebhookLog, SqlWebhookSecrets
from activities.jobs.webhooks import JobWebhooks, ReceiverRules, WebhookPorts
from adapters.database.engine import Database
from adapters.http import signature
from adapters.ports.errors import Denied
from adapters.webhooks import HttpWebhooks, WebhookAnswer, WebhookMessage
from stack.children import free_port
from tests.support.jobs.receivers import receiver, with_status
from tests.support.jobs.records import JOB, Records, a_record, an_order
from workflows.jobs.records import JobStatus, WebhookAttempt, WebhookInput
from workflows.jobs.webhooks import FAILURES, FIRST_PAUSE

SECRET = "planted-secret-of-a-client"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def deliveries(
    database: Database,
    webhooks: Webhooks | None = None,
    secrets: SqlWebhookSecrets | None = None,
    records: Records | None = None,
    rules: ReceiverRules | None = None,
) -> JobWebhooks:
    ports = WebhookPorts(
        webhooks or HttpWebhooks(local=True),
        secrets or SqlWebhookSecrets(database),
        SqlWebhookLog(database),
        rules or ReceiverRules(local=True),
    )
    return JobWebhooks(ports, cast(Any, records or Records()))


async def delivered(steps: JobWebhooks, order: WebhookInput) -> WebhookAttempt:
    return await ActivityEnvironment().run(steps.deliver, order)


class Scripted:
    """Posts nothing, and says what became of it."""

    def __init__(self, *answers: WebhookAnswer) -> None:
        self.answers = list(answers)
        self.posted: list[WebhookMessage] = []

    async def post(self, message: WebhookMessage) -> WebhookAnswer:
        self.posted.append(message)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_the_receiver_gets_the_payload_signed_with_its_kept_secret(
    database: Database,
) -> None:
    secrets = SqlWebhookSecrets(database, [Fernet.generate_key()])
    reference = await secrets.keep(JOB, SECRET)
    async with receiver(with_status("200 OK")) as site:
        order = an_order(f"http://127.0.0.1:{site.port}/hook", reference)
        done = await delivered(deliveries(database, secrets=secrets), order)
    assert done == WebhookAttempt(delivered=True, status_code=200)
    ((head, body),) = site.requests
    assert json.loads(body) == {
        "job_id": JOB,
        "job_type": "hello_world",
        "status": "completed",
        "stage_results": {"1": {"greeted": 3}},
        "final_results": {"greeted": 3},
        "timestamp": "2026-01-02T03:04:05Z",
        "attempt": 1,
        "error_details": None,
        "failed_count": 0,
    }
    headers = {
        name.lower(): value
        for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])
    }
    assert headers["webhook-id"] == order.message_id
    at = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == signature(SECRET.encode(), order.message_id, at, body)


async def test_a_secret_stands_in_no_table_and_no_answer(database: Database) -> None:
    secrets = SqlWebhookSecrets(database, [Fernet.generate_key()])
    reference = await secrets.keep(JOB, SECRET)
    assert SECRET not in reference
    async with database.reading() as connection:
        rows = (await connection.execute(text("SELECT * FROM webhook_secrets"))).all()
    assert len(rows) == 1 and SECRET not in str([bytes(row.encrypted) for row in rows])


async def test_keys_are_rotated(database: Database) -> None:
    old, new = Fernet.generate_key(), Fernet.generate_key()
    reference = await SqlWebhookSecrets(database, [old]).keep(JOB, SECRET)
    assert await SqlWebhookSecrets(database, [new, old]).secrets(reference) == [SECRET.encode()]
    with pytest.raises(Denied, match="DOCFLOW_WEBHOOK_KEY no longer holds"):
        await SqlWebhookSecrets(database, [new]).secrets(reference)
    with pytest.raises(Denied, match="set DOCFLOW_WEBHOOK_KEY"):
        await SqlWebhookSecrets(database).secrets(reference)
    with pytest.raises(Denied, match="not kept any more"):
        await SqlWebhookSecrets(database, [new]).secrets("kept:other")


async def test_a_secret_is_compared_with_those_that_came_for_its_job(database: Database) -> None:
    key = Fernet.generate_key()
    secrets = SqlWebhookSecrets(database, [key])
    assert not await secrets.is_other(JOB, SECRET)
    await secrets.keep(JOB, SECRET)
    assert not await secrets.is_other(JOB, SECRET)
    assert await secrets.is_other(JOB, "rotated")
    assert not await secrets.is_other("cd" * 32, "rotated")
    # Without its key it cannot be read.
    assert not await SqlWebhookSecrets(database, [Fernet.generate_key()]).is_other(JOB, "rotated")


async def test_without_a_key_no_secret_is_kept(database: Database) -> None:
    with pytest.raises(Denied, match="DOCFLOW_WEBHOOK_KEY is not set") as refusal:
        await SqlWebhookSecrets(database).keep(JOB, SECRET)
    assert SECRET not in str(refusal.value)


async def test_both_secrets_of_a_name_sign_while_it_is_rotated(database: Database) -> None:
    posts = Scripted(WebhookAnswer(204))
    secrets = SqlWebhookSecrets(database, named={"client": (b"new", b"old")})
    order = an_order("https://hooks.example.org/", secrets.reference_of("client"))
    await delivered(deliveries(database, posts, secrets), order)
    assert posts.posted[0].secrets == (b"new", b"old")
    with pytest.raises(Denied, match="has no 'other'"):
        secrets.reference_of("other")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (WebhookAnswer(204), WebhookAttempt(delivered=True, status_code=204)),
        (
            WebhookAnswer(410, problem="answered 410"),
            WebhookAttempt(delivered=False, final=True, status_code=410, problem="answered 410"),
        ),
        (
            WebhookAnswer(429, 7, "answered 429"),
            WebhookAttempt(delivered=False, retry_after=7, status_code=429, problem="answered 429"),
        ),
        (
            WebhookAnswer(problem="private", refused=True),
            WebhookAttempt(delivered=False, final=True, problem="private"),
        ),
        (
            WebhookAnswer(problem="no answer within 30 s"),
            WebhookAttempt(delivered=False, problem="no answer within 30 s"),
        ),
    ],
)
async def test_an_attempt_is_logged_with_what_became_of_it(
    database: Database, answer: WebhookAnswer, expected: WebhookAttempt
) -> None:
    order = an_order("https://hooks.example.org/")
    steps = deliveries(database, Scripted(answer))
    # An activity may run twice; the attempt is one all the same.
    for _ in range(2):
        assert await delivered(steps, order) == expected
    (entry,) = await SqlWebhookLog(database).deliveries(JOB)
    assert (entry.order, entry.result) == (order, expected)


async def test_every_attempt_sends_the_same_message(database: Database) -> None:
    posts, records = Scripted(WebhookAnswer(500, problem="answered 500")), Records()
    steps = deliveries(database, posts, records=records)
    order = an_order("https://hooks.example.org/")
    await delivered(steps, order)
    # The job was run again meanwhile.
    records.found = a_record(attempt=2, result_data={"greeted": 4})
    again = order.model_copy(update={"redelivery": 1})
    await delivered(steps, again)
    first, second = posts.posted
    assert (first.id, first.body) == (second.id, second.body)
    assert len(await SqlWebhookLog(database).deliveries(JOB)) == 2


@pytest.mark.parametrize(
    ("record", "final"),
    [
        (None, False),
        (a_record(status=JobStatus.PROCESSING), False),
        (a_record(attempt=2), True),
    ],
)
async def test_nothing_is_sent_without_the_record_of_this_end(
    database: Database, record: Any, final: bool
) -> None:
    posts = Scripted(WebhookAnswer(200))
    steps = deliveries(database, posts, records=Records(record))
    done = await delivered(steps, an_order("https://hooks.example.org/"))
    assert (done.delivered, done.final) == (False, final) and not posts.posted


@pytest.mark.parametrize(
    ("url", "rules"),
    [
        ("https://evil.example.net/", ReceiverRules(("hooks.example.org",))),
        ("http://hooks.example.org/", ReceiverRules()),
    ],
)
async def test_rules_that_were_tightened_since_hold(
    database: Database, url: str, rules: ReceiverRules
) -> None:
    posts = Scripted(WebhookAnswer(200))
    done = await delivered(deliveries(database, posts, rules=rules), an_order(url))
    assert done.final and (done.problem or "").startswith("the URL ") and not posts.posted


async def test_a_secret_that_is_missing_sends_nothing_unsigned(database: Database) -> None:
    posts = Scripted(WebhookAnswer(200))
    order = an_order("https://hooks.example.org/", "named:gone")
    done = await delivered(deliveries(database, posts), order)
    assert done.final and not posts.posted


async def test_a_host_that_fails_is_left_alone_by_every_worker(database: Database) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    for number in range(FAILURES):
        done = await delivered(deliveries(database), an_order(url, delivery_attempt=number + 1))
        assert (done.problem, done.counted) == ("cannot be reached: ConnectError", True)
    # Another worker, or the same after a restart: the state is in the table.
    done = await delivered(deliveries(database), an_order(url, job_id="cd" * 32))
    assert not done.counted and 0 < (done.retry_after or 0) <= FIRST_PAUSE.total_seconds()
    other = await delivered(
        deliveries(database, Scripted(WebhookAnswer(200))), an_order("https://other.example.org/")
    )
    assert other.delivered


async def test_refusals_of_a_message_do_not_open_the_circuit(database: Database) -> None:
    steps = deliveries(database, Scripted(WebhookAnswer(400, problem="answered 400")))
    results = [
        await delivered(steps, an_order("https://a.example.org/", delivery_attempt=number))
        for number in range(1, FAILURES + 3)
    ]
    assert all(each.counted and each.status_code == 400 for each in results)


async def test_one_of_many_finds_out_whether_a_host_works_again(database: Database) -> None:
    log, host = SqlWebhookLog(database), "hooks.example.org"
    for _ in range(FAILURES):
        await log.end(host, NOW, healthy=False)
    later = NOW + FIRST_PAUSE
    answers: Sequence[float | None] = await asyncio.gather(
        *(log.begin(host, later, 60) for _ in range(5))
    )
    assert sorted(answers, key=lambda each: each is not None) == [None, 60, 60, 60, 60]
    assert await log.begin(host, later + timedelta(seconds=60), 60) is None
    await log.end(host, later, healthy=True)
    assert await log.begin(host, later, 60) is None


async def test_results_too_long_for_a_message_are_named_as_left_out(database: Database) -> None:
    posts = Scripted(WebhookAnswer(200))
    long = a_record(result_data={"text": 2_000_000 * "a"})
    await delivered(
        deliveries(database, posts, records=Records(long)), an_order("https://a.example.org/")
    )
    sent = json.loads(posts.posted[0].body)
    assert sent["omitted"] == ["stage_results", "final_results"] and sent["final_results"] == {}
