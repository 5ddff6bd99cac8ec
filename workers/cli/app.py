"""The command tree."""

import logging
from importlib.metadata import distribution
from importlib.util import find_spec
from typing import Final

import typer

from workers import catalogue
from workers.cli import (
    answers,
    database,
    gateway,
    processes,
    rejected,
    runs,
    schedules,
    setup,
    status,
)
from workers.pipelines.base import load

EXTENSIONS: Final = "docflow.commands"
"""Entry points that bring commands of their own: objects of class `typer.Typer`."""


def docflow() -> None:
    """The life of every document that a company receives.

    \b
    Begin with:
      docflow setup
      docflow status
      docflow submit imports equipment.xlsx --type equipment --project P1
      docflow spreadsheets submit people.xlsx --type MEMBERSHIP --organisation 1 --context 3
      docflow batches start 7 1

    Settings come from the environment: DATABASE_URL, AZURE_SERVICE_BUS_CONNECTION_STRING,
    AZURE_SERVICE_BUS_QUEUE_NAME, AZURE_STORAGE_CONNECTION_STRING (or DOCFLOW_BLOB_FOLDER),
    AZURE_STORAGE_CONTAINER_NAME, TEMPORAL_ADDRESS, TEMPORAL_UI_ADDRESS.
    """
    # Commands report in one line what is wrong; the client's own warnings are for processes that
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
    for commands in (setup.app, status.app, runs.app, answers.app, gateway.app):
        tree.add_typer(commands)
    for pipeline in catalogue.PIPELINES:
        for name, entry in pipeline.commands.items():
            tree.add_typer(load(entry), name=name)
    tree.add_typer(rejected.app, name="rejected")
    tree.add_typer(database.app, name="db")
    tree.add_typer(processes.worker_commands(), name="worker")
    tree.add_typer(processes.bridge_commands(), name="bridge")
    tree.add_typer(schedules.app, name="schedules")
    # Those of all distributions would be read from disk at every start.
    for extension in distribution("docflow").entry_points.select(group=EXTENSIONS):
        # The development stack is declared by the distribution, but left out of images.
        if find_spec(extension.module.partition(".")[0]) is not None:
            tree.add_typer(extension.load())
    return tree


app = build_app()
