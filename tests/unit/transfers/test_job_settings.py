"""`jobsettings.json`: what is read, what is said of it, and which job an event gets."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.chaos import examples
from tests.support.transfers.events import FIRE, READ, SCAN, WRITE, a_job, a_job_order
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import RouteKey
from workflows.transfers.job_settings import (
    ACTIONS,
    PLAN_BYTES,
    corrected,
    job_of,
    may_be_left_out,
    partners_of,
    plan_of,
    read_settings,
    refuse_other_past,
    schema,
    side_of,
    verb_of,
    writes_at_end,
)
from workflows.transfers.settings import (
    CallHttp,
    Checksum,
    FireEvent,
    ReadFile,
    Scan,
    Side,
    WriteFile,
)

ROOT = Path(__file__).parents[3]
EVENT = a_job_order().event


def a_file(*jobs: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"Jobs": list(jobs), **fields}).encode()


def one(**fields: Any) -> dict[str, Any]:
    """A job as it stands in the file."""
    return {"Job": "orders", "Queue": "jobs", "Actions": {"List": [READ, WRITE]}, **fields}


def key(source: str = "TMS.Route") -> RouteKey:
    return RouteKey(account_id="TMS001", source=source, type="Succeeded", subject="File Upload")


def test_keys_are_written_as_in_the_system_that_docflow_replaces() -> None:
    actions = {
        "RetryFailureSource": 3,
        "RetryFailureDestination": 4,
        "RetryFailureSourceDelay": 5,
        "RetryFailureDestinationDelay": 6,
        "List": [READ],
    }
    [job] = read_settings(a_file(one(Actions=actions, EventAccountID="TMS001"))).jobs.jobs
    assert job.event_account_id == "TMS001"
    assert (job.actions.retry_failure_source, job.actions.retry_failure_destination) == (3, 4)
    assert job.actions.retry_failure_destination_delay == 6


def test_keys_that_nothing_reads_are_named_with_their_place() -> None:
    actions = {"List": [{**READ, "Pth": 1}, {**FIRE, "Data": {"any": "x"}}], "Retries": 3}
    found = read_settings(a_file(one(Actions=actions, EventAccount="x"), Comment="y"))
    assert set(found.unused) == {
        "Comment",
        "Jobs[0].EventAccount",
        "Jobs[0].Actions.Retries",
        "Jobs[0].Actions.List[0].Pth",
    }
    plan = plan_of(found.jobs.jobs[0], EVENT, None, found.unused)
    assert "nothing reads the key Comment" in plan.remarks


def test_of_two_spellings_of_a_key_the_one_that_counts_for_nothing_is_named() -> None:
    found = read_settings(a_file(one(Actions={"List": [{**READ, "partner": "other"}]})))
    assert found.jobs.jobs[0].actions.list[0].partner == READ["Partner"]
    assert found.unused == ("Jobs[0].Actions.List[0].partner",)


def test_a_job_names_its_own_unused_keys_and_not_those_of_others() -> None:
    jobs = one(Pth=1), one(Job="other", Queue="jobstmsroute", Qth=1)
    found = read_settings(a_file(*jobs, Comment="y"))
    first, second = found.jobs.jobs
    assert found.unused_by(first) == ["Jobs[0].Pth", "Comment"]
    assert found.unused_by(second) == ["Jobs[1].Qth", "Comment"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (rb'{"\ud800": 1}', "holds half of a surrogate pair"),
        (b'{"Jobs": [], "Jobs": []}', "'Jobs' stands twice in one object"),
        (b"[]", "jobsettings.json: "),
        (a_file(one(Queue="Jobs")), r"Jobs\.0\.Queue"),
        (a_file(one(Actions={"List": []})), r"Jobs\.0\.Actions\.List"),
        (a_file(one(Actions={"List": [{"Action": "Copy"}]})), "Copy"),
        (a_file(one(Actions={"List": [{**READ, "AtMost": 0}]})), "AtMost"),
        (a_file(one(), version=2), "ersion"),
        (a_file(one(), one()), "2 jobs 'orders'"),
        (a_file(one(), one(Job="copy")), "take the same events"),
    ],
)
def test_what_is_wrong_with_the_file_is_reported_with_its_place(text: bytes, said: str) -> None:
    with pytest.raises(RuleViolation, match=said):
        read_settings(text)


def test_jobs_of_other_queues_or_priorities_are_no_tie() -> None:
    read_settings(a_file(one(), one(Job="b", Queue="jobstmsroute"), one(Job="c", Priority=1)))


def test_the_most_specific_job_of_the_queue_takes_an_event() -> None:
    jobs = read_settings(
        a_file(
            one(),
            one(Job="tms", EventSource="TMS.*"),
            one(Job="exact", EventSource="TMS.Route"),
            one(Job="other", Queue="jobstmsroute", EventSource="TMS.Route"),
        )
    )
    assert job_of(jobs, "jobs", key()).job == "exact"
    assert job_of(jobs, "jobs", key("TMS.Status")).job == "tms"
    assert job_of(jobs, "jobs", key("Pricing")).job == "orders"
    assert job_of(jobs, "jobstmsroute", key()).job == "other"


def test_an_event_that_no_job_takes_names_the_nearest() -> None:
    jobs = read_settings(a_file(one(EventSource="TMS.Status")))
    with pytest.raises(RuleViolation, match=r"no job of queue jobs .* orders: source is"):
        job_of(jobs, "jobs", key())
    with pytest.raises(RuleViolation, match="has no job of queue jobscalgary"):
        job_of(jobs, "jobscalgary", key())


def test_a_disabled_job_takes_nothing() -> None:
    jobs = read_settings(a_file(one(Enabled=False)))
    with pytest.raises(RuleViolation, match="is disabled"):
        job_of(jobs, "jobs", key())


def test_a_plan_has_every_name_resolved() -> None:
    plan = plan_of(a_job(READ, WRITE, SequenceKey="ftp/{accountId}"), EVENT, None)
    assert plan.names == ({"path": "in/orders.csv"}, {"path": "2026/{name}"})
    assert plan.sequence == "ftp/TMS001"


def test_a_time_that_is_missing_is_named_where_a_name_has_a_date() -> None:
    timeless = EVENT.model_copy(update={"time_given": False})
    remark = "the event has no time: names with dates use that of its arrival"
    assert plan_of(a_job(READ, WRITE), timeless, None).remarks == (remark,)
    assert plan_of(a_job(READ, {**WRITE, "Path": "{name}"}), timeless, None).remarks == ()


def test_a_job_needs_a_file_before_it_works_on_one() -> None:
    with pytest.raises(RuleViolation, match="Scan comes first"):
        plan_of(a_job(SCAN, WRITE), EVENT, None)
    plan_of(a_job(SCAN, WRITE), EVENT, None, has_files=True)
    plan_of(a_job(FIRE), EVENT, None)


DELETED = {**READ, "After": "delete"}
CALL = {"Action": "CallHttp", "Partner": "portal"}


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([READ, READ, WRITE], r"action 2 \(ReadFile\) replaces the files of action 1 \(ReadFile\)"),
        ([READ, SCAN, READ, WRITE], "no action has sent before"),
        ([DELETED, SCAN], "deletes files that no WriteFile"),
        ([DELETED, CALL], "deletes files that no WriteFile"),
        ([DELETED, FIRE, READ, WRITE], "deletes files that no WriteFile"),
        ([{**READ, "After": "move"}, WRITE], "belong together"),
        ([{**READ, "MoveTo": "done/{name}"}, WRITE], "belong together"),
        ([{**READ, "AtLeast": 3}, WRITE], "AtLeast is 3, and AtMost 1"),
        ([READ, {"Action": "Checksum", "Write": True, "Expected": "{id}"}], "use two actions"),
        ([READ, {**FIRE, "Data": {"accountId": "ACME"}}], "set AccountId instead"),
        ([{**CALL, "Headers": {"idempotency-key": "1"}}], "replaced by the idempotency key"),
    ],
)
def test_actions_that_lose_files_or_contradict_themselves_are_refused(
    actions: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(RuleViolation, match=said):
        plan_of(a_job(*actions), EVENT, None)


@pytest.mark.parametrize(
    "actions",
    [
        [DELETED, WRITE, READ, WRITE],
        [DELETED, {**CALL, "Body": "file"}],
        [READ, FIRE, READ, WRITE],
        [{**READ, "After": "move", "MoveTo": "clean/{name}"}, SCAN],
    ],
)
def test_actions_that_send_what_they_read_are_accepted(actions: list[dict[str, Any]]) -> None:
    plan_of(a_job(*actions), EVENT, None)


def test_only_what_writes_the_files_of_the_end_writes_a_kept_copy() -> None:
    other = {**WRITE, "Partner": "other"}
    encrypt = {"Action": "Encrypt", "Partner": "acme"}
    for actions, end, before in (
        ([READ, SCAN, WRITE, FIRE, other], ["store", "other"], []),
        ([READ, WRITE, encrypt, other], ["other"], ["store"]),
        ([READ, WRITE, READ, other], ["other"], ["store"]),
        ([READ, WRITE, encrypt], [], ["store"]),
    ):
        found = writes_at_end(a_job(*actions).actions.list)
        assert tuple([each.partner for each in writes] for writes in found) == (end, before)


def test_a_plan_that_is_too_long_for_a_history_is_refused() -> None:
    fire = {**FIRE, "Data": {str(n): "{data.fileName}" + "x" * 1_000 for n in range(40)}}
    with pytest.raises(RuleViolation, match="are accepted: divide it"):
        plan_of(a_job(*[fire] * 8), EVENT, None)
    assert PLAN_BYTES < 1024 * 1024


def test_a_corrected_action_keeps_its_kind_and_the_rest_of_the_plan() -> None:
    plan = plan_of(a_job(), EVENT, None)
    fixed = corrected(plan, EVENT, 2, {"Path": "fixed/{name}"})
    assert fixed.names[2] == {"path": "fixed/{name}"}
    assert fixed.names[:2] == plan.names[:2]
    assert fixed.job.actions.list[2] == WriteFile(partner="store", path="fixed/{name}")
    for action, said in (
        ({"Action": "Scan"}, "stays one"),
        ({"Partner": "store", "Mode": "999"}, "Mode"),
        ({"Partner": "store", "Path": "../x"}, "segment"),
        ({"Partner": "No One"}, "Partner"),
        ({"Pth": "x"}, "has no Pth"),
    ):
        with pytest.raises(RuleViolation, match=said):
            corrected(plan, EVENT, 2, action)
    with pytest.raises(RuleViolation, match="belong together"):
        corrected(plan, EVENT, 0, {"After": "move"})


def test_settings_that_changed_before_the_failed_action_are_refused() -> None:
    plan = plan_of(a_job(), EVENT, None)
    refuse_other_past(plan_of(a_job(READ, SCAN, FIRE), EVENT, None), plan, 2)
    with pytest.raises(RuleViolation, match=r"action 1 .ReadFile. is done"):
        other = a_job({**READ, "Path": "other"}, SCAN, WRITE)
        refuse_other_past(plan_of(other, EVENT, None), plan, 2)
    with pytest.raises(RuleViolation, match="fewer actions"):
        refuse_other_past(plan_of(a_job(READ, SCAN), EVENT, None), plan, 2)


def test_every_action_has_a_verb_and_a_side() -> None:
    read, write = ReadFile(partner="a", path="x"), WriteFile(partner="a")
    call, scan = CallHttp(partner="a"), Scan()
    assert [verb_of(each) for each in (read, write, call, scan)] == [
        *("transfers.read_file", "transfers.write_file", "transfers.call_http", "transfers.scan"),
    ]
    assert [side_of(each) for each in (read, write, call, scan)] == [
        *(Side.SOURCE, Side.DESTINATION, Side.DESTINATION, Side.OWN),
    ]
    assert partners_of([read, scan, write, WriteFile(partner="b")]) == ("a", "b")


def test_a_protection_is_never_left_out() -> None:
    protects = {"ReadFile", "Decrypt", "Encrypt", "Verify", "Scan", "Checksum", "Extract"}
    assert protects <= set(ACTIONS)
    fire = FireEvent(source="a", subject="b")
    assert may_be_left_out(WriteFile(partner="a")) and may_be_left_out(fire)
    assert not may_be_left_out(Scan()) and not may_be_left_out(Checksum())


def test_the_committed_schema_is_what_the_command_writes() -> None:
    committed = json.loads((ROOT / "docs/reference/jobsettings.schema.json").read_text())
    assert committed == schema(), "write it as `workers/transfers/routes.py` says"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=6,
)
ACTION = st.fixed_dictionaries(
    {"Action": st.sampled_from([*ACTIONS, "Copy"])},
    optional={name: JSON_VALUES for name in ("Partner", "Path", "Format", "Source", "Subject")},
)
JOB = st.fixed_dictionaries(
    {"Job": st.just("orders") | JSON_VALUES, "Queue": st.just("jobs") | JSON_VALUES},
    optional={
        "Actions": JSON_VALUES | st.fixed_dictionaries({"List": st.lists(ACTION, max_size=3)}),
        "Zone": st.sampled_from(["UTC", "Mars"]) | JSON_VALUES,
        "SequenceKey": st.sampled_from(["{accountId}", "{x"]) | JSON_VALUES,
    },
)


@given(JSON_VALUES | st.fixed_dictionaries({"Jobs": st.lists(JOB, max_size=3) | JSON_VALUES}))
@settings(max_examples=examples(300))
def test_whatever_the_file_holds_it_is_read_or_says_what_is_wrong(raw: Any) -> None:
    try:
        found = read_settings(json.dumps(raw))
        for job in found.jobs.jobs:
            plan_of(job, EVENT, None, found.unused)
    except RuleViolation as error:
        assert str(error)
