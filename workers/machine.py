"""What this machine, or the container that this process is in, lets it use."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
