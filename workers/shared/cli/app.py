"""The command tree; each command is loaded when it is asked for."""

import logging
import sys
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, distribution, version
from importlib.util import find_spec
from inspect import getdoc
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info, get_command_name, get_group
from typer.models import CommandInfo, TyperInfo

from workers.commands import TREE

EXTENSIONS: Final = "docflow.commands"
"""Entry points that bring commands of their own: objects of class `typer.Typer`."""


class Lazy(MutableMapping[str, Any]):
    """Commands by name, each built when it is asked for.

    Most commands run for a moment only: to build the others takes longer than they do.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    @abstractmethod
    def listed(self, name: str) -> str:
        """The text whose beginning lists a command; the command is not built for it."""

    @abstractmethod
    def _load(self, name: str) -> Any: ...

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __len__(self) -> int:
        return len(list(iter(self)))


class Members(Lazy):
    """The commands of a typer app.

    Args:
        app: With commands of its own, those of apps that it includes, and groups.
    """

    def __init__(self, app: typer.Typer) -> None:
        super().__init__()
        self._declared = dict(_declared(app))

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def listed(self, name: str) -> str:
        """What the declaration says, or the docstring of its function."""
        info = self._declared[name]
        return info.help or getdoc(info.callback) or ""

    def _load(self, name: str) -> Any:
        info = self._declared[name]
        if isinstance(info, CommandInfo):
            return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)
        assert info.typer_instance is not None
        return LazyGroup(Members(info.typer_instance), name, info.help)


def _declared(app: typer.Typer) -> Iterator[tuple[str, CommandInfo | TyperInfo]]:
    for command in app.registered_commands:
        assert command.callback is not None
        yield command.name or get_command_name(command.callback.__name__), command
    for group in app.registered_groups:
        assert group.typer_instance is not None
        if isinstance(group.name, str):
            yield group.name, group
        else:
            yield from _declared(group.typer_instance)


class Commands(Lazy):
    """All commands and groups; only the modules of one that is asked for are imported."""

    def __iter__(self) -> Iterator[str]:
        return iter((*TREE, *self._of_extensions, *self._of_programs))

    def listed(self, name: str) -> str:
        """The sentence that lists a command; one of docflow's own is not loaded for it."""
        return TREE[name].help if name in TREE else self[name].get_short_help_str(limit=80)

    def _load(self, name: str) -> Any:
        if name in TREE:
            entry, help, is_group = TREE[name]
            members = Members(_app_of(entry))
            return LazyGroup(members, name, help) if is_group else members[name]
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


def _app_of(entry: str) -> typer.Typer:
    """The typer app at an entry point, or that a function there makes."""
    loaded: typer.Typer | Callable[[], typer.Typer] = EntryPoint("", entry, "").load()
    return loaded if isinstance(loaded, typer.Typer) else loaded()


def _built(entry: str, name: str | None = None) -> Mapping[str, Any]:
    """The commands of a typer app of others, as one group if it is given a name."""
    holder = typer.Typer(rich_markup_mode=None)
    holder.add_typer(_app_of(entry), name=name)
    return get_group(holder).commands


class ListingGroup(TyperGroup):
    """A group that lists and completes its commands without building them."""

    def __init__(self, commands: Lazy, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._tree = self.commands = commands
        self._lists = False

    def get_params(self, ctx: Any) -> list[Any]:
        """The options; a flag that is not given is False.

        To read None in its place, typer would load pydantic.
        """
        params = super().get_params(ctx)
        for each in params:
            if getattr(each, "is_flag", False) and each.default is None:
                each.default = False
        return params

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


class LazyGroup(ListingGroup):
    """A group of docflow's own commands."""

    def __init__(self, commands: Lazy, name: str, help: str | None) -> None:
        super().__init__(
            commands, name=name, help=help, no_args_is_help=True, rich_markup_mode=None
        )


class CommandTree(ListingGroup):
    """The root of the tree."""

    def __init__(self, **attributes: Any) -> None:
        attributes.pop("commands")
        super().__init__(Commands(), **attributes)


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
      docflow batch start 7/1
      docflow job submit hello_world --param n=3

    setup, doctor, status, gateway, type, db, worker and bridge read settings from the environment:
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
