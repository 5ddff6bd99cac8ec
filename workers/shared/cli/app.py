"""The command tree; each command is loaded when it is asked for."""

import logging
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, distribution, version
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from workers.commands import TREE

EXTENSIONS: Final = "docflow.commands"
"""Entry points that bring commands of their own: objects of class `typer.Typer`."""


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
        return iter((*TREE, *self._of_extensions, *self._of_programs))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def listed(self, name: str) -> str:
        """The sentence that lists a command; one of docflow's own is not loaded for it."""
        return TREE[name].help if name in TREE else self[name].get_short_help_str(limit=80)

    def _load(self, name: str) -> Any:
        if name in TREE:
            entry, help, group = TREE[name]
            return _built(entry, *((name, help) if group else ()))[name]
        if name in self._of_extensions:
            return self._of_extensions[name]
        # Loaded last: the registers of all pipelines take longer than most commands.
        import_module("workers.catalogue")

        return _built(self._of_programs[name], name)[name]

    @property
    def _of_programs(self) -> Mapping[str, str]:
        """Groups of the pipelines that a program has added to the catalogue."""
        catalogue = sys.modules.get("workers.catalogue")
        pipelines = () if catalogue is None else catalogue.PIPELINES
        return {name: entry for pipeline in pipelines for name, entry in pipeline.commands.items()}

    @cached_property
    def _of_extensions(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        # Those of all distributions would be read from disk.
        for extension in distribution("docflow").entry_points.select(group=EXTENSIONS):
            # The development stack is declared by the distribution, but left out of images.
            if find_spec(extension.module.partition(".")[0]) is not None:
                found |= _built(extension.value.partition(" ")[0])
        return found


def _built(entry: str, name: str | None = None, help: str | None = None) -> Mapping[str, Any]:
    """The commands of the typer app at an entry point, as one group where it is given a name."""
    loaded: typer.Typer | Callable[[], typer.Typer] = EntryPoint("", entry, "").load()
    made = loaded if isinstance(loaded, typer.Typer) else loaded()
    if help is not None:
        made.info.help = help
    holder = typer.Typer(rich_markup_mode=None)
    holder.add_typer(made, name=name)
    return get_group(holder).commands


class CommandTree(TyperGroup):
    """The root of the tree."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._tree = self.commands = Commands()
        self._lists = False

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in their order."""
        return list(self._tree)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command; while commands are listed, its name and sentence alone."""
        if self._lists:
            return TyperCommand(cmd_name, help=self._tree.listed(cmd_name))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without loading them."""
        with self._listing():
            super().format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands that begin so, without loading them, or the options of the tree."""
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _listing(self) -> Generator[None]:
        self._lists = True
        try:
            yield
        finally:
            self._lists = False


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
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=docflow,
    )


app = build_app()
