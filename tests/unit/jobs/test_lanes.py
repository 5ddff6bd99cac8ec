"""Each lane has a task queue and slots of its own."""

from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.worker import ResourceBasedSlotConfig
from typer.testing import CliRunner

from tests.unit.test_catalogue import OWN
from workers.jobs.register import JOBS
from workers.jobs.settings import JobSettings
from workers.shared import worker_factory
from workers.shared.cli.app import build_app
from workflows.jobs.definitions import Lane


class Built:
    """Stands for the SDK's worker: what it was built with."""

    def __init__(self, client: Any, **options: Any) -> None:
        self.queue, self.slots = options["task_queue"], options.get("max_concurrent_activities")
        self.tuner = options.get("tuner")
        self.activities = [each.__name__ for each in options["activities"]]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(worker_factory, "Worker", Built)

    @dataclass
    class Own:
        light_slots, heavy_slots, ports = 7, 2, OWN[JOBS].ports
        light_tuned: bool = False

    def build(only: str | None = None, tuned: bool = False, **options: Any) -> Any:
        return worker_factory.build_lanes(None, JOBS, None, Own(tuned), only, **options)  # type: ignore[arg-type]

    return build


def test_every_lane_of_a_stage_is_served(built: Any) -> None:
    served = {JOBS.task_queue, *(worker.queue for worker in built())}
    assert served == {lane.value for lane in Lane}


def test_lanes_do_tasks_alone_in_slots_of_their_own(built: Any) -> None:
    light, heavy = built()
    assert (light.slots, heavy.slots) == (7, 2)
    assert light.activities == heavy.activities == ["run_tasks"]


def test_light_slots_can_follow_memory_and_processor(built: Any) -> None:
    light, heavy = built(tuned=True)
    assert (light.slots, heavy.slots) == (None, 2)
    tuned = light.tuner._get_activity_task_slot_supplier()
    assert tuned.slot_config == ResourceBasedSlotConfig(minimum_slots=1, maximum_slots=7)
    assert tuned.tuner_config.target_memory_usage == tuned.tuner_config.target_cpu_usage == 0.8
    assert not JobSettings.read({}).light_tuned
    assert JobSettings.read({"DOCFLOW_JOBS_LIGHT_TUNED": "true"}).light_tuned


def test_one_lane_may_be_served_alone(built: Any) -> None:
    [heavy] = built("heavy")
    assert heavy.queue == Lane.HEAVY.value


def test_a_lane_that_does_not_exist_is_refused() -> None:
    done = CliRunner().invoke(build_app(), ["worker", "jobs", "--queue", "fast"])
    assert done.exit_code == 2
    assert "--queue: 'fast' is none of light, heavy" in done.output


def test_heavy_slots_follow_the_processors_unless_they_are_set() -> None:
    assert JobSettings.read({}).heavy >= 1
    assert JobSettings.read({"DOCFLOW_JOBS_HEAVY_SLOTS": "3"}).heavy == 3
