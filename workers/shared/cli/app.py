"""The command tree; each command is loaded when it is asked for."""

import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cached_property
from importlib.metadata import distribution, version
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

EXTENSIONS: Final = "docflow.commands"
"""Entry points that bring commands of their own: objects of class `typer.Typer`."""

_COMMANDS: Final[Mapping[str, str]] = {
    "setup": "workers.shared.cli.setup:app",
    "status": "workers.shared.cli.status:app",
    **dict.fromkeys(("list", "show", "report"), "workers.shared.cli.runs:app"),
    **dict.fromkeys(("retry", "skip", "fail", "cancel"), "workers.shared.cli.answers:app"),
    "clean": "workers.shared.cli.retention:app",
    "gateway": "workers.shared.cli.gateway:app",
    "login": "workers.shared.cli.contexts:login_app",
    "audit": "workers.shared.cli.tokens:audit_app",
}
"""Command to the entry point of the typer app that has it; those of pipelines come after it."""
_GROUPS: Final[Mapping[str, str]] = {
    "submit": "workers.shared.cli.submit:submit_commands",
    "run": "workers.shared.cli.following:run_commands",
    "context": "workers.shared.cli.contexts:app",
    "token": "workers.shared.cli.tokens:app",
    "message": "workers.shared.cli.messages:app",
    "dead-letter": "workers.shared.cli.dead_letters:app",
    "db": "workers.shared.cli.database:app",
    "worker": "workers.shared.cli.processes:worker_commands",
    "bridge": "workers.shared.cli.processes:bridge_commands",
    "schedule": "workers.shared.cli.schedules:app",
}
"""Group of commands to the entry point of its typer app, or of a function that makes it."""


class Commands(MutableMapping[str, Any]):
    """The commands by name; only the modules of a command that is asked for are imported.

    Most commands run for a moment only: whatever else is imported takes longer than they do.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*_COMMANDS, *self._of_pipelines, *_GROUPS, *self._of_extensions))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _load(self, name: str) -> Any:
        if name in _COMMANDS:
            return _built(_COMMANDS[name])[name]
        if name in _GROUPS:
            return _built(_GROUPS[name], name)[name]
        if name in self._of_pipelines:
            return _built(self._of_pipelines[name], name)[name]
        return self._of_extensions[name]

    @cached_property
    def _of_pipelines(self) -> Mapping[str, str]:
        from workers import catalogue

        return {
            name: entry
            for pipeline in catalogue.PIPELINES
            for name, entry in pipeline.commands.items()
        }

    @cached_property
    def _of_extensions(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        # Those of all distributions would be read from disk.
        for extension in distribution("docflow").entry_points.select(group=EXTENSIONS):
            # The development stack is declared by the distribution, but left out of images.
            if find_spec(extension.module.partition(".")[0]) is not None:
                found |= _built(extension.value.partition(" ")[0])
        return found


def _built(entry: str, name: str | None = None) -> Mapping[str, Any]:
    """The commands of the typer app at an entry point, as one group where it is given a name."""
    from workers.shared.register import load

    loaded: typer.Typer | Callable[[], typer.Typer] = load(entry)
    holder = typer.Typer(rich_markup_mode=None)
    holder.add_typer(loaded if isinstance(loaded, typer.Typer) else loaded(), name=name)
    return get_group(holder).commands


class CommandTree(TyperGroup):
    """The root of the tree."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"docflow {version('docflow')}")
        raise typer.Exit


def docflow(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """The life of every document that a company receives.

    \b
    Begin with:
      docflow setup
      docflow status
      docflow login http://localhost:8000
      docflow import submit equipment.xlsx --type equipment --project P1
      docflow upload submit people.xlsx --type MEMBERSHIP --context 3
      docflow batch start 7 1
      docflow job submit hello_world --param n=3

    setup, status, clean, gateway, type, db, worker and bridge read settings from the environment:
    DATABASE_URL, AZURE_SERVICE_BUS_CONNECTION_STRING, AZURE_SERVICE_BUS_QUEUE_NAME,
    AZURE_STORAGE_CONNECTION_STRING (or DOCFLOW_BLOB_FOLDER), AZURE_STORAGE_CONTAINER_NAME,
    TEMPORAL_ADDRESS, TEMPORAL_UI_ADDRESS. The other commands ask the gateway that you have logged
    in to.
    """
    # Commands report in one line what is wrong; the client's own warnings are for processes that
    # configure logging.
    logging.getLogger("azure").addHandler(logging.NullHandler())


def build_app() -> typer.Typer:
    """The command tree over the pipelines of the catalogue."""
    return typer.Typer(
        cls=CommandTree,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=docflow,
    )


app = build_app()
