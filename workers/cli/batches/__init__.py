"""`docflow batches`: batches of cases, and what they are made of."""

import typer

from workers.cli.batches import answers, concurrency, documents, events, resources, views

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Batches of cases: start, finish, cancel and look at them.",
)
for commands in (events.app, views.app, documents.app, resources.app, concurrency.app, answers.app):
    app.add_typer(commands)
