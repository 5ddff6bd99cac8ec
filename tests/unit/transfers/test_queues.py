"""Queues are data: the file that docflow ships, and what is wrong with another."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import workers.shared.worker_factory as building
from activities.transfers.operators_files import read_queues
from workers.shared.errors import SettingsError
from workers.transfers.register import TRANSFERS
from workers.transfers.settings import queues_of
from workflows.shared.errors import RuleViolation

SHIPPED = """
    jobs jobstmsroute jobstmsstatus jobtmscarrierpod jobsbylcppricing jobsbellusermanagement
    jobsbellsrs jobsbellpricegrid jobscalgary jobsdigitalml jobspunchcard jobtmsrateshop
    jobspostalmate jobhrvariancereport jobmonerisupdater jobstatfloklaviyo jobamazontax
    jobamzskulist
"""


def test_the_queues_that_are_shipped_are_those_of_the_system_that_docflow_replaces() -> None:
    queues = queues_of({})
    assert list(queues) == SHIPPED.split()
    assert queues["jobstmsroute"].handler == "FileJobHandler-TMSRoute"
    assert queues["jobs"].task_queue == "transfers-jobs"


def test_a_file_of_ones_own_takes_their_place(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(
        '# ours\n---\nqueues:\n- name: orders   # the big one\n  handler: "Ours"\n  slots: 7\n'
        "  rate_per_second: 2.5\n  priority: 1\n  description: 'it''s # ours'\n"
        "- {name: 123, handler: '10:30', rate_per_second: , description: of\n   two lines}\n"
    )
    queue, other = queues_of({"DOCFLOW_TRANSFERS_QUEUES": str(file)}).values()
    assert (queue.name, queue.handler, queue.slots) == ("orders", "Ours", 7)
    assert (queue.rate_per_second, queue.priority) == (2.5, 1)
    assert queue.description == "it's # ours"
    assert (other.name, other.handler, other.rate_per_second) == ("123", "10:30", None)
    assert other.description == "of two lines"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "first line"),
        ("jobs:\n", "line 1: jobs is not known; known are queues"),
        ("- queues\n", "first line"),
        ("queues:\n", "there is no queue"),
        ("queues:\n  name: a\n", "line 1: queues is not a list"),
        ("queues:\n- name: abc\n  handler: [a]\n", "only plain values"),
        ("queues:\n- name: abc\n  handler: x\n  slot: 3\n", "slot is not known"),
        ("queues:\n- name: abc\n  name: abd\n", "name is there twice"),
        ("queues:\n- name: abc\n", "handler"),
        ("queues:\n- name: Jobs\n  handler: x\n", "queue 1: name"),
        ("queues:\n- name: abc\n  handler: x\n  slots: 0\n", "queue 1: slots"),
        ("queues:\n- name: abc\n  handler: x\n- name: abc\n  handler: y\n", "two queues abc"),
        ('queues:\n- name: abc\n  handler: "x\n', "line 4: this is not YAML: found unexpected end"),
        ("queues:\n- name: abc\n\thandler: x\n", "line 3: this is not YAML"),
        ("queues: []\nqueues: []\n", "line 2: queues is there twice"),
        ("queues: jobs\n", "line 1: queues is not a list"),
        ("queues:\n- name: abc\n  handler: \x07\n", "this is not YAML"),
        ("queues: " + "[" * 5_000, "this is not YAML"),
    ],
)
def test_what_is_wrong_with_the_file_is_reported(text: str, said: str) -> None:
    with pytest.raises(RuleViolation, match=said):
        read_queues(text)


def test_a_file_that_is_missing_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="DOCFLOW_TRANSFERS_QUEUES"):
        queues_of({"DOCFLOW_TRANSFERS_QUEUES": str(tmp_path / "none.yaml")})


class Built:
    """What a lane's worker is built with."""

    def __init__(self, client: Any, **options: Any) -> None:
        self.options = options


class Anything:
    def __getattr__(self, name: str) -> Any:
        return Anything()


def test_each_queue_is_a_lane_with_its_slots_rate_and_workflows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(building, "Worker", Built)
    monkeypatch.setattr(building, "run_sweep", lambda *_: Anything())
    file = tmp_path / "queues.yaml"
    file.write_text(
        "queues:\n- name: abc\n  handler: x\n  slots: 7\n  rate_per_second: 2.5\n"
        "- name: def\n  handler: x\n"
    )
    build: Any = partial(
        building.build_lanes,
        Anything(),  # type: ignore[arg-type]
        TRANSFERS,
        Anything(),  # type: ignore[arg-type]
        Anything(),
        environment={"DOCFLOW_TRANSFERS_QUEUES": str(file)},
        shared=Anything(),  # type: ignore[arg-type]
    )
    monkeypatch.setattr(building, "activities_of", lambda *_: [])
    abc, other = build()
    assert abc.options["task_queue"] == "transfers-abc"
    assert abc.options["max_concurrent_activities"] == 7
    assert abc.options["max_task_queue_activities_per_second"] == 2.5
    names = {each.__name__ for each in abc.options["workflows"]}
    assert {"FileJob", "Outage", "NoticeDelivery"} <= names
    assert other.options["max_task_queue_activities_per_second"] is None
    [alone] = build(only="def")
    assert alone.options["task_queue"] == "transfers-def"
    # Polls for runs that begin and that are under way, as the SDK divides them; of many lanes
    # together they would be too many for the server.
    assert "workflow_task_poller_behavior" not in abc.options
    many = "".join(f"- name: abc{number}\n  handler: x\n" for number in range(5))
    file.write_text(f"queues:\n{many}")
    assert all("workflow_task_poller_behavior" in each.options for each in build())
