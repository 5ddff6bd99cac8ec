"""`docflow jobs` and `docflow submit jobs`: jobs, their tasks and webhooks."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import ExitCode, UsageError, run
from workers.shared.cli.output import JsonOption, console, moment, pairs, print_json, table, text
from workflows.jobs.records import JobOutputs, JobStatus, TaskStatus
from workflows.jobs.runs import StageState

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table
    from rich.text import Text

    from workers.jobs.runs import JobDocument, StartedJob
    from workers.jobs.service import JobService
    from workers.shared.services.identity import Identity
    from workflows.jobs.records import TaskRecord
    from workflows.jobs.runs import JobRequest, StageView


JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the job, its first 8 characters or more, or its alias."
    ),
]


def open_jobs(
    cli: CliContext,
) -> "AbstractAsyncContextManager[tuple[JobService, Identity]]":
    """The service of jobs, and who asks it.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.jobs import factory

    return factory.open_service(cli.environment)


def parameters_of(given: Sequence[str]) -> dict[str, str]:
    """Parameters as they were typed, by name.

    Raises:
        UsageError: One has no name or no value, or is given twice.
    """
    parameters: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise UsageError("--param: write NAME=VALUE")
        if name in parameters:
            raise UsageError(f"--param: {name} is given twice; write a list as JSON")
        parameters[name] = value
    return parameters


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


LimitOption = Annotated[int, typer.Option("--limit", min=1, max=500, help="At most so many.")]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Jobs: list, watch, restart them, and see their tasks and webhooks.",
)


@app.command("list")
def list_jobs(
    context: typer.Context,
    status: Annotated[JobStatus | None, typer.Option(help="Only those of this status.")] = None,
    job_type: Annotated[str | None, typer.Option("--type", help="Only those of a type.")] = None,
    project: Annotated[str | None, typer.Option(help="Only those of a project.")] = None,
    limit: LimitOption = 50,
    before: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Those of the next page.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Jobs, the newest change first.

    \b
    Example:
      docflow jobs list --status FAILED --type process_raster
    """
    which = {"status": status, "job_type": job_type, "project": project, "limit": limit}
    run(_list(cli_context(context), which, before, as_json=as_json))


async def _list(
    cli: CliContext, which: Mapping[str, Any], before: str | None, *, as_json: bool
) -> None:
    from workers.shared.services.lists import Cursor

    try:
        cursor = None if before is None else Cursor.read(before)
    except ValueError as error:
        raise UsageError("--before: give what the page before has named, or a moment") from error
    async with open_jobs(cli) as (service, who):
        found = await service.queries.list(who, **which, before=cursor)
    if found.next is not None:
        typer.echo(f"the next page: --before {found.next}", err=True)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found.jobs])
        return
    if not found.jobs:
        typer.echo("no such jobs; `docflow submit jobs --help` starts one")
        return
    made = table("job", "type", "status", "stage", "failed", "changed", numbers=["failed"])
    for each in found.jobs:
        made.add_row(
            text(each.job_id[:12]),
            text(each.job_type),
            status_text(each.status),
            text(f"{each.stage}/{each.total_stages}"),
            text(f"{each.failed_count:,}"),
            text(moment(each.updated_at)),
        )
    console().print(made)


@app.command()
def show(context: typer.Context, job: JobArgument, as_json: JsonOption = False) -> None:
    """A job: its stages, and what has failed.

    \b
    Example:
      docflow jobs show 5eed5eed
    """
    run(_show(cli_context(context), job, as_json=as_json))


async def _show(cli: CliContext, job: str, *, as_json: bool) -> None:
    async with open_jobs(cli) as (service, who):
        found = await service.queries.get(who, job)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        show_job(found)


@app.command()
def tasks(
    context: typer.Context,
    job: JobArgument,
    status: Annotated[TaskStatus | None, typer.Option(help="Only those of this status.")] = None,
    stage: Annotated[int | None, typer.Option(min=1, help="Only those of a stage.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Of the job [the newest].")] = None,
    limit: LimitOption = 50,
    token: Annotated[str | None, typer.Option(help="Of the next page.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tasks of a job, by stage and place in it.

    \b
    Example:
      docflow jobs tasks 5eed5eed --status FAILED
    """
    which = {"status": status, "stage": stage, "attempt": attempt, "token": token, "limit": limit}
    run(_tasks(cli_context(context), job, which, as_json=as_json))


async def _tasks(cli: CliContext, job: str, which: Mapping[str, Any], *, as_json: bool) -> None:
    async with open_jobs(cli) as (service, who):
        found = await service.queries.tasks(who, job, **which)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found.tasks])
    else:
        made = table("task", "status", "done", "tries", "changed", "reason", numbers=["tries"])
        for each in found.tasks:
            made.add_row(
                text(each.task_id),
                status_text(each.status),
                text(done_in(each)),
                text(each.retry_count),
                text(moment(each.updated_at)),
                text(each.error_details),
            )
        console().print(made)
    if found.next is not None:
        typer.echo(f"the next page: --token {found.next}", err=True)


def done_in(task: "TaskRecord") -> str:
    """Where the result of a task is from."""
    return f"kept, attempt {task.attempt}" if task.kept else f"attempt {task.attempt}"


@app.command()
def types(context: typer.Context, as_json: JsonOption = False) -> None:
    """Job types that are installed here, and packages that could not be used.

    \b
    Example:
      docflow jobs types
    """
    from activities.jobs.api import JobTypes

    cli_context(context)
    found = JobTypes.installed()
    listed: list[dict[str, Any]] = [
        {
            "job_type": name,
            "version": each.definition.version,
            "package": found.packages[name],
            "stages": [stage.stage_name for stage in each.definition.stages],
            "description": each.definition.description,
        }
        for name, each in sorted(found.items())
    ]
    if as_json:
        print_json(listed)
    else:
        made = table("job type", "version", "package", "stages", "what it does")
        for each in listed:
            made.add_row(*(text(_shown(value)) for value in each.values()))
        console().print(made)
    for problem in found.problems:
        typer.echo(problem, err=True)


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@app.command()
def watch(context: typer.Context, job: JobArgument, as_json: JsonOption = False) -> None:
    """Follow a job to its end, with a bar for each stage.

    Exit codes: 0 completed, 1 failed, cancelled or terminated, 4 parked: it waits for your answer.

    \b
    Example:
      docflow jobs watch 5eed5eed
    """
    run(_watch(cli_context(context), job, as_json=as_json))


async def _watch(cli: CliContext, job: str, *, as_json: bool) -> None:

    async with open_jobs(cli) as (service, who):
        ended = await follow(service, who, job)
    if as_json:
        print_json(ended.model_dump(mode="json"))
    else:
        show_job(ended)
    raise typer.Exit(exit_code(ended.status))


async def follow(service: "JobService", who: "Identity", name: str) -> "JobDocument":
    """Show a job until it has ended, or waits for a person; the job as it is then.

    Raises:
        NotFound: There is no such job.
    """
    screen = _Screen()
    with screen.shown():
        while True:
            try:
                async with aclosing(service.queries.events(who, name)) as revisions:
                    async for each in revisions:
                        if each is None:
                            continue
                        # The beginning of an alias names nothing.
                        name = each.job.job_id
                        screen.show(each.job)
                        if each.job.ended or each.job.status is JobStatus.PARKED:
                            return each.job
            except asyncio.CancelledError:
                screen.hint(
                    f"No longer following; the job continues: `docflow jobs watch {name[:12]}`, "
                    f"`docflow cancel {name[:12]}`"
                )
                raise


class _Screen:
    """A bar for each stage on a terminal; a line for each change elsewhere."""

    def __init__(self) -> None:
        self._console = console(stderr=True)
        self._bars: dict[int, TaskID] = {}
        self._said: dict[int, str] = {}
        self._waits: str | None = None
        self._progress: Progress | None = None

    def shown(self) -> "Progress":
        """The live display, as a context."""
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        return self._progress

    def show(self, job: "JobDocument") -> None:
        """The job as it is now."""
        waiting = waits(job)
        if waiting != self._waits:
            self._waits = waiting
            self._console.print("it no longer waits" if waiting is None else f"waits for {waiting}")
        for stage in job.stages:
            if self._console.is_terminal:
                self._bar(stage)
            else:
                self._line(stage)

    def hint(self, sentence: str) -> None:
        """Something the person may want to know."""
        self._console.print(sentence)

    def _bar(self, stage: "StageView") -> None:
        assert self._progress is not None
        if stage.stage not in self._bars:
            self._bars[stage.stage] = self._progress.add_task("", total=None, figures="")
        self._progress.update(
            self._bars[stage.stage],
            description=f"{stage.stage} {stage.name}",
            total=stage.counts.total or None,
            completed=stage.counts.done,
            figures=_figures(stage),
            visible=stage.state is not StageState.WAITING,
        )

    def _line(self, stage: "StageView") -> None:
        if stage.state is StageState.WAITING or self._said.get(stage.stage) == stage.state:
            return
        self._said[stage.stage] = stage.state
        self._console.print(f"stage {stage.stage} ({stage.name}): {stage.state}")


def _figures(stage: "StageView") -> str:
    parts = [f"{stage.counts.done:,}/{stage.counts.total:,}"]
    if stage.counts.failed:
        parts.append(f"{stage.counts.failed:,} failed")
    if stage.rate is not None and stage.state is StageState.RUNNING:
        parts.append(f"{stage.rate:,.1f}/s")
    if remaining := ends_in(stage):
        parts.append(f"{remaining} left")
    return ", ".join(parts)


class Reply(StrEnum):
    """What becomes of a job that is parked."""

    RETRY = "retry"
    SKIP = "skip"
    FAIL = "fail"


@app.command()
def answer(
    context: typer.Context,
    job: JobArgument,
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A parameter that it asks for, or a corrected one. Repeated."
        ),
    ] = None,
    decision: Annotated[
        Reply,
        typer.Option(
            help="Do the failed stage again, leave out what has failed, or give the job up."
        ),
    ] = Reply.RETRY,
    reason: Annotated[str | None, typer.Option(help="Why, for skip and fail.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a job that is parked.

    The job continues at its failed stage with these parameters. Without any the stage is done
    again as it was, and keeps its good tasks.

    \b
    Examples:
      docflow jobs answer 5eed5eed --param datetime=2024-05-01T10:30:00Z
      docflow jobs answer 5eed5eed --decision skip --reason "no data there"
    """
    run(_answer(cli_context(context), job, param or (), decision, reason, as_json=as_json))


async def _answer(
    cli: CliContext,
    job: str,
    given: Sequence[str],
    decision: Reply,
    reason: str | None,
    *,
    as_json: bool,
) -> None:
    from workflows.shared.parking import Decision

    texts = parameters_of(given)
    async with open_jobs(cli) as (service, who):
        record = await service.queries.record(who, job)
        done = await service.answer(
            who,
            record.job_id,
            Decision(decision),
            parameters=service.submission.typed(record.job_type, texts),
            reason=reason,
        )
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    typer.echo(
        f"{decision} was accepted; follow the job with `docflow jobs watch {done.job_id[:12]}`"
    )


@app.command()
def restart(
    context: typer.Context,
    job: JobArgument,
    from_stage: Annotated[
        int | None,
        typer.Option("--from-stage", min=1, help="Begin at this stage [the one that failed]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Begin another attempt at a job that has failed; its good tasks are kept.

    \b
    Examples:
      docflow jobs restart 5eed5eed
      docflow jobs restart 5eed5eed --from-stage 2
    """
    run(_restart(cli_context(context), job, from_stage, as_json=as_json))


async def _restart(cli: CliContext, job: str, from_stage: int | None, *, as_json: bool) -> None:
    async with open_jobs(cli) as (service, who):
        done = await service.restart(who, job, from_stage)
    if as_json:
        print_json({"job_id": done.job_id, "attempt": done.attempt})
        return
    typer.echo(
        f"attempt {done.attempt} of job {done.job_id[:12]} has begun; "
        f"follow it with `docflow jobs watch {done.job_id[:12]}`"
    )


@app.command()
def clean(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what is no longer kept, as the schedule does every night.

    Files that newer datasets have replaced go after their time of grace; tasks, plans, results and
    webhooks of jobs that have ended, and files that no item uses, after DOCFLOW_JOBS_KEEP_DAYS.

    \b
    Example:
      docflow jobs clean --dry-run
    """
    run(_clean(cli_context(context), dry_run=dry_run, as_json=as_json))


async def _clean(cli: CliContext, *, dry_run: bool, as_json: bool) -> None:
    from workers.jobs.service import clean_jobs

    removed = await clean_jobs(cli.environment, dry_run=dry_run)
    if as_json:
        print_json(removed.model_dump(mode="json"))
        return
    for each in removed.named:
        typer.echo(each)
    what = "would be removed" if dry_run else "removed"
    typer.echo(
        f"{what}: {removed.files:,} files; tasks, plans, results and webhooks of {removed.jobs:,} "
        f"jobs, of which {removed.kept:,} keep their record"
    )


@app.command()
def webhooks(
    context: typer.Context,
    job: JobArgument,
    send: Annotated[
        int | None,
        typer.Option(min=0, metavar="NUMBER", help="Send the webhook of this receiver again."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Deliveries of webhooks about the end of a job, the newest first.

    \b
    Examples:
      docflow jobs webhooks 5eed5eed
      docflow jobs webhooks 5eed5eed --send 0
    """
    run(_webhooks(cli_context(context), job, send, as_json=as_json))


async def _webhooks(cli: CliContext, job: str, send: int | None, *, as_json: bool) -> None:
    async with open_jobs(cli) as (service, who):
        if send is not None:
            sent = await service.send_again(who, job, send)
            typer.echo(f"sending to {sent.url} again", err=as_json)
        found = await service.queries.deliveries(who, job)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    if not found:
        typer.echo("nothing was sent so far")
        return
    made = table(
        *("number", "sent", "to", "answer", "attempt", "result"), numbers=["number", "answer"]
    )
    for each in found:
        made.add_row(
            text(each.number),
            text(moment(each.sent_at)),
            text(each.url),
            text(each.status_code),
            text(f"{each.delivery_attempt} of {each.attempts}"),
            text(each.problem or "delivered"),
        )
    console().print(made)


submit_app = typer.Typer(rich_markup_mode=None)


@submit_app.command()
def jobs(
    context: typer.Context,
    job_type: Annotated[str, typer.Argument(metavar="TYPE", help="Type of the job.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            exists=True,
            dir_okay=False,
            readable=True,
            show_default=False,
            help="Uploaded to the bronze container, and given to the type as its input.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A parameter; JSON where it can be read as such. Repeated."
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="Whose work it is: projects share workers fairly.")
    ] = None,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Do it again although it was done.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="A trial run: so many tasks of every stage.")
    ] = None,
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="Start it, and do not wait.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Start a job and follow it to its end.

    The same request over the same bytes is the same job: it is shown, and not done again.

    Exit codes: 0 completed, 1 failed, cancelled or terminated, 2 wrong options, 4 parked: it waits
    for your answer.

    \b
    Examples:
      docflow submit jobs hello_world --param n=100
      docflow submit jobs process_raster scene.tif --project survey --limit 3
      docflow submit jobs hello_world --param webhook_url=https://client.example.com/done
    """
    run(
        _submit(
            cli_context(context),
            job_type,
            file,
            param or (),
            {"project": project, "rerun": rerun, "limit": limit},
            follow_it=not no_follow,
            as_json=as_json,
        )
    )


async def _submit(
    cli: CliContext,
    job_type: str,
    file: Path | None,
    given: Sequence[str],
    options: dict[str, Any],
    *,
    follow_it: bool,
    as_json: bool,
) -> None:

    texts = parameters_of(given)
    _request(job_type, {}, options)
    async with open_jobs(cli) as (service, who):
        request = _request(job_type, service.submission.typed(job_type, texts), options)
        if file is not None:
            request = await service.with_file(who, request, file)
            for name in service.submission.beside(job_type, file):
                typer.echo(f"docflow: {name} lies beside it and is not uploaded", err=True)
        done = await service.submit(who, request)
        if not follow_it:
            _show_started(done, as_json=as_json)
            return
        for note in done.notes:
            typer.echo(f"docflow: {note}", err=True)
        if not done.created:
            typer.echo(f"asked for before, as job {done.job_id[:12]}", err=True)
        ended = await follow(service, who, done.job_id)
    if as_json:
        print_json(ended.model_dump(mode="json"))
    else:
        show_job(ended)
    raise typer.Exit(exit_code(ended.status))


def _request(job_type: str, parameters: dict[str, Any], options: dict[str, Any]) -> "JobRequest":
    from pydantic import ValidationError

    from workers.jobs.submission import errors_of
    from workflows.jobs.runs import JobRequest

    try:
        return JobRequest(job_type=job_type, parameters=parameters, **options)
    except ValidationError as error:
        named = "; ".join(f"{e.location}: {e.message}" for e in errors_of(error, within=""))
        raise UsageError(named) from None


def _show_started(done: "StartedJob", *, as_json: bool) -> None:
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    what = "started" if done.created else "asked for before:"
    typer.echo(f"{what} job {done.job_id}; see `docflow jobs watch {done.job_id[:12]}`")
    for note in done.notes:
        typer.echo(f"docflow: {note}", err=True)
