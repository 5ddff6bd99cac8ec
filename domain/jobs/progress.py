"""How far a job is, in figures and in sentences."""

from datetime import datetime, timedelta

from contracts.jobs import JobResult, StageEnd, StageState, StageView, TaskCounts


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
