"""`docflow schedules`: what happens by the clock."""

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import run
from workers.shared.cli.output import JsonOption, console, moment, print_json, table, text

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What happens by the clock.")

_STYLES = {"active": "green", "paused": "bold yellow", "missing": "bold red", "differs": "bold red"}


@app.command("list")
def list_schedules(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the schedules that docflow declares, and whether Temporal has them so.

    \b
    Example:
      docflow schedules list
    """
    run(_list(cli_context(context), as_json=as_json))


async def _list(cli: CliContext, *, as_json: bool) -> None:
    from workers.shared.connect import connect
    from workers.shared.schedules import declared_schedules, look

    views = await look(await connect(), declared_schedules(environment=cli.environment))
    if as_json:
        print_json([view.model_dump(mode="json") for view in views])
        return
    made = table("schedule", "state", "when", "next run", "last run", "workflow")
    for view in views:
        made.add_row(
            text(view.id),
            text(view.state, _STYLES[view.state]),
            text(view.when),
            text(moment(view.next_run)),
            text(moment(view.last_run)),
            text(view.workflow),
        )
    console().print(made)
    if any(view.state in ("missing", "differs") for view in views):
        typer.echo("`docflow schedules reconcile` makes them as declared", err=True)


@app.command("reconcile")
def reconcile_schedules(context: typer.Context, as_json: JsonOption = False) -> None:
    """Make every declared schedule as this release declares it; workers do so when they start.

    Paused ones stay paused, and schedules of others are left alone. What the file of watches
    declares no longer is deleted.

    \b
    Example:
      docflow schedules reconcile
    """
    run(_reconcile(cli_context(context), as_json=as_json))


async def _reconcile(cli: CliContext, *, as_json: bool) -> None:
    from workers.shared.connect import connect
    from workers.shared.schedules import declared_schedules, delete_undeclared, reconcile

    declared, client = declared_schedules(environment=cli.environment), await connect()
    pipelines = {row.pipeline for row in declared.values()}
    done = {
        **await reconcile(client, pipelines, declared),
        **await delete_undeclared(client, pipelines, cli.environment),
    }
    if as_json:
        print_json(done)
        return
    for id, change in done.items():
        typer.echo(f"{id}: {change}")
