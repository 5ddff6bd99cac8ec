"""Rejected messages that a worker sends to their queue again."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.cli_fakes import FakeInstallation
from workers.shared.services.errors import ServiceError
from workers.shared.services.queue_errands import send_again

GOOD = b'{"document_type":"mto_delete","project_id":"P1","task_id":"T1","service_id":"S1"}'
BAD = b'{"document_type":"mto_delete","project_id":"P1","task_id":"T1"}'


def an_installation(
    *bodies: bytes, queue: str = "import-queue", reason: str = "InvalidMessage"
) -> FakeInstallation:
    async def record(installation: FakeInstallation) -> None:
        for number, body in enumerate(bodies, 1):
            why = "service_id: Field required"
            await installation.rejected.record(queue, f"m{number}", reason, why, body)

    installation = FakeInstallation()
    asyncio.run(record(installation))
    return installation


def resubmit(installation: FakeInstallation, **given: Any) -> list[str]:
    """Have a worker send the first message again; what it remarks."""
    context: Any = SimpleNamespace(
        environment=installation.environment,
        resources=SimpleNamespace(rejected=installation.rejected),
    )
    with installation.reached():
        return asyncio.run(send_again(context, None, {"number": 1, **given}, "ada"))


def refused(installation: FakeInstallation, **given: Any) -> str:
    """Why a worker does not send it; nothing is sent."""
    before = len(installation.queue.sent)
    with pytest.raises(ServiceError) as error:
        resubmit(installation, **given)
    assert len(installation.queue.sent) == before
    return str(error.value)


def sent(installation: FakeInstallation) -> list[bytes]:
    return [body for body, _ in installation.queue.sent]


def test_a_message_that_is_valid_now_is_sent_as_it_was_under_a_new_id() -> None:
    installation = an_installation(GOOD)
    assert resubmit(installation) == []
    ((body, message_id),) = installation.queue.sent
    assert body == GOOD and message_id.startswith("resubmitted-1-")
    assert "set `force`" in refused(installation)
    resubmit(installation, force=True)
    assert len({message_id for _, message_id in installation.queue.sent}) == 2


def test_a_message_that_would_be_rejected_again_wants_a_correction() -> None:
    installation = an_installation(BAD)
    says = "service_id: Field required; correct it and give it with `body`"
    assert says in refused(installation)
    resubmit(installation, body=GOOD.decode())
    assert sent(installation) == [GOOD]
    assert asyncio.run(installation.rejected.list())[0].resubmitted_at is not None


def test_a_message_whose_key_another_has_wants_a_key_of_its_own() -> None:
    installation = an_installation(GOOD, reason="KeyReused")
    for content in (GOOD, GOOD.replace(b'"S1"', b'"S2"')):
        says = refused(installation, body=content.decode())
        assert "import/P1/T1 is the run of a message with other content" in says
        assert "`body`, or set `force` when that run was terminated" in says
    refused(installation)
    resubmit(installation, body=GOOD.replace(b'"T1"', b'"T2"').decode())
    resubmit(installation, force=True)


def test_what_only_a_bridge_would_reject_wants_a_correction() -> None:
    installation = an_installation(GOOD.replace(b'"T1"', b'"T1","task_id":"T2"'))
    assert "the field 'task_id' appears twice" in refused(installation)


def test_what_was_cut_off_is_never_sent() -> None:
    installation = an_installation(GOOD + b" " * 70_000)
    assert "only the beginning" in refused(installation, force=True)
    resubmit(installation, body=GOOD.decode() + " " * 70_000)


def test_a_message_that_was_not_sent_is_not_marked() -> None:
    installation = an_installation(GOOD)
    installation.queue.error = ServiceError("cannot use the Service Bus queue")
    refused(installation)
    assert asyncio.run(installation.rejected.list())[0].resubmitted_at is None


def test_a_message_goes_back_to_its_own_queue_only() -> None:
    installation = an_installation(GOOD, queue="other-queue")
    says = refused(installation)
    assert "no setting names queue 'other-queue'" in says
    assert "AZURE_SERVICE_BUS_QUEUE_NAME is 'import-queue'" in says
    assert "DOCFLOW_CASE_EVENTS_QUEUE_URL is not set" in says
    installation.environment["AZURE_SERVICE_BUS_QUEUE_NAME"] = "other-queue"
    resubmit(installation)


def test_a_document_of_a_batch_is_sent_by_its_publisher() -> None:
    installation = an_installation(b"{", queue="site_doc_loader_7_3")
    installation.environment["DOCFLOW_BATCH_PREFIX"] = "site"
    says = refused(installation)
    assert "docflow sends no messages to queue 'site_doc_loader_7_3'" in says
    assert "docflow batch redrive CASE/BATCH" in says


@pytest.mark.parametrize("setting", ["DOCFLOW_CASE_EVENTS_QUEUE_URL", "DOCFLOW_JOBS_QUEUE_URL"])
@pytest.mark.parametrize("force", [False, True])
def test_a_case_event_is_not_sent_as_an_import(setting: str, force: bool) -> None:
    event = b'{"eventType":"JOB_STARTED","caseId":7}'
    installation = an_installation(event, queue="docflow_case_events")
    # An installation of batches alone has no Service Bus.
    del installation.environment["AZURE_SERVICE_BUS_CONNECTION_STRING"]
    installation.environment[setting] = "http://sqs:4566/000000000000/docflow_case_events"
    says = refused(installation, force=force)
    assert says.startswith("docflow sends no messages to queue 'docflow_case_")
    assert "docflow batch start | finish | end | cancel | redrive" in says
    assert "AZURE" not in says and "document_type" not in says


@pytest.mark.parametrize("queue", ["events-in", "fileevents"])
def test_an_event_of_a_transfer_is_sent_by_its_sender(queue: str) -> None:
    installation = an_installation(b"{", queue=queue)
    installation.environment["DOCFLOW_TRANSFERS_INTAKE_QUEUE"] = "events-in"
    says = refused(installation)
    assert f"docflow sends no messages to queue {queue!r}" in says
    assert "docflow transfer send FILE" in says


def test_wrong_settings_of_another_queue_are_reported_and_prevent_nothing(tmp_path: Path) -> None:
    installation = an_installation(GOOD)
    installation.environment["DOCFLOW_TRANSFERS_QUEUES"] = str(tmp_path / "queues.yaml")
    for _ in range(2):
        (remark,) = resubmit(installation, force=True)
        says = "whether queue 'import-queue' is one of bridge storage-queues is not known: DOC"
        assert says in remark
        (tmp_path / "queues.yaml").write_text("queues: 7\n")
    assert sent(installation) == [GOOD, GOOD]


def test_wrong_settings_are_reported_where_no_queue_is_found(tmp_path: Path) -> None:
    installation = an_installation(GOOD, queue="orders")
    installation.environment["DOCFLOW_TRANSFERS_QUEUES"] = str(tmp_path / "queues.yaml")
    says = refused(installation)
    assert "no setting names queue 'orders'" in says
    assert "DOCFLOW_TRANSFERS_QUEUES: " in says


def test_of_two_queues_with_one_name_a_person_says_which() -> None:
    # One is a queue of Service Bus, the other one a storage queue.
    installation = an_installation(b"{}", queue="jobs")
    enabled = {
        "AZURE_SERVICE_BUS_QUEUE_NAME": "jobs",
        "DOCFLOW_JOBS_QUEUE": "others",
        "DOCFLOW_TRANSFERS_SETTINGS": "jobsettings.json",
    }
    installation.environment.update(enabled)
    says = "bridges service-bus and storage-queues both receive from a queue named 'jobs'"
    assert says in refused(installation, force=True)
    assert "docflow transfer send FILE" in refused(installation, bridge="storage-queues")
    assert "these do: service-bus, " in refused(installation, bridge="event-hubs")
    assert "no setting names queue 'jobs'" in refused(installation, bridge="event-hub")
    resubmit(installation, force=True, bridge="service-bus")
    assert sent(installation) == [b"{}"]


def test_a_queue_of_a_pipeline_that_is_not_enabled_is_left_out_and_named() -> None:
    installation = an_installation(GOOD, queue="jobs")
    named = {"AZURE_SERVICE_BUS_QUEUE_NAME": "jobs", "DOCFLOW_JOBS_QUEUE": "others"}
    installation.environment.update(named)
    (remark,) = resubmit(installation)
    assert sent(installation) == [GOOD]
    assert "bridge storage-queues has a queue 'jobs' too, and was left out" in remark
    assert "DOCFLOW_TRANSFERS_SETTINGS is not set" in remark
