"""How the tasks of a stage are divided, how far a job is, and what is shown of its results."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from workflows.jobs.definitions import TASKS_PER_BATCH, StageDefinition
from workflows.jobs.records import JsonObject
from workflows.jobs.runs import JobResult, StageEnd, StageState, StageView, TaskCounts

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


def with_progress(view: StageView, counts: TaskCounts, now: datetime) -> StageView:
    """A stage that runs, as it stands now."""
    assert view.began_at is not None
    seconds = (now - view.began_at).total_seconds()
    rate = counts.done / seconds if seconds > 0 and counts.done else None
    left = counts.total - counts.done
    return view.model_copy(
        update={
            "state": StageState.RUNNING,
            "counts": counts,
            "rate": None if rate is None else round(rate, 3),
            "estimated_end": None if rate is None else now + timedelta(seconds=left / rate),
        }
    )


def line(view: StageView) -> str:
    """A stage in one line, for people."""
    counts = view.counts
    text = f"{view.stage}. {view.name}: {view.state}"
    if counts.total:
        text += f", {counts.done:,} of {counts.total:,}"
    if counts.failed:
        text += f", {counts.failed:,} failed"
    if view.state is StageState.RUNNING and view.rate is not None:
        text += f", {view.rate:,.1f}/s"
        if view.estimated_end is not None:
            text += f", ends about {view.estimated_end:%Y-%m-%d %H:%M:%S} UTC"
    return text


def reason_of(end: StageEnd) -> str:
    """Why a stage has failed, or what it asks."""
    asked = [f"{each.parameter}: {each.question}" for each in end.questions]
    failed = [f"{each.task_id}: {each.reason}" for each in end.failed]
    reasons = [*asked, *([end.failure] if end.failure else ()), *(() if asked else failed)]
    return "; ".join(reasons)[:1_500]


def counted(result: JobResult) -> str:
    """What a completed job has done, in a sentence."""
    done = sum(view.counts.completed for view in result.stages)
    failed = f", {result.failed_count:,} failed" if result.failed_count else ""
    return f"{done:,} tasks completed{failed}"


def with_end(view: StageView, end: StageEnd, now: datetime) -> StageView:
    """A stage that has ended."""
    state = StageState.COMPLETED
    if end.cancelled:
        state = StageState.CANCELLED
    elif end.failure is not None or end.questions:
        state = StageState.FAILED
    elif end.skipped:
        state = StageState.SKIPPED
    update = {"state": state, "counts": end.counts, "ended_at": now, "estimated_end": None}
    return view.model_copy(update=update)


MOST_BYTES: Final = 30_000
"""Of results that are listed, as JSON: an aggregated result has more to say besides."""
MOST_POSITIONS: Final = 400
"""Of a footprint."""
_SMALL_RING: Final = 8


def fitting(results: Iterable[JsonObject], most: int = MOST_BYTES) -> Sequence[JsonObject]:
    """The first of some results, as many as fit."""
    found: list[JsonObject] = []
    for each in results:
        most -= len(json.dumps(each).encode())
        if most < 0:
            break
        found.append(each)
    return found


def thinned(geometry: JsonObject | None, most: int = MOST_POSITIONS) -> JsonObject | None:
    """A polygon or several with about so many positions: enough for a drawing.

    Args:
        geometry: GeoJSON; another kind of geometry stays as it is.
        most: Positions.
    """
    rings: list[Any]
    match geometry:
        case {"type": "Polygon", "coordinates": rings}:
            parts = [rings]
        case {"type": "MultiPolygon", "coordinates": parts}:
            pass
        case _:
            return geometry
    step = -(-sum(len(ring) for part in parts for ring in part) // most)
    thin = [[_thin(ring, step) for ring in part] for part in parts]
    return {**geometry, "coordinates": thin if geometry["type"] == "MultiPolygon" else thin[0]}


def _thin(ring: Sequence[Any], step: int) -> Sequence[Any]:
    if step == 1 or len(ring) <= _SMALL_RING:
        return ring
    return [*ring[:-1:step], ring[0]] if len(ring) // step >= _SMALL_RING else _thin(ring, step - 1)
