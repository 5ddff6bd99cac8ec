"""The page about capacity: what a document of each pipeline asks of Temporal, and what follows.

`python -m benchmarks.capacity > docs/capacity.md` writes it, and a test compares the two. Events,
actions and bytes are counted in recorded histories; processor times are those of
docs/benchmarks.md.
"""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.client import WorkflowHistory

ROOT: Final = Path(__file__).parents[1]
HISTORIES: Final = ROOT / "tests" / "replay" / "histories"
BENCHMARKS: Final = ROOT / "docs" / "benchmarks.md"
MILLION: Final = 1_000_000
_DAY: Final = 24 * 3600
_COSTS: Final = re.compile(
    r"document costs ([\d.]+) ms of CPU: ([\d.]+) in the worker, "
    r"([\d.]+) in the Temporal server, ([\d.]+) in PostgreSQL"
)
_EACH: Final = (
    "WORKFLOW_EXECUTION_STARTED",
    "ACTIVITY_TASK_SCHEDULED",
    "TIMER_STARTED",
    "WORKFLOW_EXECUTION_SIGNALED",
    "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
    "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
)
"""Events of which each is an action of Temporal Cloud."""
_VERSION: Final = "TemporalChangeVersion"
"""An attribute whose change is none."""
_LOCAL: Final = "core_local_activity"


@dataclass(frozen=True)
class Unit:
    """What comes in once, and the recorded runs that it makes."""

    title: str
    histories: Sequence[str]
    """WORKFLOW/CASE, as often as there are runs of it."""


UNITS: Final = (
    Unit("imports: a small document", ("DocumentImport/done-by-the-first-step",)),
    Unit("imports: a large document", ("DocumentImport/plain-remote",)),
    Unit("spreadsheets: an import that asks no questions", ("SpreadsheetImport/straight-through",)),
    Unit(
        "spreadsheets: one with five answers of people", ("SpreadsheetImport/answered-by-updates",)
    ),
    Unit("batches: a document of a batch", ("DocumentLoad/loaded",)),
    Unit("batches: a batch, without its documents", ("BatchLifecycle/happy",)),
    Unit(
        "jobs: a job of two stages with three tasks each",
        ("Job/happy", "Stage/small", "Stage/small"),
    ),
    Unit("transfers: an event and its job", ("FileEvent/happy", "FileJob/happy")),
)


@dataclass(frozen=True)
class Counted:
    """What some runs ask of Temporal."""

    events: int = 0
    actions: int = 0
    bytes: int = 0
    """Of history, as the server stores it."""

    def __add__(self, other: "Counted") -> "Counted":
        """Both together."""
        return Counted(
            self.events + other.events, self.actions + other.actions, self.bytes + other.bytes
        )


@dataclass(frozen=True)
class Costs:
    """Processor time of a small document of imports, in milliseconds."""

    worker: float
    temporal: float
    postgresql: float


def counted(history: str) -> Counted:
    """What one recorded run asked for.

    Source: https://docs.temporal.io/cloud/actions

    Args:
        history: WORKFLOW/CASE.
    """
    recorded = json.loads((HISTORIES / f"{history}.json").read_text())
    events = recorded["events"]
    kinds = Counter(each["eventType"].removeprefix("EVENT_TYPE_") for each in events)
    local = {
        marker["workflowTaskCompletedEventId"]
        for each in events
        if (marker := each.get("markerRecordedEventAttributes")) is not None
        and marker["markerName"] == _LOCAL
    }
    free = sum(
        _VERSION in json.dumps(each.get("upsertWorkflowSearchAttributesEventAttributes"))
        for each in events
    )
    return Counted(
        events=len(events),
        # Short steps of one workflow task are one action together.
        actions=sum(kinds[each] for each in _EACH) - free + len(local),
        bytes=sum(each.ByteSize() for each in WorkflowHistory.from_json("run", recorded).events),
    )


def of_unit(unit: Unit) -> Counted:
    """What all runs of a unit ask for."""
    return sum(map(counted, unit.histories), Counted())


def costs() -> Costs:
    """What docs/benchmarks.md measured.

    Raises:
        ValueError: The page says it in other words.
    """
    found = _COSTS.search(" ".join(BENCHMARKS.read_text().split()))
    if found is None:
        raise ValueError(f"{BENCHMARKS} no longer says what a document costs: see `_COSTS`")
    return Costs(*map(float, found.groups()[1:]))


def page() -> str:
    """The whole page; the same for the same histories and benchmarks."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    for unit in UNITS:
        found = of_unit(unit)
        numbers = f"{found.events} | {found.actions} | {found.bytes:,}"
        yield f"| {unit.title} | {len(unit.histories)} | {numbers} |"
    yield _OF_A_DAY
    for unit in UNITS:
        found = of_unit(unit)
        yield f"| {unit.title} | {' | '.join(_of_a_day(found))} |"
    known = costs()
    yield _CORES.format(known.worker, known.temporal, known.postgresql)
    for millions in (1, 10, 100):
        rate = millions * MILLION / _DAY
        needed = (rate * each / 1_000 for each in (known.worker, known.temporal, known.postgresql))
        cells = " | ".join(f"{each:.1f}" for each in needed)
        yield f"| {millions} million | {rate:,.0f} | {cells} | {_processes(rate, known)} |"
    yield _BREAKS.format(
        worker=_day_of_a_core(known.worker),
        temporal=_day_of_a_core(known.temporal),
        postgresql=_day_of_a_core(known.postgresql),
    )


def _of_a_day(found: Counted) -> Iterator[str]:
    for millions in (1, 10, 100):
        actions = millions * MILLION * found.actions / _DAY
        gigabytes = millions * MILLION * found.bytes / 1e9
        yield f"{actions:,.0f} / {gigabytes:,.0f}"


def _processes(rate: float, known: Costs) -> int:
    """Processes of workers, none of them busier than three quarters of a core."""
    return math.ceil(rate * known.worker / 750)


def _day_of_a_core(milliseconds: float) -> str:
    return f"{_DAY * 1_000 / milliseconds / MILLION:.1f}"


_HEAD: Final = """\
# Capacity

Generated by `python -m benchmarks.capacity`; a test compares the two. Events, actions and bytes are
counted in the histories that every release replays (`tests/replay/histories`); processor times are
those of [the benchmarks](benchmarks.md).

## What a document asks of Temporal

Actions are what Temporal Cloud bills: a start, an activity, a timer, a signal, an update, a change
of search attributes, and all short steps of one workflow task together. Heartbeats, retries,
queries and fairness are not counted. Bytes are those of events, which Temporal stores until the
retention of the namespace is over; the inputs of recorded runs are small.

| what | runs | events | actions | bytes |
|---|---:|---:|---:|---:|"""
_OF_A_DAY: Final = """
## What a day asks of Temporal

Actions a second on average, and GB of history a day:

| what | 1 million a day | 10 million | 100 million |
|---|---:|---:|---:|"""
_CORES: Final = """
## Cores

A small document of imports takes {0:g} ms of a worker's core, {1:g} ms of Temporal's development
server and {2:g} ms of PostgreSQL, all on one machine. The processor time of documents of the other
pipelines has not been measured. On average over the day; a peak of three times the average needs
three times as much. A process of a worker is planned as busy for three quarters of a core.

| documents a day | a second | cores of workers | of Temporal | of PostgreSQL | processes |
|---|---:|---:|---:|---:|---:|"""
_BREAKS: Final = """
## Which part breaks first

A core carries {worker} million small documents a day as a worker, {temporal} million as Temporal's
server and {postgresql} million as PostgreSQL. So, in this order:

1. **The worker**, which [more workers](processes.md) and more machines relieve: they share
   nothing but Temporal and the database.
2. **Temporal.** The development server is one process over SQLite. Beyond some millions of
   documents a day it takes a cluster, or Temporal Cloud, whose namespaces have a limit of actions
   a second; what these carry has not been measured here. The retention of the namespace decides
   how many days of history are stored.
3. **PostgreSQL**, by what it stores rather than by its processor: a status row of every import,
   beside the rows themselves.
"""


if __name__ == "__main__":
    sys.stdout.write(page())
