"""`docflow schedule`: what docflow starts by the clock."""

from typing import Annotated

import typer

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
def list_schedules(
    context: typer.Context,
    id: Annotated[str | None, typer.Argument(metavar="ID", help="Only this one [all].")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the schedules that docflow declares, and whether Temporal has them so.

    \b
    Examples:
      docflow schedule list
      docflow schedule list batch-sweeper
    """
    with gateway(context) as connection:
        if id is not None:
            show_one(ask(connection, "GET", f"{_PATH}/{{}}", id), output, _COLUMNS, name="id")
            return
        found = ask(connection, "GET", _PATH)["items"]
        show_list(found, output, _COLUMNS, name="id", nothing="docflow declares no schedules")
    is_behind = any(each["state"] in ("missing", "differs") for each in found)
    if is_behind and output is Output.TABLE:
        typer.echo("`docflow setup --schedules` makes them as declared", err=True)


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
