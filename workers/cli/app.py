"""The command tree."""

import logging

import typer

from stack import commands as stack
from stack.demo import command as demo
from workers import catalogue
from workers.cli import database, gateway, processes, rejected, schedules, status
from workers.cli.imports import answers, views
from workers.pipelines.base import load


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


def build_app() -> typer.Typer:
    """The command tree over the pipelines of the catalogue."""
    tree = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=docflow,
    )
    for commands in (status.app, views.app, answers.app, demo.app, gateway.app):
        tree.add_typer(commands)
    for pipeline in catalogue.PIPELINES:
        for name, entry in pipeline.commands.items():
            tree.add_typer(load(entry), name=name)
    tree.add_typer(rejected.app, name="rejected")
    tree.add_typer(database.app, name="db")
    tree.add_typer(processes.worker_commands(), name="worker")
    tree.add_typer(processes.bridge_commands(), name="bridge")
    tree.add_typer(schedules.app, name="schedules")
    tree.add_typer(stack.app, name="stack")
    return tree


app = build_app()
