"""How commands show jobs."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from contracts.jobs import JobOutputs, JobStatus, StageState
from workers.cli.errors import ExitCode
from workers.cli.output import console, moment, pairs, table, text

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from contracts.jobs import StageView
    from workers.services.jobs.documents import JobDocument

_STYLES: Final[dict[str, str]] = {
    JobStatus.QUEUED: "dim",
    JobStatus.PROCESSING: "cyan",
    JobStatus.PARKED: "bold yellow",
    JobStatus.COMPLETED: "green",
    JobStatus.FAILED: "bold red",
    JobStatus.TERMINATED: "bold red",
    JobStatus.CANCELLED: "magenta",
    StageState.WAITING: "dim",
    StageState.RUNNING: "cyan",
    StageState.SKIPPED: "dim",
}
_EXITS: Final[dict[JobStatus, ExitCode]] = {
    JobStatus.COMPLETED: ExitCode.DONE,
    JobStatus.PARKED: ExitCode.PARKED,
}


def status_text(status: str) -> "Text":
    """A status in its colour."""
    return text(status, _STYLES.get(status, _STYLES.get(status.upper(), "")))


def exit_code(status: JobStatus) -> ExitCode:
    """Exit code of a command that followed a job."""
    return _EXITS.get(status, ExitCode.FAILED)


def show_job(job: "JobDocument") -> None:
    """All that is known of a job."""
    out = console()
    out.print(
        pairs(
            [
                ("job", job.job_id),
                ("type", f"{job.job_type}, version {job.version}"),
                ("status", status_text(job.status)),
                ("attempt", job.attempt),
                ("project", job.project),
                ("alias", job.alias),
                ("changed", moment(job.updated_at)),
                ("waits for", waits(job)),
                ("reason", job.error_details),
                ("next", job.next_steps),
            ]
        )
    )
    for question in job.questions:
        out.print(text(f"asks for {question.parameter}: {question.question}", "bold yellow"))
    if job.questions:
        given = " ".join(f"--param {question.parameter}=..." for question in job.questions)
        out.print(text(f"answer: docflow jobs answer {job.job_id[:12]} {given}"))
    elif job.next_steps is not None:
        named = "|".join(each for each in ("retry", "skip", "fail") if each in job.next_steps)
        out.print(text(f"answer: docflow jobs answer {job.job_id[:12]} --decision {named}"))
    out.print(stages_table(job))
    if job.failed_tasks:
        failed = table("task", "reason", title=f"{job.failed_count:,} failed")
        for each in job.failed_tasks:
            failed.add_row(text(each.task_id), text(each.reason))
        out.print(failed)
    for note in JobOutputs.of(job.result_data).notes:
        out.print(text(f"note: {note}"))


def waits(job: "JobDocument") -> str | None:
    """What a job waits for without a person; None: nothing."""
    if job.awaits is None:
        return None
    return f"{job.awaits.what}; since {moment(job.awaits.since)}, it continues by itself"


def stages_table(job: "JobDocument") -> "Table":
    """Its stages, with how far they are."""
    made = table(
        "stage", "name", "state", "done", "failed", "rate", "ends about", numbers=["done", "failed"]
    )
    for stage in job.stages:
        made.add_row(
            text(stage.stage),
            text(stage.name),
            status_text(stage.state),
            text(f"{stage.counts.done:,}/{stage.counts.total:,}"),
            text(f"{stage.counts.failed:,}"),
            text("" if stage.rate is None else f"{stage.rate:,.1f}/s"),
            text(ends_in(stage)),
        )
    return made


def ends_in(stage: "StageView") -> str:
    """How long a stage is still going to take, about."""
    if stage.estimated_end is None or stage.state is not StageState.RUNNING:
        return ""
    seconds = max(0, round((stage.estimated_end - datetime.now(UTC)).total_seconds()))
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
