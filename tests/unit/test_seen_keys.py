"""Occurrences of keys, in memory and on disk alike."""

import json
import subprocess
import sys
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.seen_keys import SeenKeys

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


@settings(deadline=None)
@given(st.lists(st.lists(KEYS, max_size=8), max_size=8), st.integers(0, 12))
def test_counts_like_a_dictionary(batches: list[list[str]], in_memory: int) -> None:
    expected: dict[str, list[int]] = {}
    line = 0
    with closing(SeenKeys(in_memory)) as seen:
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
def test_memory_is_bounded(distinct: int) -> None:
    program = f"""
import json, resource
from contextlib import closing
from activities.seen_keys import SeenKeys
def grown():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = grown()
with closing(SeenKeys()) as seen:
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
