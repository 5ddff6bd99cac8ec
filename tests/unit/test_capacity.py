"""What a worker does at once follows from memory and connections."""

import re
from pathlib import Path

import pytest

from workers.batches.register import BATCHES
from workers.imports.register import IMPORTS
from workers.shared.machine import MB, Slots, slots_of
from workers.shared.register import Pipeline
from workers.shared.settings.common import WorkerSettings
from workers.spreadsheets.register import SPREADSHEETS

PAGE = Path(__file__).parents[2] / "docs" / "processes.md"
COMPUTED = WorkerSettings.read({})


@pytest.mark.parametrize(
    ("memory", "connections", "slots"),
    [
        (4_096 * MB, 20, Slots(4, 16)),
        (300 * MB, 5, Slots(2, 10)),
        (4_096 * MB, 3, Slots(3, 6)),
        # Less than the process itself takes.
        (100 * MB, 20, Slots(1, 16)),
    ],
)
def test_slots_are_what_memory_and_connections_allow(
    memory: int, connections: int, slots: Slots
) -> None:
    assert slots_of([IMPORTS], connections, COMPUTED, memory) == {IMPORTS.name: slots}


def test_pipelines_of_one_worker_share_its_memory() -> None:
    together = slots_of([IMPORTS, SPREADSHEETS], 20, COMPUTED, 416 * MB)
    assert {each.activities for each in together.values()} == {2}
    assert slots_of([IMPORTS], 20, COMPUTED, 416 * MB)[IMPORTS.name].activities == 4


def test_slots_can_be_set() -> None:
    named = {"DOCFLOW_ACTIVITY_SLOTS": "30", "DOCFLOW_LOCAL_SLOTS": "3"}
    slots = slots_of([IMPORTS], 5, WorkerSettings.read(named), 300 * MB)
    assert slots == {IMPORTS.name: Slots(30, 3)}


def test_the_page_has_the_computed_table() -> None:
    rows = re.findall(
        r"^\| (\d+) MB \| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert len(rows) > 5
    pipelines: dict[str, Pipeline] = {each.name: each for each in (IMPORTS, SPREADSHEETS, BATCHES)}
    for megabytes, name, connections, *numbers in rows:
        slots = slots_of([pipelines[name]], int(connections), COMPUTED, int(megabytes) * MB)[name]
        assert numbers == [str(slots.activities), str(slots.local)]
