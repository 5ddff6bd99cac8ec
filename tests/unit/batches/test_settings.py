"""Settings of batches are named when they are missing or make no sense."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import pytest

from adapters.aws.session import AwsSettings
from workers.batches.register import BATCHES
from workers.batches.settings import BatchSettings, read_timings
from workers.shared.errors import SettingsError
from workers.shared.process import run_bridge, run_worker
from workflows.batches.names import LONGEST_PREFIX, BatchPlan, Timings

TOPIC = "arn:aws:sns:eu-central-1:123456789012:documents"
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:database"
NEEDED: Mapping[str, str] = {
    "AWS_REGION": "eu-central-1",
    "DOCFLOW_BATCH_TOPIC_ARN": TOPIC,
    "DOCFLOW_BATCH_SOURCE_FUNCTION": "loader",
}


def test_few_settings_are_needed() -> None:
    settings = BatchSettings.read(NEEDED)
    assert settings.aws == AwsSettings("eu-central-1")
    assert settings.plan == BatchPlan(
        prefix="docflow",
        topic_arn=TOPIC,
        source_function="loader",
        static_permissions=True,
        leases=True,
        proof_by_timer=True,
    )
    assert settings.timings == Timings()
    assert settings.case_events_queue_url is None


def test_two_names_of_the_region_may_not_differ() -> None:
    same = NEEDED | {"AWS_DEFAULT_REGION": NEEDED["AWS_REGION"]}
    assert BatchSettings.read(same).aws == AwsSettings("eu-central-1")
    differs = "AWS_REGION and AWS_DEFAULT_REGION are both set, to different values"
    with pytest.raises(SettingsError, match=differs):
        BatchSettings.read(NEEDED | {"AWS_DEFAULT_REGION": "eu-west-1"})


def test_every_setting_is_read() -> None:
    settings = BatchSettings.read(
        {
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "token",
            "DOCFLOW_BATCH_PREFIX": "staging",
            "DOCFLOW_BATCH_TOPIC_ARN": TOPIC,
            "DOCFLOW_BATCH_SOURCE_FUNCTION": "loader",
            "DOCFLOW_BATCH_GRANTS": f"{SECRET}, {SECRET}2,",
            "DOCFLOW_BATCH_FUNCTION_ENVIRONMENT": '{"TEMPORAL_ADDRESS": "temporal:7233"}',
            "DOCFLOW_BATCH_FILTER_SCOPE": "MessageBody",
            "DOCFLOW_BATCH_MAX_RECEIVES": "5",
            "DOCFLOW_BATCH_CANARIES": "3",
            "DOCFLOW_BATCH_KMS_KEY": "alias/docflow",
            "DOCFLOW_BATCH_TAGS": '{"cost-centre": "4711"}',
            "DOCFLOW_BATCH_CONCURRENCY": "20",
            "DOCFLOW_CASE_EVENTS_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/1/case_events",
        }
    )
    assert settings.aws == AwsSettings(
        "eu-west-1", "http://127.0.0.1:4566", "key", "secret", "token"
    )
    assert settings.plan == BatchPlan(
        prefix="staging",
        topic_arn=TOPIC,
        source_function="loader",
        grants=(SECRET, f"{SECRET}2"),
        environment={"TEMPORAL_ADDRESS": "temporal:7233"},
        concurrency=20,
        max_receives=5,
        canaries=3,
        kms_key="alias/docflow",
        tags={"cost-centre": "4711"},
        filter_scope="MessageBody",
        static_permissions=True,
        leases=True,
        proof_by_timer=True,
    )
    assert settings.case_events_queue() == "https://sqs.eu-west-1.amazonaws.com/1/case_events"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DOCFLOW_BATCH_CANARIES", "0"),
        ("DOCFLOW_BATCH_KMS_KEY", "not a key"),
        ("DOCFLOW_BATCH_TAGS", '{"aws:owner": "me"}'),
        ("DOCFLOW_BATCH_TAGS", '{"docflow:workflow": "me"}'),
        ("DOCFLOW_BATCH_FUNCTION_ENVIRONMENT", '{"TEMPORAL_API_KEY": "not to be said"}'),
    ],
)
def test_what_no_batch_can_be_built_from_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name) as caught:
        BatchSettings.read({**NEEDED, name: value})
    assert "not to be said" not in str(caught.value)


def test_without_a_function_there_is_none_to_name() -> None:
    without = {**NEEDED, "DOCFLOW_BATCH_WITH_FUNCTION": "No"}
    del without["DOCFLOW_BATCH_SOURCE_FUNCTION"]
    assert BatchSettings.read(without).plan.with_function is False


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("left", [None, ""])
def test_a_missing_setting_is_named(name: str, left: str | None) -> None:
    without = {key: value for key, value in NEEDED.items() if key != name}
    with pytest.raises(SettingsError, match=f"^missing setting: {name};"):
        BatchSettings.read(without if left is None else {**without, name: left})


def test_a_case_events_queue_is_asked_for_by_those_who_receive_from_it() -> None:
    with pytest.raises(SettingsError, match="missing setting: DOCFLOW_CASE_EVENTS_QUEUE_URL"):
        BatchSettings.read(NEEDED).case_events_queue()


CASE_EVENTS = {
    **NEEDED,
    "DOCFLOW_CASE_EVENTS_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/1/case_events",
}


CASE_EVENT_BRIDGE, LOADER = (partial(run_bridge, bridge) for bridge in BATCHES.bridges)


@pytest.mark.parametrize(
    ("process", "settings", "missing"),
    [
        (partial(run_worker, ["batches"]), {"AWS_REGION": "x"}, "DOCFLOW_BATCH_TOPIC_ARN"),
        (
            partial(run_worker, ["batches"], with_bridge=True),
            NEEDED,
            "DOCFLOW_CASE_EVENTS_QUEUE_URL",
        ),
        (partial(run_worker, ["batches"]), NEEDED, "AZURE_STORAGE_CONNECTION_STRING"),
        (CASE_EVENT_BRIDGE, NEEDED, "DOCFLOW_CASE_EVENTS_QUEUE_URL"),
        (CASE_EVENT_BRIDGE, CASE_EVENTS, "AZURE_STORAGE_CONNECTION_STRING"),
        (LOADER, {}, "AWS_REGION"),
    ],
)
async def test_a_process_names_missing_settings_before_it_opens_anything(
    process: Callable[[Mapping[str, str]], Awaitable[object]],
    settings: Mapping[str, str],
    missing: str,
) -> None:
    with pytest.raises(SettingsError, match=f"^missing setting: {missing};"):
        await process(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ENDPOINT_URL", "127.0.0.1:4566"),
        ("AWS_ACCESS_KEY_ID", "hidden"),
        ("AWS_SECRET_ACCESS_KEY", "hidden"),
        ("DOCFLOW_BATCH_PREFIX", "-staging"),
        ("DOCFLOW_BATCH_PREFIX", "x" * (LONGEST_PREFIX + 1)),
        ("DOCFLOW_BATCH_TOPIC_ARN", "documents"),
        ("DOCFLOW_BATCH_SOURCE_FUNCTION", "f" * 141),
        ("DOCFLOW_BATCH_GRANTS", f"{SECRET},secret"),
        ("DOCFLOW_BATCH_GRANTS", ",".join([SECRET] * 17)),
        ("DOCFLOW_BATCH_FUNCTION_ENVIRONMENT", '{"KEY": "hidden"'),
        ("DOCFLOW_BATCH_FUNCTION_ENVIRONMENT", '["hidden"]'),
        ("DOCFLOW_BATCH_FUNCTION_ENVIRONMENT", '{"KEY": 3}'),
        ("DOCFLOW_BATCH_WITH_FUNCTION", "maybe"),
        ("DOCFLOW_BATCH_FILTER_SCOPE", "Both"),
        ("DOCFLOW_BATCH_MAX_RECEIVES", "0"),
        ("DOCFLOW_BATCH_CONCURRENCY", "1"),
    ],
)
def test_an_invalid_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name) as failure:
        BatchSettings.read({**NEEDED, name: value})
    assert "hidden" not in str(failure.value)


def test_the_former_name_of_the_queue_is_read_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = "https://sqs.eu-west-1.amazonaws.com/1/case_events"
    settings = BatchSettings.read({**NEEDED, "DOCFLOW_JOBS_QUEUE_URL": url})
    assert settings.case_events_queue() == url
    assert "DOCFLOW_JOBS_QUEUE_URL is now DOCFLOW_CASE_EVENTS_QUEUE_URL" in caplog.text


def test_two_names_of_the_queue_with_different_values_are_refused() -> None:
    urls = {name: f"https://sqs.eu-west-1.amazonaws.com/1/{name}" for name in ("old", "new")}
    with pytest.raises(SettingsError) as failure:
        BatchSettings.read(
            {
                **NEEDED,
                "DOCFLOW_JOBS_QUEUE_URL": urls["old"],
                "DOCFLOW_CASE_EVENTS_QUEUE_URL": urls["new"],
            }
        )
    assert failure.value.problems == (
        "DOCFLOW_CASE_EVENTS_QUEUE_URL and its former name DOCFLOW_JOBS_QUEUE_URL are both set, to "
        "different values; remove DOCFLOW_JOBS_QUEUE_URL",
    )


def test_two_names_of_the_queue_with_one_value_are_read_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = "https://sqs.eu-west-1.amazonaws.com/1/case_events"
    names = ("DOCFLOW_JOBS_QUEUE_URL", "DOCFLOW_CASE_EVENTS_QUEUE_URL")
    settings = BatchSettings.read({**NEEDED, **dict.fromkeys(names, url)})
    assert settings.case_events_queue() == url
    assert "DOCFLOW_JOBS_QUEUE_URL is now DOCFLOW_CASE_EVENTS_QUEUE_URL" in caplog.text


def test_a_case_events_queue_is_a_url() -> None:
    with pytest.raises(SettingsError, match="DOCFLOW_CASE_EVENTS_QUEUE_URL must be the URL"):
        BatchSettings.read({**NEEDED, "DOCFLOW_CASE_EVENTS_QUEUE_URL": "case_events"})


def test_a_wrong_value_is_reported_under_the_former_name_that_was_read() -> None:
    with pytest.raises(SettingsError) as failure:
        BatchSettings.read({**NEEDED, "DOCFLOW_JOBS_QUEUE_URL": "foo"})
    assert failure.value.problems == (
        "DOCFLOW_JOBS_QUEUE_URL (now DOCFLOW_CASE_EVENTS_QUEUE_URL) must be the URL of an SQS "
        "queue, not 'foo'",
    )


TIMES = {
    "DOCFLOW_BATCH_SETTLE_SECONDS": "settle",
    "DOCFLOW_BATCH_POLL_SECONDS": "poll",
    "DOCFLOW_BATCH_HOLD_SECONDS": "hold",
    "DOCFLOW_BATCH_MAX_REDRIVES": "max_redrives",
    "DOCFLOW_BATCH_GRACE_SECONDS": "grace",
    "DOCFLOW_BATCH_STUCK_AFTER_SECONDS": "stuck_after",
    "DOCFLOW_BATCH_DELIVERY_SECONDS": "delivery",
    "DOCFLOW_BATCH_END_SECONDS": "end",
    "DOCFLOW_BATCH_PATIENCE_SECONDS": "patience",
    "DOCFLOW_BATCH_SLOW_AFTER_SECONDS": "slow_after",
}


def test_every_time_can_be_set() -> None:
    assert set(TIMES.values()) == set(Timings.model_fields)
    environment = {name: str(number) for number, name in enumerate(TIMES, 1)}
    assert read_timings(environment) == Timings(
        **{field: number for number, field in enumerate(TIMES.values(), 1)}
    )


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("value", ["soon", "-1", str(31 * 24 * 3600)])
def test_a_time_out_of_range_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        BatchSettings.read({**NEEDED, name: value})


def test_a_poll_needs_a_pause() -> None:
    with pytest.raises(SettingsError, match="DOCFLOW_BATCH_POLL_SECONDS must be between 1"):
        read_timings({"DOCFLOW_BATCH_POLL_SECONDS": "0"})


def test_secrets_are_not_shown_with_the_settings() -> None:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden"}
    shown = BatchSettings.read({**NEEDED, **keys, "AWS_SESSION_TOKEN": "hidden"})
    assert "hidden" not in repr(shown)
