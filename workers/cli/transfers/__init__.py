"""`docflow transfers`: events and the jobs that they start; `docflow routes` and others beside it."""

import typer

from workers.cli.transfers import runs

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Transfers: list and show them, assign, reroute and resend.",
)
for commands in (runs.app,):
    app.add_typer(commands)
