"""The command tree."""

import logging
from importlib.metadata import distribution
from importlib.util import find_spec
from typing import Final

import typer

from workers.cli import (
    batches,
    database,
    gateway,
    processes,
    rejected,
    schedules,
    spreadsheets,
    status,
)
from workers.cli.imports import answers, submit, views

EXTENSIONS: Final = "docflow.commands"
"""Entry points that bring commands of their own: objects of class `typer.Typer`."""

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def docflow() -> None:
    """The life of every document a company takes in.

    \b
    Begin with:
      docflow status
      docflow submit imports equipment.xlsx --type equipment --project P1
      docflow spreadsheets submit people.xlsx --type MEMBERSHIP --organisation 1 --context 3
      docflow batches start 7 1

    Settings come from the environment: DATABASE_URL, AZURE_SERVICE_BUS_CONNECTION_STRING,
    AZURE_SERVICE_BUS_QUEUE_NAME, AZURE_STORAGE_CONNECTION_STRING (or DOCFLOW_BLOB_FOLDER),
    AZURE_STORAGE_CONTAINER_NAME, TEMPORAL_ADDRESS, TEMPORAL_UI_ADDRESS.
    """
    # Commands say in one line what is wrong; the client's own warnings are for processes that
    # configure logging.
    logging.getLogger("azure").addHandler(logging.NullHandler())


app.add_typer(submit.app, name="submit")
for commands in (status.app, views.app, answers.app, gateway.app):
    app.add_typer(commands)
app.add_typer(spreadsheets.app, name="spreadsheets")
app.add_typer(batches.app, name="batches")
app.add_typer(rejected.app, name="rejected")
app.add_typer(database.app, name="db")
app.add_typer(processes.worker, name="worker")
app.add_typer(processes.bridge, name="bridge")
app.add_typer(schedules.app, name="schedules")

# Those of all distributions would be read from disk at every start.
for extension in distribution("docflow").entry_points.select(group=EXTENSIONS):
    # The development stack is declared by the distribution, but left out of images.
    if find_spec(extension.module.partition(".")[0]) is not None:
        app.add_typer(extension.load())
