"""How the tasks of a stage are divided: batches, how many side by side, groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.jobs import TASKS_PER_BATCH, StageDefinition

WINDOW: Final = 50
"""Activities of one batch at once: with more, its workflow tasks grow long."""

_SHORT: Final = 10_000
"""Events of a history in which tasks are tried again when they ask for it."""
_STEP: Final = 3_000
"""Further events that double the pause before that."""
_DAY: Final = 86_400.0
SMALL: Final = 20
"""Activities of a stage that does its tasks by itself, at most: its history stays short."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """The batches of a stage."""

    batches: int
    parallel: int
    """Batches at once."""
    window: int
    """Activities at once, of each of them."""


def fan_out(tasks: int, max_parallel: int) -> FanOut:
    """Divide a stage; `parallel` x `window` never exceeds `max_parallel`.

    Args:
        tasks: Of the stage.
        max_parallel: Tasks at once.
    """
    batches = -(-tasks // TASKS_PER_BATCH)
    parallel = max(1, min(batches, -(-max_parallel // WINDOW)))
    return FanOut(batches, parallel, max_parallel // parallel)


def is_small(tasks: int, stage: StageDefinition) -> bool:
    """Whether a stage does its tasks by itself, in no batch with a run of its own.

    Args:
        tasks: Of the stage.
        stage: Its definition.
    """
    return tasks <= min(SMALL * stage.tasks_per_activity, TASKS_PER_BATCH)


def tasks_of(batch: int, tasks: int) -> int:
    """How many tasks a batch of a stage has; batches are numbered from 0."""
    return min(TASKS_PER_BATCH, tasks - batch * TASKS_PER_BATCH)


def pause(seconds: float, events: int) -> float:
    """Seconds until a task is tried again: more, when the history of its run has grown long.

    The server ends a run at 51,200 events; each trial of 500 tasks adds some thousands.

    Args:
        seconds: That the task asks for.
        events: In the history.
    """
    return min(seconds * 2 ** max(0, (events - _SHORT) // _STEP), max(seconds, _DAY))


def groups(positions: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Positions in groups of a size; the last one may be smaller."""
    for start in range(0, len(positions), size):
        yield tuple(positions[start : start + size])
