"""`docflow watch`: what transfers do by the clock.

`docflow schedule trigger | pause | resume` does so with the schedule of each.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import typer

from workers.shared.cli.errors import UsageError, stop
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
ExpectedOption = Annotated[
    bool, typer.Option("--expected", help="Expected files, and what came on which day.")
]
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
def list_watches(
    context: typer.Context, expected: ExpectedOption = False, output: OutputOption = Output.TABLE
) -> None:
    """List watches, with what their last looks came to; or what is expected for the newest day.

    \b
    Examples:
      docflow watch list
      docflow watch list --expected
    """
    with gateway(context) as connection:
        path = "/api/v1/expected-files" if expected else "/api/v1/watches"
        found = ask(connection, "GET", path)["items"]
    if expected:
        name, nothing = _in("expected", "name"), "nothing is declared as expected"
        show_list(found, output, _EXPECTED, name=name, nothing=nothing)
    else:
        name, nothing = _in("watch", "name"), "no watch is declared"
        show_list(found, output, _WATCHES, name=name, nothing=nothing)


@app.command("show")
def show_watch(
    context: typer.Context,
    name: NameArgument,
    expected: ExpectedOption = False,
    unsent: Annotated[bool, typer.Option("--unsent", help="Only files without an event.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one watch and the newest files that it has seen; or what was expected on each day.

    Files that vanished stay for 30 days.

    \b
    Examples:
      docflow watch show acme-orders --unsent
      docflow watch show orders --expected
    """
    if expected:
        if unsent:
            stop(UsageError("--unsent goes with a watch"))
        _show_expected(context, name, output)
        return
    with gateway(context) as connection:
        query = {"unsent": unsent or None}
        found = ask(connection, "GET", "/api/v1/watches/{}", name, query=query)
    show_one(found, output, {**_WATCHES, **_BY_HAND}, name=_in("watch", "name"))
    if output is Output.TABLE:
        numbers = ["bytes"]
        nothing = "no such file was seen"
        show_list(found["files"], output, _FILES, name="path", nothing=nothing, numbers=numbers)


def _show_expected(context: typer.Context, name: str, output: Output) -> None:
    with gateway(context) as connection:
        found = ask(connection, "GET", "/api/v1/expected-files/{}", name)
    show_one(found, output, {**_EXPECTED, **_BY_HAND}, name=_in("expected", "name"))
    if output is Output.TABLE:
        show_list(found["days"], output, _DAYS, name="day", nothing="no day was checked yet")
