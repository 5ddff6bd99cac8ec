"""`docflow watch` and `docflow expected`: what transfers do by the clock.

`docflow schedule trigger | pause | resume` does so with the schedule of each.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import typer

from workers.shared.cli.remote import (
    Column,
    Item,
    Output,
    OutputOption,
    ask,
    gateway,
    show_list,
    show_one,
    when,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
expected = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As the file of watches has it.")]


def _in(group: str, name: str) -> Column:
    """A field of a record within the item; None: there is no such record."""

    def shown(item: Item) -> object:
        return item[group] and item[group][name]

    return shown


def _found(name: str) -> Column:
    def shown(watch: Item) -> object:
        return watch["last"] and watch["last"]["result"][name]

    return shown


def _problem(watch: Item) -> object:
    last = watch["last"]
    return last and (last["problem"] or "; ".join(last["result"]["problems"]))


_WATCHES: Final[Mapping[str, Column]] = {
    "watch": _in("watch", "name"),
    "partner": _in("watch", "partner"),
    "path": _in("watch", "path"),
    "state": "schedule",
    "last look": lambda watch: watch["last"] and when(watch["last"]["looked"]),
    **{name: _found(name) for name in ("files", "settling", "returned")},
    "problem": _problem,
}
_FILES: Final[Mapping[str, Column]] = {
    "path": "path",
    "bytes": "size",
    "changed": lambda file: when(file["changed"]),
    "since": lambda file: when(file["since"]),
    "transfer": lambda file: (file["transfer_id"] or "")[:12] or file["problem"] or "not sent",
    "vanished": lambda file: when(file["vanished"]),
}
_EXPECTED: Final[Mapping[str, Column]] = {
    "name": _in("expected", "name"),
    "queue": _in("expected", "queue"),
    "files": _in("expected", "count"),
    "deadline": lambda each: f"{each['expected']['deadline'][:5]} {each['expected']['zone']}",
    "schedule": "schedule",
    "day": _in("day", "day"),
    "came": _in("day", "count"),
    "state": lambda each: each["day"]["state"] if each["day"] else "not checked yet",
}
_DAYS: Final[Mapping[str, Column]] = {
    "day": "day",
    "state": "state",
    "came": "count",
    "in time": "in_time",
    "deadline": lambda day: when(day["deadline"]),
    "closed by": "by",
}
_BY_HAND: Final[Mapping[str, Column]] = {
    "next": "next_run",
    "by hand": lambda each: f"docflow schedule trigger | pause | resume {each['schedule_id']}",
}


@app.command("list")
def list_watches(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List watches, with what their last looks came to.

    \b
    Example:
      docflow watch list
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", "/api/v1/watches")["items"]
    name = _in("watch", "name")
    show_list(found, output, _WATCHES, name=name, nothing="no watch is declared")


@app.command("show")
def show_watch(
    context: typer.Context,
    name: NameArgument,
    unsent: Annotated[bool, typer.Option("--unsent", help="Only files without an event.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one watch, and the newest files that it has seen.

    Those that vanished stay for 30 days.

    \b
    Example:
      docflow watch show acme-orders --unsent
    """
    with gateway(context) as connection:
        query = {"unsent": unsent or None}
        found = ask(connection, "GET", "/api/v1/watches/{}", name, query=query)
    show_one(found, output, {**_WATCHES, **_BY_HAND}, name=_in("watch", "name"))
    if output is Output.TABLE:
        numbers = ["bytes"]
        nothing = "no such file was seen"
        show_list(found["files"], output, _FILES, name="path", nothing=nothing, numbers=numbers)


@expected.command("list")
def list_expected(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List what is expected, with what has come for the newest day.

    \b
    Example:
      docflow expected list
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", "/api/v1/expected-files")["items"]
    name = _in("expected", "name")
    show_list(found, output, _EXPECTED, name=name, nothing="nothing is declared as expected")


@expected.command("show")
def show_expected(
    context: typer.Context, name: NameArgument, output: OutputOption = Output.TABLE
) -> None:
    """Show what is expected, and what came for each day, the newest first.

    \b
    Example:
      docflow expected show orders
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", "/api/v1/expected-files/{}", name)
    show_one(found, output, {**_EXPECTED, **_BY_HAND}, name=_in("expected", "name"))
    if output is Output.TABLE:
        show_list(found["days"], output, _DAYS, name="day", nothing="no day was checked yet")
