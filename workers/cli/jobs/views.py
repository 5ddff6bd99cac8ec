"""Looking at jobs: `docflow jobs list|show|tasks|watch`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from contracts.jobs import JOB, JobStatus, TaskStatus
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, run
from workers.cli.jobs.context import JobArgument, open_jobs
from workers.cli.jobs.output import exit_code, show_job, status_text
from workers.cli.output import JsonOption, console, moment, print_json, table, text
from workers.cli.runs import show_in_temporal
from workers.pipelines.base import Run

LimitOption = Annotated[int, typer.Option("--limit", min=1, max=500, help="At most so many.")]

app = typer.Typer(rich_markup_mode=None)


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
    from workers.services.cursors import Cursor

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
        made = table("task", "status", "tries", "changed", "reason", numbers=["tries"])
        for each in found.tasks:
            made.add_row(
                text(each.task_id),
                status_text(each.status),
                text(each.retry_count),
                text(moment(each.updated_at)),
                text(each.error_details),
            )
        console().print(made)
    if found.next is not None:
        typer.echo(f"the next page: --token {found.next}", err=True)


async def show_run(cli: CliContext, known: Run, *, as_json: bool) -> None:
    """`docflow show` of a job, or of a part of one."""
    if known.kind.workflow == JOB:
        await _show(cli, known.key, as_json=as_json)
    else:
        await show_in_temporal(cli, known, as_json=as_json)


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
    from workers.cli.jobs.watch import follow

    async with open_jobs(cli) as (service, who):
        ended = await follow(service, who, job)
    if as_json:
        print_json(ended.model_dump(mode="json"))
    else:
        show_job(ended)
    raise typer.Exit(exit_code(ended.status))
