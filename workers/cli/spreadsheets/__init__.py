"""`docflow spreadsheets`: imports that pause for a person, from the terminal."""

import typer

from workers.cli.spreadsheets import answers, mappings, submit, views

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Spreadsheets: imports that pause for a person.",
)
for commands in (submit.app, views.app, mappings.app, answers.app):
    app.add_typer(commands)
