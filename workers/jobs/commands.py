"""`docflow job`: jobs, their tasks, types and webhooks."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import typer

from workers.shared.cli.errors import ExitCode, UsageError, stop
from workers.shared.cli.output import console, moment, state_text, table, text
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
)
from workers.shared.cli.runs import words
from workflows.jobs.records import JobOutputs, JobStatus, TaskStatus
from workflows.jobs.runs import StageState

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from docflow.client.synchronous import Connection

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the job, its first 8 characters or more, or its alias."
    ),
]
_JOBS: Final = "/api/v1/jobs"
_ONE: Final = f"{_JOBS}/{{}}"
_WEBHOOKS: Final = "/api/jobs/{}/webhooks"
_SHORT: Final = 12
"""Characters of an id that people are shown."""

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_jobs(
    context: typer.Context,
    state: Annotated[JobStatus | None, typer.Option(help="Only those in this state.")] = None,
    job_type: Annotated[str | None, typer.Option("--type", help="Only those of a type.")] = None,
    project: Annotated[str | None, typer.Option(help="Only those of a project.")] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, the newest change first.

    \b
    Example:
      docflow job list --state FAILED --type process_raster
    """
    wanted = {"status": state, "job_type": job_type, "project": project}
    with gateway(context) as connection:
        found = listed(connection, _JOBS, limit, **wanted)
    columns: Mapping[str, Column] = {
        "job": lambda job: job["job_id"][:_SHORT],
        "type": "job_type",
        "status": _status,
        "stage": lambda job: f"{job['stage']}/{job['total_stages']}",
        "failed": lambda job: f"{job['failed_count']:,}",
        "changed": "updated_at",
    }
    nothing = "no such jobs; `docflow job submit --help` starts one"
    show_list(found, output, columns, name="job_id", nothing=nothing, numbers=["failed"])
    _hint_more(found, limit, output, "newest")


def _status(item: Item) -> object:
    return state_text(item["status"])


def _hint_more(found: Sequence[Item], limit: int, output: Output, which: str) -> None:
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the {which} {limit}; --limit shows more", err=True)


@app.command()
def show(
    context: typer.Context,
    job: JobArgument,
    part: Annotated[
        Literal["tasks"] | None,
        typer.Argument(metavar="PART", help="tasks: those of the job, by stage and place in it."),
    ] = None,
    state: Annotated[TaskStatus | None, typer.Option(help="Only tasks in this state.")] = None,
    stage: Annotated[int | None, typer.Option(min=1, help="Only tasks of a stage.")] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Tasks of this attempt of the job [the newest].")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow it to its end first, with a bar for each stage.")
    ] = False,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a job: its stages, what it waits for or asks, and what has failed; or its tasks.

    Exit codes with --watch: 0 completed, 1 failed, cancelled or terminated, 4 parked: it waits for
    your answer.

    \b
    Examples:
      docflow job show 5eed5eed
      docflow job show 5eed5eed --watch
      docflow job show 5eed5eed tasks --state FAILED
    """
    wanted = {"status": state, "stage": stage, "attempt": attempt}
    if part is not None:
        if watch:
            stop(UsageError("--watch goes with the job as a whole"))
        _tasks(context, job, limit, wanted, output)
        return
    if given := [name for name, value in wanted.items() if value is not None]:
        stop(UsageError(f"--{'state' if given[0] == 'status' else given[0]} goes with tasks"))
    with gateway(context) as connection:
        found = _follow(connection, job) if watch else ask(connection, "GET", _ONE, job)
    if watch:
        _show_end(found, output)
    _show(found, output)


def _show(job: Item, output: Output) -> None:
    rows: Mapping[str, Column] = {
        "job": "job_id",
        "type": lambda job: f"{job['job_type']}, version {job['version']}",
        "status": _status,
        "attempt": "attempt",
        "project": "project",
        "organisation": "organisation_id",
        "alias": "alias",
        "changed": "updated_at",
        "waits for": lambda job: _awaited(job["awaits"]),
        "reason": "error_details",
        "next": "next_steps",
        "asks for": lambda job: words(
            [f"{each['parameter']}: {each['question']}" for each in job["questions"]]
        ),
        "answer": lambda job: _answer(job) if job["next_steps"] else None,
    }
    show_one(job, output, rows, name="job_id")
    if output is not Output.TABLE:
        return
    numbers = ("done", "failed")
    show_list(job["stages"], output, _STAGE, name="stage", nothing="no stages yet", numbers=numbers)
    out = console()
    if job["failed_tasks"]:
        failed = table("task", "reason", title=f"{job['failed_count']:,} failed")
        for each in job["failed_tasks"]:
            failed.add_row(text(each["task_id"]), text(each["reason"]))
        out.print(failed)
    for note in JobOutputs.of(job["result_data"]).notes:
        out.print(text(f"note: {note}"), soft_wrap=True)


def _awaited(wait: Item | None) -> str | None:
    if wait is None:
        return None
    since = moment(datetime.fromisoformat(wait["since"]))
    return f"{wait['what']}; since {since}, it continues by itself"


def _answer(job: Item) -> str:
    id = job["job_id"][:_SHORT]
    given = "".join(f" --set {each['parameter']}=..." for each in job["questions"])
    taken = [each for each in ("retry", "skip", "fail") if each in job["next_steps"]]
    return f"docflow retry {id}{given}" if given else f"docflow {' | '.join(taken)} {id}"


def _done(stage: Item) -> int:
    counts = stage["counts"]
    return counts["completed"] + counts["failed"] + counts["cancelled"]


def _progress(stage: Item) -> str:
    return f"{_done(stage):,}/{stage['counts']['total']:,}"


def _rate(stage: Item) -> str:
    return "" if stage["rate"] is None else f"{stage['rate']:,.1f}/s"


def _left(stage: Item) -> str:
    """How long a stage is still going to take, about."""
    if stage["estimated_end"] is None or stage["state"] != StageState.RUNNING:
        return ""
    left = datetime.fromisoformat(stage["estimated_end"]) - datetime.now(UTC)
    minutes, seconds = divmod(max(0, round(left.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


_STAGE: Final[Mapping[str, Column]] = {
    "stage": "stage",
    "name": "name",
    "state": lambda stage: state_text(stage["state"]),
    "done": _progress,
    "failed": lambda stage: f"{stage['counts']['failed']:,}",
    "rate": _rate,
    "ends about": _left,
}


def _tasks(
    context: typer.Context, job: str, limit: int, wanted: Mapping[str, object], output: Output
) -> None:
    with gateway(context) as connection:
        found = listed(connection, f"{_path(_ONE, job)}/tasks", limit, **wanted)
    columns: Mapping[str, Column] = {
        "task": "task_id",
        "status": _status,
        "done": lambda task: f"{'kept, ' if task['kept'] else ''}attempt {task['attempt']}",
        "tries": "retry_count",
        "changed": "updated_at",
        "reason": "error_details",
    }
    nothing = "no such tasks"
    show_list(found, output, columns, name="task_id", nothing=nothing, numbers=["tries"])
    _hint_more(found, limit, output, "first")


def _path(template: str, job: str) -> str:
    from urllib.parse import quote

    return template.format(quote(job))


@app.command()
def types(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List the job types that are installed, and packages that cannot be used.

    JSON has the schema of their parameters.

    \b
    Example:
      docflow job types
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", f"{_JOBS}/types")
    columns: Mapping[str, Column] = {
        "job type": "job_type",
        "version": "version",
        "package": "package",
        "stages": "stages",
        "parameters": lambda each: ", ".join(each["parameters"].get("properties", ())),
        "what it does": "description",
    }
    show_list(found["items"], output, columns, name="job_type", nothing="no job types")
    for problem in found["problems"]:
        typer.echo(text(problem).plain, err=True)


@app.command()
def submit(
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
            metavar="NAME=VALUE", help="A parameter; JSON if it fits the parameter. Repeated."
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="Whose work it is: projects share workers fairly.")
    ] = None,
    organisation: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="ID", help="Whose job it is [your first; an operator's: none]."
        ),
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
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a job and follow it to its end.

    The same request over the same bytes is the same job: it is shown, and not done again.

    Exit codes: 0 completed, 1 failed, cancelled or terminated, 2 wrong options, 4 parked: it waits
    for your answer.

    \b
    Examples:
      docflow job submit hello_world --param n=100
      docflow job submit process_raster scene.tif --project survey --limit 3
      docflow job submit hello_world --param webhook_url=https://client.example.com/done
    """
    given = _parameters(param or ())
    order = {"job_type": job_type, "typed": given, "project": project, "limit": limit}
    with gateway(context) as connection:
        named: Mapping[str, str] = (
            {} if file is None else _stored(connection, job_type, file, given)
        )
        body: dict[str, Any] = {**order, "rerun": rerun, "parameters": named}
        body["organisation_id"] = organisation
        done = ask(connection, "POST", _JOBS, body=body)
        for note in done["notes"]:
            typer.echo(text(f"docflow: {note}").plain, err=True)
        if no_follow:
            what = "started job" if done["created"] else "asked for before: job"
            _show_begun(done, output, f"{what} {done['job_id']}")
            return
        if not done["created"]:
            typer.echo(f"asked for before, as job {done['job_id'][:_SHORT]}", err=True)
        ended = _follow(connection, done["job_id"])
    _show_end(ended, output)


def _parameters(given: Sequence[str]) -> Mapping[str, str]:
    parameters: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            stop(UsageError("--param: write NAME=VALUE"))
        if name in parameters:
            stop(UsageError(f"--param: {name} is given twice; write a list as JSON"))
        parameters[name] = value
    return parameters


def _stored(
    connection: "Connection", job_type: str, file: Path, given: Mapping[str, str]
) -> Mapping[str, str]:
    """Send a file; the parameter that names it."""
    with file.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    form = {"job_type": job_type, "sha256": sha256}
    stored = ask(connection, "POST", f"{_JOBS}/files", body=form, files={"file": file})
    if stored["parameter"] in given:
        stop(UsageError(f"--param: give {stored['parameter']} or a file, not both"))
    for name in stored["beside"]:
        if file.with_name(name).is_file():
            typer.echo(f"docflow: {name} lies beside it and is not uploaded", err=True)
    return {stored["parameter"]: stored["name"]}


def _show_begun(done: Item, output: Output, sentence: str) -> None:
    if output is Output.TABLE:
        typer.echo(
            f"{sentence}; follow it with `docflow job show --watch {done['job_id'][:_SHORT]}`"
        )
    else:
        show_one(done, output, {}, name="job_id")


def _show_end(job: Item, output: Output) -> NoReturn:
    _show(job, output)
    exits = {JobStatus.COMPLETED: ExitCode.DONE, JobStatus.PARKED: ExitCode.PARKED}
    raise typer.Exit(exits.get(job["status"], ExitCode.FAILED))


_GOES_ON: Final = (JobStatus.QUEUED, JobStatus.PROCESSING)


def _follow(connection: "Connection", name: str) -> Item:
    """Show a job until it has ended, or waits for a person; the job as it is then."""
    from docflow.client.models import JobDocument
    from docflow.client.protocol import Request

    screen = _Screen()
    request = Request("GET", _path("/api/jobs/{}/events", name))
    with screen.shown():
        try:
            for each in connection.events(request, JobDocument):
                job = each.model_dump(mode="json")
                # The beginning of an alias names nothing.
                name = job["job_id"]
                screen.show(job)
                if job["status"] not in _GOES_ON:
                    return job
        except KeyboardInterrupt:
            screen.hint(
                "No longer following; the job continues: "
                f"`docflow job show --watch {name[:_SHORT]}`, `docflow cancel {name[:_SHORT]}`"
            )
            raise
    raise AssertionError("the stream has no end")


class _Screen:
    """A bar for each stage on a terminal; a line for each change elsewhere."""

    def __init__(self) -> None:
        self._console = console(stderr=True)
        self._bars: dict[int, TaskID] = {}
        self._said: dict[int, str] = {}
        self._waits: str | None = None

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

    def show(self, job: Item) -> None:
        """The job as it is now."""
        waiting = _awaited(job["awaits"])
        if waiting != self._waits:
            self._waits = waiting
            said = "it no longer waits" if waiting is None else f"waits for {waiting}"
            self._console.print(text(said))
        for stage in job["stages"]:
            if self._console.is_terminal:
                self._bar(stage)
            else:
                self._line(stage)

    def hint(self, sentence: str) -> None:
        """Something the person may want to know."""
        self._console.print(sentence)

    def _bar(self, stage: Item) -> None:
        number = stage["stage"]
        if number not in self._bars:
            self._bars[number] = self._progress.add_task("", total=None, figures="")
        self._progress.update(
            self._bars[number],
            description=f"{number} {stage['name']}",
            total=stage["counts"]["total"] or None,
            completed=_done(stage),
            figures=", ".join(_figures(stage)),
            visible=stage["state"] != StageState.WAITING,
        )

    def _line(self, stage: Item) -> None:
        number, state = stage["stage"], stage["state"]
        if state != StageState.WAITING and self._said.get(number) != state:
            self._said[number] = state
            self._console.print(text(f"stage {number} ({stage['name']}): {state}"))


def _figures(stage: Item) -> Iterable[str]:
    yield _progress(stage)
    if failed := stage["counts"]["failed"]:
        yield f"{failed:,} failed"
    if stage["state"] == StageState.RUNNING and (rate := _rate(stage)):
        yield rate
    if left := _left(stage):
        yield f"{left} left"


@app.command()
def restart(
    context: typer.Context,
    job: JobArgument,
    from_stage: Annotated[
        int | None,
        typer.Option("--from-stage", min=1, help="Begin at this stage [the one that failed]."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Begin another attempt at a job that has failed; its good tasks are kept.

    \b
    Examples:
      docflow job restart 5eed5eed
      docflow job restart 5eed5eed --from-stage 2
    """
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_ONE}/restart", job, body={"from_stage": from_stage})
    begun = f"attempt {done['attempt']} of job {done['job_id'][:_SHORT]} has begun"
    _show_begun(done, output, begun)


@app.command()
def webhooks(
    context: typer.Context,
    job: JobArgument,
    retry: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Send that of this receiver again, with its id and content.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List deliveries of webhooks about the end of a job, the newest first, or send one again.

    \b
    Examples:
      docflow job webhooks 5eed5eed
      docflow job webhooks 5eed5eed --retry 0
    """
    if retry is not None:
        _send_again(context, job, retry, output)
        return
    with gateway(context) as connection:
        found = ask(connection, "GET", _WEBHOOKS, job)
    columns: Mapping[str, Column] = {
        "number": "number",
        "sent": "sent_at",
        "to": "url",
        "answer": "status_code",
        "attempt": lambda each: f"{each['delivery_attempt']} of {each['attempts']}",
        "result": lambda each: each["problem"] or "delivered",
    }
    nothing, numbers = "nothing was sent so far", ("number", "answer")
    show_list(found, output, columns, name="number", nothing=nothing, numbers=numbers)


def _send_again(context: typer.Context, job: str, number: int, output: Output) -> None:
    with gateway(context) as connection:
        sent = ask(connection, "POST", f"{_WEBHOOKS}/{{}}/send", job, number)
    if output is Output.TABLE:
        typer.echo(text(f"sending to {sent['url']} again").plain)
    else:
        show_one(sent, output, {}, name="number")
