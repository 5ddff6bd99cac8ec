"""`docflow rejected list | show | resubmit`."""

import asyncio
import json
from pathlib import Path

from tests.support.cli import World
from workers.cli.errors import CommandError

GOOD = b'{"document_type":"mto_delete","project_id":"P1","task_id":"T1","service_id":"S1"}'
BAD = b'{"document_type":"mto_delete","project_id":"P1","task_id":"T1"}'


def a_world(*bodies: bytes, queue: str = "import-queue") -> World:
    async def record(world: World) -> None:
        for number, body in enumerate(bodies, 1):
            await world.rejected.record(
                queue, f"m{number}", "InvalidMessage", "service_id: Field required", body
            )

    world = World()
    asyncio.run(record(world))
    return world


def test_list_shows_the_newest_first() -> None:
    world = a_world(BAD, b"\xff\x1b[2J")
    lines = world.docflow("rejected", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["2", "1"]
    assert "service_id: Field required" in lines[3]
    rows = json.loads(world.docflow("rejected", "list", "--limit", "1", "--json").stdout)
    assert [(row["id"], row["message_id"]) for row in rows] == [(2, "m2")]
    assert World().docflow("rejected", "list").stdout == "no message was rejected\n"


def test_show_prints_a_hostile_body_without_letting_it_steer_the_terminal() -> None:
    world = a_world(b'{"x": "\x1b[2J\xe2\x80\xae[bold]"}\r\n')
    shown = world.docflow("rejected", "show", "1")
    assert r'{"x": "\x1b[2J\u202e[bold]"}' in shown.stdout
    assert "\x1b" not in shown.stdout
    as_json = world.docflow("rejected", "show", "1", "--json").stdout
    assert as_json.isascii() and json.loads(as_json)["body"].startswith('{"x": "\x1b')


def test_a_number_that_is_not_there() -> None:
    done = World().docflow("rejected", "show", "7")
    assert (done.exit_code, done.stderr) == (
        1,
        "docflow: there is no rejected message 7; `docflow rejected list` shows them\n",
    )


def test_a_message_that_is_valid_now_is_sent_as_it_was_under_a_new_id() -> None:
    world = a_world(GOOD)
    assert world.docflow("rejected", "resubmit", "1").exit_code == 0
    ((body, message_id),) = world.queue.sent
    assert body == GOOD and message_id.startswith("resubmitted-1-")
    again = world.docflow("rejected", "resubmit", "1")
    assert again.exit_code == 1 and "--force" in again.stderr
    assert world.docflow("rejected", "resubmit", "1", "--force").exit_code == 0
    assert len({message_id for _, message_id in world.queue.sent}) == 2


def test_a_message_that_would_be_rejected_again_wants_a_correction(tmp_path: Path) -> None:
    world = a_world(BAD)
    refused = world.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, world.queue.sent) == (1, [])
    says = "service_id: Field required; correct it and give it with --body FILE"
    assert says in refused.stderr
    corrected = tmp_path / "corrected.json"
    corrected.write_bytes(GOOD)
    done = world.docflow("rejected", "resubmit", "1", "--body", str(corrected))
    assert (done.exit_code, world.queue.sent[0][0]) == (0, GOOD)
    assert asyncio.run(world.rejected.list())[0].resubmitted_at is not None


def test_what_only_a_bridge_would_reject_wants_a_correction() -> None:
    world = a_world(GOOD.replace(b'"T1"', b'"T1","task_id":"T2"'))
    refused = world.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, world.queue.sent) == (1, [])
    assert "the field 'task_id' stands there twice" in refused.stderr


def test_what_was_cut_off_is_never_sent(tmp_path: Path) -> None:
    world = a_world(GOOD + b" " * 70_000)
    refused = world.docflow("rejected", "resubmit", "1", "--force")
    assert (refused.exit_code, world.queue.sent) == (2, [])
    assert "--body" in refused.stderr
    whole = tmp_path / "whole.json"
    whole.write_bytes(GOOD + b" " * 70_000)
    assert world.docflow("rejected", "resubmit", "1", "--body", str(whole)).exit_code == 0


def test_a_message_that_was_not_sent_is_not_marked() -> None:
    world = a_world(GOOD)
    world.queue.error = CommandError("cannot use the Service Bus queue")
    assert world.docflow("rejected", "resubmit", "1").exit_code == 1
    assert asyncio.run(world.rejected.list())[0].resubmitted_at is None


def test_a_message_goes_back_to_its_own_queue_only() -> None:
    world = a_world(GOOD, queue="other-queue")
    refused = world.docflow("rejected", "resubmit", "1")
    assert (refused.exit_code, world.queue.sent) == (1, [])
    assert "AZURE_SERVICE_BUS_QUEUE_NAME=other-queue" in refused.stderr
    world.environment["AZURE_SERVICE_BUS_QUEUE_NAME"] = "other-queue"
    assert world.docflow("rejected", "resubmit", "1").exit_code == 0
