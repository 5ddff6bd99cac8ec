"""Commands that ask a gateway: which one, and how they show what it answers."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import failures_in_one_line
from workers.shared.cli.output import console, moment, pairs, print_json, table, text

if TYPE_CHECKING:
    from rich.text import Text

    from docflow.client.synchronous import Connection

Item = Mapping[str, Any]
Column = str | Callable[[Item], object]
"""A field of an item, or what makes its text."""
_PAGE: Final = 200


class Output(StrEnum):
    """How a command prints what it found."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="Print a table, JSON, YAML, or names alone.")
]
LimitOption = Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")]
ReasonOption = Annotated[
    str | None, typer.Option(help="Say why; the audit keeps it.", show_default=False)
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@contextmanager
def gateway(context: typer.Context) -> "Generator[Connection]":
    """The gateway of the current context; a failure becomes one line and an exit code."""
    from docflow.client.contexts import Contexts
    from docflow.client.synchronous import Connection

    with failures_in_one_line():
        chosen = Contexts(cli_context(context).environment).chosen()
        with Connection(chosen.address, chosen.token) as connection:
            yield connection


def ask(connection: "Connection", method: str, path: str, *values: object, **given: Any) -> Any:
    """The answer to a request, as plain JSON.

    Args:
        connection: To the gateway.
        method: HTTP method.
        path: With `{}` for each of the values.
        values: Of the path.
        given: `body`, `query` and others of `Request`.
    """
    from urllib.parse import quote

    from docflow.client.protocol import Request

    return connection.carry_out(
        Request(method, path.format(*(quote(str(each)) for each in values)), **given)
    )


def listed(connection: "Connection", path: str, limit: int, **query: Any) -> list[Item]:
    """The first items of a list, over as many pages as it takes."""
    found: list[Item] = []
    cursor: str | None = None
    while True:
        of_page = {"limit": min(limit - len(found), _PAGE), "cursor": cursor}
        page = ask(connection, "GET", path, query={**query, **of_page})
        found += page["items"]
        cursor = page["next"]
        if cursor is None or len(found) >= limit:
            return found


def show_list(
    items: Sequence[Item],
    output: Output,
    columns: Mapping[str, Column],
    *,
    name: Column,
    nothing: str,
    numbers: Iterable[str] = (),
) -> None:
    """Print a list.

    Args:
        items: What there is.
        output: How.
        columns: Titles of the table, to fields.
        name: What names an item; several may stand in one word of a path.
        nothing: What is said instead of an empty table.
        numbers: Titles that are set to the right.
    """
    if _print(items, output):
        return
    if output is Output.NAME:
        for each in items:
            typer.echo(text(_value(each, name)).plain)
        return
    if not items:
        typer.echo(nothing)
        return
    made = table(*columns, numbers=numbers)
    for each in items:
        made.add_row(*(_cell(_value(each, column)) for column in columns.values()))
    console().print(made)


def show_one(
    item: Item, output: Output, rows: Mapping[str, Column], *, name: Column, body: str | None = None
) -> None:
    """Print one thing; `body` is what stands below its fields as it is."""
    if _print(item, output):
        return
    if output is Output.NAME:
        typer.echo(text(_value(item, name)).plain)
        return
    out = console()
    out.print(pairs([(title, _value(item, row) or None) for title, row in rows.items()]))
    if body is not None:
        out.print(text(body), soft_wrap=True)


def when(at: str | None) -> str | None:
    """A moment of an answer, for people."""
    return None if at is None else moment(datetime.fromisoformat(at))


def _print(found: object, output: Output) -> bool:
    """Print for programs, if that is asked for."""
    if output is Output.JSON:
        print_json(found)
    elif output is Output.YAML:
        import yaml

        typer.echo(yaml.safe_dump(found, sort_keys=False), nl=False)
    return output in (Output.JSON, Output.YAML)


def _cell(value: object) -> "Text":
    from rich.text import Text

    return value if isinstance(value, Text) else text(value)


def _value(item: Item, column: Column) -> object:
    if callable(column):
        return column(item)
    value: Any = item.get(column)
    if isinstance(value, str) and (column == "at" or column.endswith(("_at", "_run"))):
        return when(value)
    if isinstance(value, list):
        return ", ".join(str(each) for each in cast("list[object]", value))
    return value
