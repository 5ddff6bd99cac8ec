"""`docflow login` and `docflow context`: which gateway commands ask, and as whom."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import UsageError, failures_in_one_line
from workers.shared.cli.remote import Column, Output, OutputOption, ask, show_list

if TYPE_CHECKING:
    from docflow.client.contexts import Contexts

login_app = typer.Typer(rich_markup_mode=None)
app = typer.Typer(rich_markup_mode=None)


@login_app.command()
def login(
    context: typer.Context,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Address of the gateway.")],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Call the context so.", show_default=True)
    ] = "default",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read the token from this file; - for standard input [asks]."
        ),
    ] = None,
) -> None:
    """Keep a gateway and your token, and use them from now on.

    The token is that of your identity provider, or an API token. The file with it is readable by
    you alone. Programs set DOCFLOW_ADDRESS and DOCFLOW_TOKEN instead.

    \b
    Examples:
      docflow login https://docflow.example.org
      docflow login http://localhost:8000 --name local --token-file token.txt
    """
    from docflow.client.contexts import Context, Contexts
    from docflow.client.synchronous import Connection

    token = _token(token_file)
    with failures_in_one_line():
        with Connection(address, token) as connection:
            # A token that is not accepted is not kept.
            ask(connection, "GET", "/api/v1/runs", query={"limit": 1})
        contexts = Contexts(cli_context(context).environment)
        contexts.keep(name, Context(address.rstrip("/"), token))
    typer.echo(f"logged in to {address.rstrip('/')} as context {name}")


def _token(file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        return typer.prompt("Token", hide_input=True).strip()
    if file is None or str(file) == "-":
        return sys.stdin.read().strip()
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {file}: {error}") from error


@app.command("context")
def choose(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Make commands ask this one from now on [lists all]."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Forget it, and your token for it.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the gateways that you have logged in to, or choose the one that commands ask.

    DOCFLOW_CONTEXT chooses one for one command.

    \b
    Examples:
      docflow context
      docflow context production
      docflow context local --remove
    """
    from docflow.client.contexts import Contexts

    with failures_in_one_line():
        contexts = Contexts(cli_context(context).environment)
        if name is None:
            if remove:
                raise UsageError("name the context to remove")
            _list(contexts, output)
        elif remove:
            contexts.remove(name)
        else:
            contexts.use(name)


def _list(contexts: "Contexts", output: Output) -> None:
    current = contexts.current
    found = [
        {"name": name, "address": each.address, "current": name == current}
        for name, each in contexts.all().items()
    ]
    columns: Mapping[str, Column] = {
        "context": "name",
        "address": "address",
        "current": lambda each: "*" if each["current"] else "",
    }
    nothing = "you have not logged in: `docflow login ADDRESS`"
    show_list(found, output, columns, name="name", nothing=nothing)
