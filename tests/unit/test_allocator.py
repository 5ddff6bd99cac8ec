"""Large blocks that were freed go back to the system."""

import subprocess
import sys

import pytest

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor
from benchmarks.memory import resident_bytes
from workers.shared.machine import LARGE_BYTES, tune_allocator
import os, threading

assert tune_allocator()
before, together = resident_bytes(os.getpid()), threading.Barrier(4)

def work(_):
    # As blocks of a file pass by in the threads of a worker.
    held = [bytes(3 * LARGE_BYTES) for _ in range(3)]
    together.wait()
    return sum(map(len, held))

with ThreadPoolExecutor(4) as pool:
    for _ in range(3):
        assert sum(pool.map(work, range(4))) > 100 << 20
assert resident_bytes(os.getpid()) - before < 32 << 20
"""


@pytest.mark.glibc
def test_freed_blocks_go_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
