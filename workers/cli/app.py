"""The command tree."""

import logging

import typer

from stack import commands as stack
from stack.demo import command as demo
from workers.cli import (
    answers,
    batches,
    database,
    gateway,
    processes,
    rejected,
    runs,
    schedules,
    spreadsheets,
    status,
)
from workers.cli.imports import submit

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
for commands in (status.app, runs.app, answers.app, demo.app, gateway.app):
    app.add_typer(commands)
app.add_typer(spreadsheets.app, name="spreadsheets")
app.add_typer(batches.app, name="batches")
app.add_typer(rejected.app, name="rejected")
app.add_typer(database.app, name="db")
app.add_typer(processes.worker, name="worker")
app.add_typer(processes.bridge, name="bridge")
app.add_typer(schedules.app, name="schedules")
app.add_typer(stack.app, name="stack")
