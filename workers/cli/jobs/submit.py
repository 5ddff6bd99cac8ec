"""`docflow submit jobs`: a job is started and followed to its end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, run
from workers.cli.jobs.context import open_jobs, parameters_of
from workers.cli.jobs.output import exit_code, show_job
from workers.cli.output import JsonOption, print_json

if TYPE_CHECKING:
    from contracts.jobs import JobRequest
    from workers.services.jobs.submission import Submitted

app = typer.Typer(rich_markup_mode=None)


@app.command()
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
    from workers.cli.jobs.watch import follow

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

    from contracts.jobs import JobRequest
    from workers.services.jobs.parameters import errors_of

    try:
        return JobRequest(job_type=job_type, parameters=parameters, **options)
    except ValidationError as error:
        named = "; ".join(f"{e.location}: {e.message}" for e in errors_of(error, within=""))
        raise UsageError(named) from None


def _show_started(done: "Submitted", *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "job_id": done.job_id,
                "attempt": done.attempt,
                "created": done.created,
                "notes": list(done.notes),
            }
        )
        return
    what = "started" if done.created else "asked for before:"
    typer.echo(f"{what} job {done.job_id}; see `docflow jobs watch {done.job_id[:12]}`")
    for note in done.notes:
        typer.echo(f"docflow: {note}", err=True)
