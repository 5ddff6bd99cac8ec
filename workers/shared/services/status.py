"""What is up, what cannot be used, and what waits for a person."""

from collections.abc import Sequence

from workers.shared.register import Check, Pipeline, PipelineView


def check_of(pipeline: Pipeline, view: PipelineView) -> Check:
    """Say whether a pipeline is up; an installation that works without it is not down for it."""
    start = f"start `docflow worker {pipeline.name}`"
    if view.workers == 0 and view.open:
        return Check(pipeline.name, False, f"{view.open:,} open and no worker polls: {start}")
    if view.workers == 0 and not pipeline.optional:
        return Check(pipeline.name, False, f"no worker polls: {start}")
    idle = _lanes(view.idle_lanes) if view.workers else ""
    if idle and view.open:
        says = f"{view.open:,} open and no worker polls {idle}: {start}"
        return Check(pipeline.name, False, says)
    polled = f"{view.workers} polled in the last minutes" if view.workers else "no worker polls"
    if idle:
        polled += f", none {idle}"
    waiting = f"{view.open:,} open, {view.waiting:,} wait for a person"
    return Check(pipeline.name, True, f"{polled}; {waiting}")


def _lanes(names: Sequence[str]) -> str:
    return f"the lane{'s' * (len(names) > 1)} {' and '.join(names)}" if names else ""
