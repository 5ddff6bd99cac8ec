"""Processes and slots follow from processors, memory and connections."""

import re
from pathlib import Path

import pytest

from workers.batches.register import BATCHES
from workers.imports.register import IMPORTS
from workers.shared.errors import SettingsError
from workers.shared.machine import MB, Machine, Share, Slots, share_of, slots_of
from workers.shared.register import Pipeline
from workers.shared.settings.common import WorkerSettings
from workers.spreadsheets.register import SPREADSHEETS

PAGE = Path(__file__).parents[2] / "docs" / "processes.md"
SERVER = {"DATABASE_URL": "postgresql://db/docflow"}
LARGE = Machine(8, 16_384 * MB)


def connections(number: int) -> dict[str, str]:
    return {**SERVER, "DOCFLOW_DATABASE_CONNECTIONS": str(number)}


@pytest.mark.parametrize(
    ("machine", "environment", "processes"),
    [
        (Machine(1, 16_384 * MB), SERVER, 1),
        (Machine(2, 16_384 * MB), SERVER, 1),
        (LARGE, SERVER, 7),
        # A small container on a large machine.
        (Machine(16, 600 * MB), SERVER, 1),
        (Machine(16, 1_024 * MB), SERVER, 3),
        (LARGE, connections(12), 2),
        (LARGE, {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow"}, 1),
    ],
    ids=str,
)
def test_there_is_one_process_per_core_less_one_where_nothing_else_is_short(
    machine: Machine, environment: dict[str, str], processes: int
) -> None:
    assert share_of([IMPORTS], environment, of=machine).processes == processes


@pytest.mark.parametrize(
    ("environment", "asked", "each"),
    [
        (SERVER, 1, 20),
        (SERVER, 3, 6),
        (SERVER, 7, 5),
        (connections(30), 4, 7),
        ({"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow"}, 3, None),
    ],
    ids=str,
)
def test_the_connections_are_divided(
    environment: dict[str, str], asked: int, each: int | None
) -> None:
    share = share_of([IMPORTS], environment, asked, LARGE)
    assert (share.processes, share.connections) == (asked, each)


def test_more_processes_than_connections_allow_are_refused() -> None:
    reason = "DOCFLOW_DATABASE_CONNECTIONS is 7, and 4 processes need 8: 2 each"
    with pytest.raises(SettingsError, match=reason):
        share_of([IMPORTS], connections(7), 4, LARGE)


@pytest.mark.parametrize(
    ("share", "slots"),
    [
        (Share(1, 4_096 * MB, 20), Slots(4, 16)),
        (Share(1, 4_096 * MB, None), Slots(4, 16)),
        (Share(4, 300 * MB, 5), Slots(2, 10)),
        (Share(4, 4_096 * MB, 3), Slots(3, 6)),
        # Less than the process itself takes.
        (Share(1, 100 * MB, 20), Slots(1, 16)),
    ],
    ids=str,
)
def test_slots_are_what_memory_and_connections_allow(share: Share, slots: Slots) -> None:
    assert slots_of([IMPORTS], share)[IMPORTS.name] == slots


def test_pipelines_of_one_process_share_its_memory() -> None:
    share = Share(1, 416 * MB, 20)
    together = slots_of([IMPORTS, SPREADSHEETS], share)
    assert {each.activities for each in together.values()} == {2}
    assert slots_of([IMPORTS], share)[IMPORTS.name].activities == 4


def test_slots_can_be_set() -> None:
    named = {"DOCFLOW_ACTIVITY_SLOTS": "30", "DOCFLOW_LOCAL_SLOTS": "3"}
    slots = slots_of([IMPORTS], Share(4, 300 * MB, 5), WorkerSettings.read(named))
    assert slots == {IMPORTS.name: Slots(30, 3)}


def test_the_page_has_the_computed_table() -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\d+) \| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    assert len(rows) > 5
    for cores, gigabytes, name, *numbers in rows:
        assert numbers == [str(each) for each in _computed(int(cores), int(gigabytes), name)]


def _computed(cores: int, gigabytes: int, name: str) -> list[int]:
    pipelines: dict[str, Pipeline] = {each.name: each for each in (IMPORTS, SPREADSHEETS, BATCHES)}
    pipeline = pipelines[name]
    share = share_of([pipeline], SERVER, of=Machine(cores, gigabytes << 30))
    slots = slots_of([pipeline], share)[name]
    return [share.processes, share.connections or 0, slots.activities, slots.local]
