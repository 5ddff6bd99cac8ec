"""How many processes a worker has, and how much each of them does at once.

Everything follows from processors, memory and connections to the database, and is fixed when the
worker starts: docs/processes.md has the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from workers import machine
from workers.pipelines.base import Pipeline
from workers.settings.database import DatabaseSettings
from workers.settings.errors import SettingsError
from workers.settings.worker import CONNECTIONS, WorkerSettings

MB: Final = 1 << 20
PROCESS_BYTES: Final = 160 * MB
"""Of a process that does nothing: modules, a third of them Temporal's SDK."""
PARENT_BYTES: Final = 140 * MB
"""Of the process that keeps several others running."""
USUAL_CONNECTIONS: Final = 20
"""Of a worker, divided among its processes."""
FEWEST_CONNECTIONS: Final = 5
"""Of each process where nothing else is set."""
_LEAST_CONNECTIONS: Final = 2
_LOCAL_PER_CONNECTION: Final = 2
"""A short step uses a connection for milliseconds."""


@dataclass(frozen=True)
class Machine:
    """What there is to divide."""

    cores: int
    memory_bytes: int

    @classmethod
    def this(cls) -> "Machine":
        """The machine, or the container, that this process is in."""
        return cls(machine.cores(), machine.memory_bytes())


@dataclass(frozen=True)
class Share:
    """What one process of a worker has."""

    processes: int
    """Of the worker."""
    memory_bytes: int
    connections: int | None
    """To the database at once; None: a file of SQLite, which needs no limit."""


@dataclass(frozen=True)
class Slots:
    """What one process does at once for one pipeline."""

    activities: int
    local: int
    """Short steps."""


def share_of(
    pipelines: Sequence[Pipeline],
    environment: Mapping[str, str],
    asked: int | None = None,
    of: Machine | None = None,
) -> Share:
    """What each process of a worker has.

    Args:
        pipelines: That it works on.
        environment: Settings.
        asked: Processes; None: one per core less one, as far as memory and connections allow, and
            one where rows go to a file.
        of: What there is; None: this machine.

    Raises:
        SettingsError: The settings of the database are wrong, or the connections too few.
    """
    of = of or Machine.this()
    database = DatabaseSettings.read(environment)
    if database.url.startswith("sqlite"):
        processes = asked or 1
        return Share(processes, _memory(processes, of), None)
    processes = asked or _usual(pipelines, of, database.connections)
    connections = _connections(processes, database.connections)
    return Share(processes, _memory(processes, of), connections)


def slots_of(
    pipelines: Sequence[Pipeline], share: Share, settings: WorkerSettings | None = None
) -> Mapping[str, Slots]:
    """What a process does at once, by the name of the pipeline; at least one of everything.

    Args:
        pipelines: All that the process works on.
        share: What it has.
        settings: What takes the place of the computed numbers.
    """
    settings = settings or WorkerSettings.read({})
    wanted = sum(each.activity_slots * each.activity_bytes for each in pipelines)
    spare = max(0, share.memory_bytes - PROCESS_BYTES)
    fits = min(1.0, spare / wanted)
    return {each.name: _slots(each, share, settings, fits) for each in pipelines}


def _slots(pipeline: Pipeline, share: Share, settings: WorkerSettings, fits: float) -> Slots:
    activities, local = int(pipeline.activity_slots * fits), pipeline.local_slots
    if share.connections is not None:
        activities = min(activities, share.connections)
        local = min(local, _LOCAL_PER_CONNECTION * share.connections)
    return Slots(
        activities=settings.activity_slots or max(1, activities),
        local=settings.local_slots or local,
    )


def _usual(pipelines: Sequence[Pipeline], of: Machine, connections: int | None) -> int:
    least = PROCESS_BYTES + 2 * max(each.activity_bytes for each in pipelines)
    allowed = [of.cores - 1, (of.memory_bytes - PARENT_BYTES) // least]
    if connections is not None:
        allowed.append(connections // FEWEST_CONNECTIONS)
    return max(1, min(allowed))


def _memory(processes: int, of: Machine) -> int:
    """Of each process."""
    return of.memory_bytes if processes == 1 else (of.memory_bytes - PARENT_BYTES) // processes


def _connections(processes: int, known: int | None) -> int:
    if known is None:
        return max(USUAL_CONNECTIONS // processes, FEWEST_CONNECTIONS)
    each = known // processes
    if each < _LEAST_CONNECTIONS:
        raise SettingsError(
            f"{CONNECTIONS} is {known}, and {processes} processes need "
            f"{_LEAST_CONNECTIONS * processes}: {_LEAST_CONNECTIONS} each"
        )
    return each
