"""`docflow run wait` and `docflow run watch`: runs as they go on."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from workers.shared.cli.errors import ExitCode
from workers.shared.cli.output import console, moment, state_text, text
from workers.shared.cli.progress import progress
from workers.shared.cli.remote import Item, Output, OutputOption, gateway, show_list
from workers.shared.cli.runs import show_run, words
from workers.shared.text import one_line

if TYPE_CHECKING:
    from docflow.client.models import RunDetail, RunRecord
    from docflow.client.synchronous import Connection

app = typer.Typer(rich_markup_mode=None)
_ENDED_BADLY = ("failed", "cancelled")


@app.command()
def wait(
    context: typer.Context,
    id: Annotated[str, typer.Argument(metavar="ID", help="Workflow id of the run.")],
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Wait at most so long.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Wait until a run has ended or needs a person, and show it.

    Exit code 0 if it has ended well, 4 if it needs a person, 1 if it failed, was cancelled, or goes
    on after the timeout.

    \b
    Examples:
      docflow run wait ID
      docflow run wait ID --timeout 600 -o json
    """
    with gateway(context) as connection:
        follow(connection, [id], output, timeout)


def follow(
    connection: "Connection", ids: Sequence[str], output: Output, timeout: float | None = None
) -> None:
    """Wait until runs have ended or need a person, and show each.

    Raises:
        typer.Exit: One of them has not ended well.
        TooLate: One of them is still going on after `timeout`.
    """
    ended: list[Item] = []
    code = ExitCode.DONE
    for id in ids:
        run = _waited(connection, id, timeout)
        # A run that waits for an answer says more than one that failed.
        code = max(code, _exit_code(run))
        ended.append(run.model_dump(mode="json"))
        if output is Output.TABLE or len(ids) == 1:
            show_run(ended[-1], output)
    if len(ids) > 1 and output is not Output.TABLE:
        show_list(ended, output, {}, name="id", nothing="")
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def _waited(connection: "Connection", id: str, timeout: float | None) -> "RunDetail":
    with progress(id) as shown:

        def seen(run: "RunDetail") -> None:
            said = (run.own_state, words(run.counts), run.reason)
            shown(said=": ".join(filter(None, said)))

        try:
            return connection.wait(id, timeout, seen)
        except KeyboardInterrupt:
            typer.echo(one_line(f"{id} goes on: `docflow show {id}`"), err=True)
            raise


def _exit_code(run: "RunDetail") -> ExitCode:
    if run.needs_attention:
        return ExitCode.PARKED
    # State of another run, to which this one has left the work.
    is_undone = run.details.get("earlier") not in (None, "completed")
    return ExitCode.FAILED if run.state in _ENDED_BADLY or is_undone else ExitCode.DONE


@app.command()
def watch(
    context: typer.Context,
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Workflow id of one run, until it ends.")
    ] = None,
    pipeline: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Print only runs of this pipeline; may be repeated."),
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="Print only runs of this project, or account.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print each change of one run until it ends, or of all runs that you may see.

    One run is printed first as it is now. `-o json` prints one object a line. If the connection
    breaks, no change is lost.

    \b
    Examples:
      docflow run watch ID
      docflow run watch --project P1 -o json
    """
    from docflow.client.models import RunRecord
    from docflow.client.protocol import Request, place

    path = "/api/v1/events" if id is None else place("/api/v1/runs/{id}/events", id=id)
    request = Request("GET", path, query={"pipeline": pipeline, "project": project})
    with gateway(context) as connection:
        for run in connection.events(request, RunRecord):
            _print(run, output)


def _print(run: "RunRecord", output: Output) -> None:
    if output is Output.TABLE:
        said = text(f"{moment(run.changed_at)}  {run.id}  {run.reason or ''}".rstrip())
        console().print(state_text(run.state), said, soft_wrap=True)
    elif output is Output.NAME:
        typer.echo(text(run.id).plain)
    else:
        typer.echo(json.dumps(run.model_dump(mode="json")))


def run_commands() -> typer.Typer:
    """All commands about runs: those that are commands of their own as well, and following."""
    from workers.shared.cli import answers, runs

    made = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for each in (runs.app, app, answers.app):
        made.add_typer(each)
    return made
