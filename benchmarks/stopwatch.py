"""Time and CPU of a stretch of a program."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a stretch took, in seconds."""

    wall: float
    cpu: float
    """Of this process alone."""


class Stopwatch:
    """Runs from its making."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Cost:
        """What it has taken so far."""
        return Cost(time.perf_counter() - self._wall, time.process_time() - self._cpu)
