"""Who is sent which notice, when, and what it holds."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.shared.notifications import AT_ONCE, NotificationSending, deliver
from adapters.log_notifications import LogNotifications
from adapters.ports.errors import PortError, Throttled, Unavailable
from tests.support.imports.activities import environment
from tests.support.memory.notifications import MemoryNotifications
from tests.support.notifications import ID, a_notice, an_order
from workers import catalogue
from workers.shared.errors import SettingsError
from workers.shared.services.run_notifications import NotificationComposer, read_addresses
from workers.shared.settings.common import NotificationSettings
from workers.shared.worker_factory import is_notification_enabled
from workflows.shared.dependencies import Dependency, outage_id
from workflows.shared.errors import PERMANENT, TRANSIENT
from workflows.shared.notifications import (
    NotificationKind,
    NotificationPolicies,
    NotificationPolicy,
    NotificationReceipt,
    Reminded,
    clean,
    next_reminder,
)

OPS, ANN = "ops@example.org", "ann@example.org"
HOUR = 3_600
IDS = {
    "imports": "import/P1/T1",
    "spreadsheets": "spreadsheet/5eed0000-0000-4000-8000-000000000000",
    "batches": "batch/7/1",
}


def days(number: float) -> timedelta:
    return timedelta(days=number)


def composer(policies: NotificationPolicies | None = None) -> NotificationComposer:
    return NotificationComposer(
        policies or NotificationPolicies((OPS,)),
        "https://docflow.example.org",
        "https://temporal.example.org",
        "default",
    )


@pytest.mark.parametrize(
    ("kind", "notify", "to"),
    [
        (NotificationKind.NEEDS_YOU, ANN, (ANN,)),
        (NotificationKind.NEEDS_YOU, None, (OPS,)),
        (NotificationKind.REMINDER, ANN, (ANN,)),
        (NotificationKind.ABANDONED, ANN, (ANN,)),
        (NotificationKind.ESCALATION, ANN, (ANN, OPS)),
        (NotificationKind.FAILED, ANN, (ANN, OPS)),
        (NotificationKind.PARKED, None, (OPS,)),
        (NotificationKind.PARKED, OPS, (OPS,)),
        (NotificationKind.OUTAGE, None, (OPS,)),
    ],
)
def test_recipients_of_each_kind(
    kind: NotificationKind, notify: str | None, to: tuple[str]
) -> None:
    assert NotificationPolicies((OPS,)).recipients("imports", kind, notify) == to


def test_a_pipeline_with_a_policy_of_its_own_has_its_own_recipients() -> None:
    policies = NotificationPolicies(
        (OPS,),
        NotificationPolicy(to=("all@example.org",)),
        {
            "imports": NotificationPolicy(to=("imports@example.org",)),
            "batches": NotificationPolicy(to=()),
        },
    )
    sent = [policies.recipients(each, NotificationKind.PARKED, None) for each in IDS]
    assert sent == [("imports@example.org",), ("all@example.org",), ()]


@pytest.mark.parametrize(
    ("reminded", "receipt", "due"),
    [
        (Reminded(), NotificationReceipt(), days(15)),
        (Reminded(1, days(15)), NotificationReceipt(), days(27)),
        (Reminded(2, days(27)), NotificationReceipt(), None),
        (Reminded(), NotificationReceipt(remind_after=24 * HOUR), days(1)),
        (Reminded(1, days(1)), NotificationReceipt(remind_after=24 * HOUR), days(27)),
        (
            Reminded(1, days(1)),
            NotificationReceipt(remind_after=24 * HOUR, remind_every=HOUR),
            days(25 / 24),
        ),
        (
            Reminded(9, days(20.5)),
            NotificationReceipt(remind_after=24 * HOUR, remind_every=24 * HOUR),
            days(21),
        ),
        (
            Reminded(1, days(15)),
            NotificationReceipt(remind_after=900 * HOUR, remind_every=HOUR),
            days(27),
        ),
    ],
)
def test_a_run_that_waits_for_30_days_reminds_people(
    reminded: Reminded, receipt: NotificationReceipt, due: timedelta | None
) -> None:
    assert next_reminder(days(30), reminded, receipt) == due


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nBcc: eve@example.org\x1b[2J\u202e", "a Bcc: eve@example.org?[2J?"),
        ("postgresql://user:pass@db/x is away", "postgresql://***@db/x is away"),
        ("AccountKey=abc; sig=def&x=1", "AccountKey=***; sig=***&x=1"),
        ("api_key=abc, my_token = def", "api_key=***, my_token = ***"),
        ("two rows with the key=A1", "two rows with the key=A1"),
    ],
)
def test_text_from_outside_is_one_line_without_secrets(text: str, shown: str) -> None:
    assert clean(text, 1_000) == shown
    assert clean(text, 3) == shown[:3]


@pytest.mark.parametrize("pipeline", catalogue.PIPELINES, ids=lambda pipeline: pipeline.name)
def test_a_notice_of_every_pipeline_has_title_link_and_commands_that_its_runs_take(
    pipeline: Any,
) -> None:
    digest = "ab" * 32
    id = {**IDS, "jobs": f"job/{digest}", "transfers": f"transfer/{digest}/job"}[pipeline.name]
    run = pipeline.recognise(id)
    notice = composer().compose(an_order(id, answers=tuple(run.kind.answers)))
    assert (notice.pipeline, notice.workflow_id, notice.recipients) == (pipeline.name, id, (OPS,))
    assert notice.link is not None and notice.link.startswith("https://")
    assert pipeline.title in notice.title and notice.title != id
    commands = [step.command for step in notice.steps]
    for verb, contract in run.kind.answers.items():
        reason = ' --reason "..."' if "reason" in contract.model_fields else ""
        assert f"docflow {verb} {id}{reason}" in commands
    assert commands[-1] == f"docflow show {id}"


def test_a_notice_of_a_file_is_named_after_it_and_its_id_is_quoted_for_the_shell() -> None:
    id = IDS["spreadsheets"]
    named = composer().compose(an_order(id, about={"filename": "a\nb.xlsx"}))
    assert named.title == "Spreadsheet a b.xlsx"
    assert named.link == f"https://docflow.example.org/uploads/{id.partition('/')[2]}"
    outage = composer().compose(an_order(outage_id(Dependency.DATABASE), NotificationKind.OUTAGE))
    assert (outage.pipeline, outage.title) == ("outages", "Outage: database")
    assert outage.link == (
        "https://temporal.example.org/namespaces/default/workflows/outage%2Fdatabase/0190"
    )


async def test_a_notice_that_the_policy_does_not_want_is_not_sent() -> None:
    named = {
        "imports": NotificationPolicy(
            kinds=frozenset({NotificationKind.FAILED}), remind_after_hours=2
        )
    }
    memory, policies = MemoryNotifications(), NotificationPolicies((), NotificationPolicy(), named)
    sending = NotificationSending({"memory": memory}, policies, composer(policies).compose)
    receipts = [await environment().run(sending.send, an_order(IDS[each])) for each in IDS]
    assert [notice.pipeline for notice in memory.sent.values()] == ["spreadsheets", "batches"]
    assert receipts[0] == NotificationReceipt(remind_after=2 * HOUR)
    assert receipts[1] == NotificationReceipt()


async def test_a_channel_that_fails_delays_no_other_and_none_is_sent_a_notice_twice() -> None:
    down, well = MemoryNotifications(), MemoryNotifications()
    down.failure = Unavailable("later")
    channels = {"down": down, "well": well}
    env, beats = environment(), list[tuple[Any, ...]]()
    env.on_heartbeat = lambda *details: beats.append(details)
    with pytest.raises(ApplicationError, match="later") as failure:
        await env.run(deliver, channels, a_notice())
    assert (failure.value.type, failure.value.non_retryable) == (TRANSIENT, False)
    assert list(well.sent) == [ID] and beats == [("well",)]
    down.failure = None
    await environment(heartbeat_details=beats[-1]).run(deliver, channels, a_notice())
    assert (list(down.sent), well.calls) == ([ID], 1)


@pytest.mark.parametrize(
    ("failure", "type", "retried", "pause"),
    [
        (Unavailable("x"), TRANSIENT, True, None),
        (Throttled("x", 7), TRANSIENT, True, timedelta(seconds=7)),
        (PortError("x"), PERMANENT, False, None),
    ],
)
async def test_the_failure_of_a_channel_decides_about_another_attempt(
    failure: PortError, type: str, retried: bool, pause: timedelta | None
) -> None:
    memory = MemoryNotifications()
    memory.failure = failure
    with pytest.raises(ApplicationError) as raised:
        await environment(attempt=50).run(deliver, {"memory": memory}, a_notice())
    error = raised.value
    assert (error.type, error.non_retryable, error.next_retry_delay) == (type, not retried, pause)


async def test_a_slow_receiver_occupies_some_slots_of_a_worker_only() -> None:
    class Slow(MemoryNotifications):
        async def send(self, notice: Any) -> None:
            self.calls += 1
            await answered.wait()

    answered, slow = asyncio.Event(), Slow()
    sending = NotificationSending({"slow": slow}, NotificationPolicies(), composer().compose)
    order = an_order(IDS["imports"])
    busy = [asyncio.create_task(environment().run(sending.send, order)) for _ in range(AT_ONCE)]
    while slow.calls < AT_ONCE:
        await asyncio.sleep(0)
    with pytest.raises(ApplicationError, match="other notices") as refused:
        await environment().run(sending.send, order)
    assert not refused.value.non_retryable and refused.value.next_retry_delay is not None
    answered.set()
    await asyncio.gather(*busy)


def test_the_end_of_a_run_is_notified_where_its_policy_and_a_channel_allow_it() -> None:
    ended = NotificationPolicy(kinds=frozenset({NotificationKind.ENDED}))
    policies, ways = NotificationPolicies((), NotificationPolicy(), {"batches": ended}), {"mail": 1}
    is_wanted = is_notification_enabled(policies, ways)
    assert [is_wanted(each, NotificationKind.ENDED) for each in IDS.values()] == [
        False,
        False,
        True,
    ]
    assert [is_wanted(each, NotificationKind.FAILED) for each in IDS.values()] == [
        True,
        True,
        False,
    ]
    assert is_wanted(outage_id(Dependency.CLOUD), NotificationKind.OUTAGE)
    assert not is_notification_enabled(policies, {"log": LogNotifications()})(
        IDS["imports"], NotificationKind.FAILED
    )


def test_policies_are_read_by_pipeline() -> None:
    text = (
        '{"default": {"to": ["all@example.org"]}, "imports": {"kinds": ["parked", "ended"], '
        '"remind_after_hours": 24, "remind_every_hours": 48}, "outages": {"to": []}}'
    )
    environment = {"DOCFLOW_NOTIFY_POLICY": text, "DOCFLOW_ESCALATE_TO": OPS}
    read_addresses(environment)
    policies = NotificationSettings.read(environment).policies
    assert policies.operators == (OPS,)
    assert policies.default.to == ("all@example.org",)
    assert policies.of("imports").kinds == {NotificationKind.PARKED, NotificationKind.ENDED}
    assert policies.of("imports").receipt == NotificationReceipt(
        remind_after=24 * HOUR, remind_every=48 * HOUR
    )
    assert NotificationKind.ENDED not in policies.of("batches").kinds


def test_a_policy_of_no_pipeline_is_refused_at_the_start() -> None:
    with pytest.raises(SettingsError, match=r"names 'import'; there are .*imports"):
        read_addresses({"DOCFLOW_NOTIFY_POLICY": '{"import": {}}'})
