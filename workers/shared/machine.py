"""What this machine lets a process use, and how much a worker does at once.

What a worker does at once follows from memory and connections to the database, and is fixed when
it starts: docs/processes.md has the table.
"""

import ctypes
import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workers.shared.register import Pipeline
from workers.shared.settings.common import WorkerSettings

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def cores(groups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """Processors that this process may use, at least one: those it is bound to, or its quota.

    Args:
        groups: Where the kernel shows control groups, version 2.
        own: Which of them this process is in.
    """
    found = len(os.sched_getaffinity(0))
    for text in _limits(groups, own, "cpu.max"):
        quota, _, period = text.partition(" ")
        if quota != "max":
            found = min(found, int(quota) // int(period))
    return max(1, found)


def memory_bytes(groups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """Memory that this process and its children may use: that of the machine, or its limit.

    Args:
        groups: Where the kernel shows control groups, version 2.
        own: Which of them this process is in.
    """
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = (int(text) for text in _limits(groups, own, "memory.max") if text != "max")
    return min((found, *limits))


def _limits(groups: Path, own: Path, name: str) -> Iterator[str]:
    """What a file says in the group of this process and in those above it, where there are any."""
    for folder in _folders(groups, own):
        try:
            text = (folder / name).read_text().strip()
        except OSError:
            # Not in the root of a machine, and nowhere without version 2.
            continue
        if text:
            yield text


def _folders(groups: Path, own: Path) -> list[Path]:
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    folder = groups / path.lstrip("/")
    return [folder, *(each for each in folder.parents if each.is_relative_to(groups))]


# Source: mallopt(3).
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
ARENAS: Final = 2
"""Python runs one thread at a time: further arenas only keep what was freed in them."""
LARGE_BYTES: Final = 4 << 20
"""Blocks of this size go back to the system at once. By default the threshold grows with what is
freed, to 32 MB, and freed blocks stay with the process."""


def tune_allocator() -> bool:
    """Let memory go back to the system; call it before there are threads.

    Returns:
        Whether the C library knows how: others than glibc do not.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = (
        (_ARENA_MAX, ARENAS),
        (_MMAP_THRESHOLD, LARGE_BYTES),
        (_TRIM_THRESHOLD, 2 * LARGE_BYTES),
    )
    return all(mallopt(name, value) for name, value in settings)


YOUNG_OBJECTS: Final = 20_000
"""New containers between two collections. With Python's 700, the rows of one chunk are traversed
so often that reading a table takes twice the time."""


def tune_collector() -> None:
    """Collect less often, and never look at what was made until now.

    Call it once, when everything that lives as long as the process has been imported and opened.
    Memory is freed as before: rows hold no cycles, and only cycles wait for the collector.
    """
    gc.collect()
    gc.freeze()
    # Runs that were evicted are old and hold cycles: they are looked for often enough to go.
    gc.set_threshold(YOUNG_OBJECTS, 10, 2)


MB: Final = 1 << 20
PROCESS_BYTES: Final = 160 * MB
"""Of a process that does nothing: modules, a third of them Temporal's SDK."""
_LOCAL_PER_CONNECTION: Final = 2
"""A short step uses a connection for milliseconds."""


@dataclass(frozen=True)
class Slots:
    """What one process does at once for one pipeline."""

    activities: int
    local: int
    """Short steps."""


def slots_of(
    pipelines: Sequence[Pipeline],
    connections: int,
    settings: WorkerSettings,
    memory: int | None = None,
) -> Mapping[str, Slots]:
    """What a process does at once, by the name of the pipeline; at least one of everything.

    Args:
        pipelines: All that the process works on.
        connections: To the database at once.
        settings: What takes the place of the computed numbers.
        memory: Bytes that the process may use; None: what this machine or container has.
    """
    wanted = sum(each.activity_slots * each.activity_bytes for each in pipelines)
    spare = max(0, (memory_bytes() if memory is None else memory) - PROCESS_BYTES)
    fits = min(1.0, spare / wanted)
    return {each.name: _slots(each, connections, settings, fits) for each in pipelines}


def _slots(pipeline: Pipeline, connections: int, settings: WorkerSettings, fits: float) -> Slots:
    activities = max(1, min(int(pipeline.activity_slots * fits), connections))
    local = min(pipeline.local_slots, _LOCAL_PER_CONNECTION * connections)
    return Slots(settings.activity_slots or activities, settings.local_slots or local)
