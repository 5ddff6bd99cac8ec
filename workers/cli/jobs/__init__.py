"""`docflow jobs`: jobs, their tasks and webhooks."""

import typer

from workers.cli.jobs import actions, views

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Jobs: list, watch, restart them, and see their tasks and webhooks.",
)
for commands in (views.app, actions.app):
    app.add_typer(commands)
