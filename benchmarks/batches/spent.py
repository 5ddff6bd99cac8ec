"""What this process and the Temporal server that it has started take of the machine."""

from dataclasses import dataclass
from typing import Self

import psutil

from benchmarks.memory import peak_bytes


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of the processor so far, and the most memory, in bytes."""

    own_seconds: float
    temporal_seconds: float
    own_bytes: int
    temporal_bytes: int

    @classmethod
    def so_far(cls) -> Self:
        """Read it now."""
        own = psutil.Process()
        [server] = [child for child in own.children() if child.name() == "temporal"]
        return cls(_seconds(own), _seconds(server), peak_bytes(own.pid), peak_bytes(server.pid))


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
