"""Occurrences of keys, in memory and on disk alike."""

import errno
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.shared.scratch import SeenKeys, scratch_folder
from adapters.ports.errors import Unavailable

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


@settings(deadline=None)
@given(st.lists(st.lists(KEYS, max_size=8), max_size=8), st.integers(0, 12))
def test_counts_like_a_dictionary(batches: list[list[str]], in_memory: int) -> None:
    expected: dict[str, list[int]] = {}
    line = 0
    with TemporaryDirectory() as folder, closing(SeenKeys(Path(folder), in_memory)) as seen:
        for batch in batches:
            lines = list(range(line + 1, line + 1 + len(batch)))
            line += len(batch) + 1
            for key, at in zip(batch, lines, strict=True):
                expected.setdefault(key, []).append(at)
            found = seen.add(batch, lines)
            for key, at, (number, first) in zip(batch, lines, found, strict=True):
                assert number == expected[key].index(at) + 1
                assert first == expected[key][0]


@pytest.mark.parametrize("distinct", [400_000])
def test_memory_is_bounded(distinct: int, tmp_path: Path) -> None:
    program = f"""
import json, pathlib, resource
from contextlib import closing
from activities.shared.scratch import SeenKeys
def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = grown()
with closing(SeenKeys(pathlib.Path({str(tmp_path)!r}))) as seen:
    for start in range(0, {distinct}, 5000):
        lines = range(start, start + 5000)
        found = seen.add([f"DWG-{{i:08d}}|PIPE-{{i % 977:05d}}|{{i % 13}}" for i in lines], lines)
        assert all(number == 1 for number, _ in found)
print(json.dumps((grown() - before) / 1024))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) < 60


def test_keys_that_memory_has_no_room_for_are_in_the_scratch_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tmp_path / "held"
    held.mkdir()
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path / "none"))
    with closing(SeenKeys(held, keys_in_memory=10)) as seen:
        # More than the cache of pages holds.
        for start in range(0, 40_000, 4_000):
            lines = range(start, start + 4_000)
            seen.add([f"{line:01000d}" for line in lines], lines)
        assert sum(file.stat().st_size for file in held.iterdir()) > 10_000_000
        assert seen.add([f"{0:01000d}", f"{39_999:01000d}"], [50_000, 50_001]) == [
            (2, 0),
            (2, 39_999),
        ]
    assert list(held.iterdir()) == []


def test_a_full_scratch_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("activities.shared.scratch.tempfile.mkstemp", full)
    with (
        pytest.raises(Unavailable, match="the scratch disk is full"),
        scratch_folder(tmp_path) as own,
        closing(SeenKeys(own, keys_in_memory=1)) as seen,
    ):
        seen.add(["a"], [1])
        seen.add(["b"], [2])
