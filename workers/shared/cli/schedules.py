"""`docflow schedule`: what docflow starts by the clock."""

from typing import Annotated

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import run
from workers.shared.cli.output import print_json
from workers.shared.cli.remote import (
    Output,
    OutputOption,
    ReasonOption,
    ask,
    gateway,
    show_list,
    show_one,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/schedules"
_COLUMNS = {
    "schedule": "id",
    "state": "state",
    "when": "when",
    "next run": "next_run",
    "last run": "last_run",
    "workflow": "workflow",
    "note": "note",
}
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id in `schedule list`.")]


@app.command("list")
def list_schedules(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List the schedules that docflow declares, and whether Temporal has them so.

    \b
    Example:
      docflow schedule list
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", _PATH)["items"]
        show_list(found, output, _COLUMNS, name="id", nothing="docflow declares no schedules")
    is_behind = any(each["state"] in ("missing", "differs") for each in found)
    if is_behind and output is Output.TABLE:
        typer.echo("`docflow schedule reconcile` makes them as declared", err=True)


@app.command()
def show(context: typer.Context, id: IdArgument, output: OutputOption = Output.TABLE) -> None:
    """Show one schedule.

    \b
    Example:
      docflow schedule show batch-sweeper
    """
    with gateway(context) as connection:
        show_one(ask(connection, "GET", f"{_PATH}/{{}}", id), output, _COLUMNS, name="id")


@app.command()
def pause(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Pause a schedule until you resume it; workers that start change nothing.

    \b
    Example:
      docflow schedule pause batch-sweeper --reason "the auditors look"
    """
    _change(context, id, "pause", reason, output)


@app.command()
def resume(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Let a schedule start runs again.

    \b
    Example:
      docflow schedule resume batch-sweeper
    """
    _change(context, id, "resume", reason, output)


@app.command()
def trigger(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a run now; while one is under way, that one counts.

    \b
    Example:
      docflow schedule trigger batch-sweeper
    """
    _change(context, id, "trigger", reason, output)


def _change(context: typer.Context, id: str, verb: str, reason: str | None, output: Output) -> None:
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_PATH}/{{}}/{verb}", id, body={"reason": reason})
        show_one(done, output, _COLUMNS, name="id")


@app.command("reconcile")
def reconcile_schedules(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Make every declared schedule as this release declares it, in Temporal itself.

    Workers do so when they start. Paused ones stay paused, and schedules of others are left alone.
    What the file of watches declares no longer is deleted.

    \b
    Example:
      docflow schedule reconcile
    """
    run(_reconcile(cli_context(context), output))


async def _reconcile(cli: CliContext, output: Output) -> None:
    from workers.shared.connect import connect
    from workers.shared.schedules import declared_schedules, delete_undeclared, reconcile

    declared, client = declared_schedules(environment=cli.environment), await connect()
    pipelines = {row.pipeline for row in declared.values()}
    done = {
        **await reconcile(client, pipelines, declared),
        **await delete_undeclared(client, pipelines, cli.environment),
    }
    if output is Output.JSON:
        print_json(done)
        return
    for id, change in done.items():
        typer.echo(id if output is Output.NAME else f"{id}: {change}")
