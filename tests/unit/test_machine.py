"""A container's limits count, not those of the machine that it runs on."""

import os
from pathlib import Path

import pytest

from workers.shared.machine import cores, memory_bytes

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def limited(folder: Path, path: str, **files: str) -> tuple[Path, Path]:
    """Control groups with the process in one of them."""
    group = folder / "groups" / path.lstrip("/")
    group.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (group / name.replace("_", ".")).write_text(f"{text}\n")
    own = folder / "cgroup"
    own.write_text(f"0::{path}\n")
    return folder / "groups", own


@pytest.mark.parametrize(
    ("quota", "expected"), [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None)]
)
def test_processors_are_those_of_the_quota(
    quota: str, expected: int | None, tmp_path: Path
) -> None:
    found = cores(*limited(tmp_path, "/", cpu_max=quota))
    assert found == (expected or len(os.sched_getaffinity(0)))


def test_the_limit_of_a_group_above_counts_too(tmp_path: Path) -> None:
    limited(tmp_path, "/pod", memory_max="300000000")
    groups, own = limited(tmp_path, "/pod/worker", memory_max="max")
    assert memory_bytes(groups, own) == 300_000_000


def test_without_limits_all_of_the_machine_counts(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path / "none", tmp_path / "nothing") == MACHINE
    assert memory_bytes(*limited(tmp_path, "/", memory_max="max")) == MACHINE
    assert cores(tmp_path, tmp_path / "nothing") == len(os.sched_getaffinity(0))
