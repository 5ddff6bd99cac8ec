"""`docflow rejected list | show | resubmit`."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.cli_fakes import FakeInstallation
from workers.shared.services.errors import ServiceError

GOOD = b'{"document_type":"mto_delete","project_id":"P1","task_id":"T1","service_id":"S1"}'
BAD = b'{"document_type":"mto_delete","project_id":"P1","task_id":"T1"}'


def an_installation(*bodies: bytes, queue: str = "import-queue") -> FakeInstallation:
    async def record(installation: FakeInstallation) -> None:
        for number, body in enumerate(bodies, 1):
            await installation.rejected.record(
                queue, f"m{number}", "InvalidMessage", "service_id: Field required", body
            )

    installation = FakeInstallation()
    asyncio.run(record(installation))
    return installation


def test_list_shows_the_newest_first() -> None:
    installation = an_installation(BAD, b"\xff\x1b[2J")
    lines = installation.docflow("rejected", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["2", "1"]
    assert "service_id: Field required" in lines[3]
    rows = json.loads(installation.docflow("rejected", "list", "--limit", "1", "--json").stdout)
    assert [(row["id"], row["message_id"]) for row in rows] == [(2, "m2")]
    assert FakeInstallation().docflow("rejected", "list").stdout == "no message was rejected\n"


def test_show_prints_a_hostile_body_without_letting_it_steer_the_terminal() -> None:
    installation = an_installation(b'{"x": "\x1b[2J\xe2\x80\xae[bold]"}\r\n')
    shown = installation.docflow("rejected", "show", "1")
    assert r'{"x": "\x1b[2J\u202e[bold]"}' in shown.stdout
    assert "\x1b" not in shown.stdout
    as_json = installation.docflow("rejected", "show", "1", "--json").stdout
    assert as_json.isascii() and json.loads(as_json)["body"].startswith('{"x": "\x1b')


def test_a_number_that_is_not_there() -> None:
    done = FakeInstallation().docflow("rejected", "show", "7")
    assert (done.exit_code, done.stderr) == (
        1,
        "docflow: there is no rejected message 7; `docflow rejected list` shows them\n",
    )


def test_a_message_that_is_valid_now_is_sent_as_it_was_under_a_new_id() -> None:
    installation = an_installation(GOOD)
    assert installation.docflow("rejected", "resubmit", "1").exit_code == 0
    ((body, message_id),) = installation.queue.sent
    assert body == GOOD and message_id.startswith("resubmitted-1-")
    again = installation.docflow("rejected", "resubmit", "1")
    assert again.exit_code == 1 and "--force" in again.stderr
    assert installation.docflow("rejected", "resubmit", "1", "--force").exit_code == 0
    assert len({message_id for _, message_id in installation.queue.sent}) == 2


def test_a_message_that_would_be_rejected_again_wants_a_correction(tmp_path: Path) -> None:
    installation = an_installation(BAD)
    refused = installation.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, installation.queue.sent) == (1, [])
    says = "service_id: Field required; correct it and give it with --body FILE"
    assert says in refused.stderr
    corrected = tmp_path / "corrected.json"
    corrected.write_bytes(GOOD)
    done = installation.docflow("rejected", "resubmit", "1", "--body", str(corrected))
    assert (done.exit_code, installation.queue.sent[0][0]) == (0, GOOD)
    assert asyncio.run(installation.rejected.list())[0].resubmitted_at is not None


def test_a_message_whose_key_another_has_wants_a_key_of_its_own(tmp_path: Path) -> None:
    installation = FakeInstallation()
    record = installation.rejected.record("import-queue", "m1", "KeyReused", "not used", GOOD)
    asyncio.run(record)
    other = tmp_path / "other.json"
    for content in (GOOD, GOOD.replace(b'"S1"', b'"S2"')):
        other.write_bytes(content)
        refused = installation.docflow("rejected", "resubmit", "1", "--body", str(other))
        assert (refused.exit_code, installation.queue.sent) == (1, [])
        assert "import/P1/T1 is the run of a message with other content" in refused.stderr
        assert "--body FILE, or add --force when that run was terminated" in refused.stderr
    assert installation.docflow("rejected", "resubmit", "1").exit_code == 1
    assert installation.docflow("rejected", "resubmit", "1", "--force").exit_code == 0


def test_a_new_key_needs_no_force(tmp_path: Path) -> None:
    installation = FakeInstallation()
    record = installation.rejected.record("import-queue", "m1", "KeyReused", "not used", GOOD)
    asyncio.run(record)
    other = tmp_path / "other.json"
    other.write_bytes(GOOD.replace(b'"T1"', b'"T2"'))
    done = installation.docflow("rejected", "resubmit", "1", "--body", str(other))
    assert (done.exit_code, len(installation.queue.sent)) == (0, 1)


def test_what_only_a_bridge_would_reject_wants_a_correction() -> None:
    installation = an_installation(GOOD.replace(b'"T1"', b'"T1","task_id":"T2"'))
    refused = installation.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, installation.queue.sent) == (1, [])
    assert "the field 'task_id' appears twice" in refused.stderr


def test_what_was_cut_off_is_never_sent(tmp_path: Path) -> None:
    installation = an_installation(GOOD + b" " * 70_000)
    refused = installation.docflow("rejected", "resubmit", "1", "--force")
    assert (refused.exit_code, installation.queue.sent) == (2, [])
    assert "--body" in refused.stderr
    whole = tmp_path / "whole.json"
    whole.write_bytes(GOOD + b" " * 70_000)
    assert installation.docflow("rejected", "resubmit", "1", "--body", str(whole)).exit_code == 0


def test_a_message_that_was_not_sent_is_not_marked() -> None:
    installation = an_installation(GOOD)
    installation.queue.error = ServiceError("cannot use the Service Bus queue")
    assert installation.docflow("rejected", "resubmit", "1").exit_code == 1
    assert asyncio.run(installation.rejected.list())[0].resubmitted_at is None


def test_a_message_goes_back_to_its_own_queue_only() -> None:
    installation = an_installation(GOOD, queue="other-queue")
    refused = installation.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, installation.queue.sent) == (2, [])
    assert "no setting names queue 'other-queue'" in refused.stderr
    assert "AZURE_SERVICE_BUS_QUEUE_NAME is 'import-queue'" in refused.stderr
    assert "DOCFLOW_CASE_EVENTS_QUEUE_URL is not set" in refused.stderr
    installation.environment["AZURE_SERVICE_BUS_QUEUE_NAME"] = "other-queue"
    assert installation.docflow("rejected", "resubmit", "1").exit_code == 0


def test_a_document_of_a_batch_is_sent_by_its_publisher() -> None:
    installation = an_installation(b"{", queue="site_doc_loader_7_3")
    installation.environment["DOCFLOW_BATCH_PREFIX"] = "site"
    refused = installation.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, installation.queue.sent) == (2, [])
    assert "docflow sends no messages to queue 'site_doc_loader_7_3'" in refused.stderr
    assert "docflow batches redrive CASE BATCH" in refused.stderr


@pytest.mark.parametrize("setting", ["DOCFLOW_CASE_EVENTS_QUEUE_URL", "DOCFLOW_JOBS_QUEUE_URL"])
@pytest.mark.parametrize("options", [[], ["--force"]])
def test_a_case_event_is_not_sent_as_an_import(setting: str, options: list[str]) -> None:
    event = b'{"eventType":"JOB_STARTED","caseId":7}'
    installation = an_installation(event, queue="docflow_case_events")
    # An installation of batches alone has no Service Bus.
    del installation.environment["AZURE_SERVICE_BUS_CONNECTION_STRING"]
    installation.environment[setting] = "http://sqs:4566/000000000000/docflow_case_events"
    refused = installation.docflow("rejected", "resubmit", "1", *options)
    assert (refused.exit_code, installation.queue.sent) == (2, [])
    assert refused.stderr.startswith("docflow: docflow sends no messages to queue 'docflow_case_")
    assert "docflow batches start | finish | end | cancel | redrive" in refused.stderr
    assert "AZURE" not in refused.stderr and "document_type" not in refused.stderr


@pytest.mark.parametrize("queue", ["events-in", "fileevents"])
def test_an_event_of_a_transfer_is_sent_by_its_sender(queue: str) -> None:
    installation = an_installation(b"{", queue=queue)
    installation.environment["DOCFLOW_TRANSFERS_INTAKE_QUEUE"] = "events-in"
    refused = installation.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, installation.queue.sent) == (2, [])
    assert f"docflow sends no messages to queue {queue!r}" in refused.stderr
    assert "docflow submit transfers FILE" in refused.stderr


def test_wrong_settings_of_another_queue_are_reported_and_prevent_nothing(tmp_path: Path) -> None:
    installation = an_installation(GOOD)
    installation.environment["DOCFLOW_TRANSFERS_QUEUES"] = str(tmp_path / "queues.yaml")
    for _ in range(2):
        done = installation.docflow("rejected", "resubmit", "1", "--force")
        assert done.exit_code == 0
        assert "whether queue 'import-queue' is one of bridge storage-queues is not known: DOC" in (
            done.stderr
        )
        (tmp_path / "queues.yaml").write_text("queues: 7\n")
    assert [body for body, _ in installation.queue.sent] == [GOOD, GOOD]


def test_wrong_settings_are_reported_where_no_queue_is_found(tmp_path: Path) -> None:
    installation = an_installation(GOOD, queue="orders")
    installation.environment["DOCFLOW_TRANSFERS_QUEUES"] = str(tmp_path / "queues.yaml")
    refused = installation.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, installation.queue.sent) == (2, [])
    assert "no setting names queue 'orders'" in refused.stderr
    assert "DOCFLOW_TRANSFERS_QUEUES: " in refused.stderr


def test_of_two_queues_with_one_name_a_person_says_which() -> None:
    # One is a queue of Service Bus, the other one a storage queue.
    installation = an_installation(b"{}", queue="jobs")
    enabled = {
        "AZURE_SERVICE_BUS_QUEUE_NAME": "jobs",
        "DOCFLOW_JOBS_QUEUE": "others",
        "DOCFLOW_TRANSFERS_SETTINGS": "jobsettings.json",
    }
    installation.environment.update(enabled)
    refused = installation.docflow("rejected", "resubmit", "1", "--force")
    assert (refused.exit_code, installation.queue.sent) == (2, [])
    assert "bridges service-bus and storage-queues both receive from a queue named 'jobs'" in (
        refused.stderr
    )
    unsent = installation.docflow("rejected", "resubmit", "1", "--bridge", "storage-queues")
    assert (unsent.exit_code, installation.queue.sent) == (2, [])
    assert "docflow submit transfers FILE" in unsent.stderr
    unknown = installation.docflow("rejected", "resubmit", "1", "--bridge", "event-hubs")
    assert unknown.exit_code == 2 and "these do: service-bus, " in unknown.stderr
    elsewhere = installation.docflow("rejected", "resubmit", "1", "--bridge", "event-hub")
    assert elsewhere.exit_code == 2 and "no setting names queue 'jobs'" in elsewhere.stderr
    sent = installation.docflow("rejected", "resubmit", "1", "--force", "--bridge", "service-bus")
    assert (sent.exit_code, [body for body, _ in installation.queue.sent]) == (0, [b"{}"])


def test_a_queue_of_a_pipeline_that_is_not_enabled_is_left_out_and_named() -> None:
    installation = an_installation(GOOD, queue="jobs")
    named = {"AZURE_SERVICE_BUS_QUEUE_NAME": "jobs", "DOCFLOW_JOBS_QUEUE": "others"}
    installation.environment.update(named)
    done = installation.docflow("rejected", "resubmit", "1")
    assert (done.exit_code, len(installation.queue.sent)) == (0, 1)
    assert "bridge storage-queues has a queue 'jobs' too, and was left out" in done.stderr
    assert "DOCFLOW_TRANSFERS_SETTINGS is not set" in done.stderr
