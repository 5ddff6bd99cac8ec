"""`docflow route`: rules that say which queue takes an event."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from workers.shared.cli.errors import ExitCode, UsageError, stop
from workers.shared.cli.output import console, read_object, text
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
)
from workers.shared.text import one_line

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)

QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
RuleArgument = Annotated[str, typer.Argument(metavar="RULE", help="Name of the rule.")]
_CHANGES: Final = 200
"""Changes that are listed at most."""
_ANY: Final = "Text that it equals; * stands for any characters."
_PATH: Final = "/api/v1/routes"
_ONE: Final = "/api/v1/routes/{}/{}"
_COLUMNS: Final[Mapping[str, Column]] = {
    "queue": "queue",
    "rule": "rule",
    "account": "account_id",
    "source": "source",
    "type": "type",
    "subject": "subject",
    "priority": "priority",
    "": lambda rule: text("" if rule["enabled"] else "disabled", "yellow"),
    "by": "by",
    "changed": "changed_at",
}


def _name(rule: Item) -> str:
    return f"{rule['queue']}/{rule['rule']}"


@app.command("list")
def list_rules(
    context: typer.Context,
    queue: Annotated[str | None, typer.Option(help="Only those of a queue.")] = None,
    history: Annotated[
        bool,
        typer.Option("--history", help="Changes of rules instead, with who made them."),
    ] = False,
    limit: LimitOption = 1_000,
    output: OutputOption = Output.TABLE,
) -> None:
    """List rules by queue, with what is wrong with any of them, or the newest changes of rules.

    Events that no rule matches: `docflow transfer list --state NoAssigned`.

    \b
    Examples:
      docflow route list --queue jobstmsroute
      docflow route list --history --limit 10
    """
    if history:
        if queue is not None:
            stop(UsageError("--history is of all queues"))
        _history(context, limit, output)
        return
    with gateway(context) as connection:
        found = listed(connection, _PATH, limit, queue=queue)
        wrong = ask(connection, "GET", _PATH, query={"limit": 1})
    nothing = "there are no rules; `docflow route add --help` makes one"
    show_list(found, output, _COLUMNS, name=_name, nothing=nothing, numbers=["priority"])
    for each in wrong["unusable"]:
        _warn(f"{_name(each)} never takes an event: {each['reason']}")
    for tie in wrong["ties"]:
        wins, loses = _name(tie["wins"]), _name(tie["loses"])
        _warn(f"{wins} and {loses} could take the same event; {wins} gets it")


def _warn(sentence: str) -> None:
    console(stderr=True).print(text(sentence, "bold yellow"))


@app.command()
def add(
    context: typer.Context,
    queue: QueueArgument,
    account: Annotated[str, typer.Option(help=f"accountId of the event. {_ANY}")] = "*",
    source: Annotated[str, typer.Option(help=f"Its source. {_ANY}")] = "*",
    type_: Annotated[str, typer.Option("--type", help=f"Its type. {_ANY}")] = "*",
    subject: Annotated[str, typer.Option(help=f"Its subject. {_ANY}")] = "*",
    priority: Annotated[int, typer.Option(help="The highest wins.")] = 0,
    rule: Annotated[
        str | None, typer.Option(help="Name of the rule [the next number of the queue].")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the rule that --rule names.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Add a rule; one that could win as well as another is refused.

    \b
    Examples:
      docflow route add jobstmsroute --account TMS001 --source TMS.Route --type Succeeded
      docflow route add jobs --source 'FTP.*' --priority -10
    """
    matches: dict[str, Any] = {
        "account_id": account,
        "source": source,
        "type": type_,
        "subject": subject,
        "priority": priority,
    }
    if replace and rule is None:
        stop(UsageError("--replace needs --rule"))
    with gateway(context) as connection:
        if replace:
            made = ask(connection, "PUT", _ONE, queue, rule, body=matches)
        else:
            made = ask(connection, "POST", _PATH, body={"queue": queue, "rule": rule, **matches})
    _changed(made, output, "takes events from now on")


def _changed(rule: Item, output: Output, does: str) -> None:
    if output is Output.TABLE:
        typer.echo(one_line(f"rule {rule['rule']} of queue {rule['queue']} {does}"))
    else:
        show_one(rule, output, {}, name=_name)


@app.command()
def test(
    context: typer.Context,
    event: Annotated[
        Path, typer.Argument(metavar="EVENT.json", help="File with the event as JSON.")
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show which rule takes an event, and why the nearest others do not.

    Exit codes: 0 one does, 1 none does, 2 it is not an event.

    \b
    Example:
      docflow route test event.json
    """
    with gateway(context) as connection:
        verdict = ask(connection, "POST", f"{_PATH}/test", body=read_object(event))
    winner = verdict["winner"]
    if output is not Output.TABLE:
        show_one(verdict, output, {}, name=lambda verdict: winner and _name(winner))
    else:
        if winner is None:
            typer.echo(f"none of {verdict['rules']:,} rules takes it")
        else:
            typer.echo(one_line(f"{_name(winner)} takes it: queue {winner['queue']}"))
        if verdict["others"]:
            columns: Mapping[str, Column] = {"rule": _name, "why not": "reason"}
            show_list(verdict["others"], output, columns, name=_name, nothing="")
    if winner is None:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def change(
    context: typer.Context,
    queue: QueueArgument,
    rule: RuleArgument,
    enable: Annotated[
        bool, typer.Option("--enable/--disable", help="Take events, or none.", show_default=False)
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Have a rule take events again, or none; it stays where it is.

    \b
    Example:
      docflow route change jobs 4 --disable
    """
    verb = "enable" if enable else "disable"
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_ONE}/{verb}", queue, rule)
    _changed(done, output, f"is {verb}d")


@app.command()
def remove(context: typer.Context, queue: QueueArgument, rule: RuleArgument) -> None:
    """Remove a rule; what it was stays in the history.

    \b
    Example:
      docflow route remove jobs 4
    """
    with gateway(context) as connection:
        ask(connection, "DELETE", _ONE, queue, rule)
    typer.echo(one_line(f"rule {rule} of queue {queue} is removed"))


def _history(context: typer.Context, limit: int, output: Output) -> None:
    query = {"limit": min(limit, _CHANGES)}
    with gateway(context) as connection:
        found = ask(connection, "GET", f"{_PATH}/changes", query=query)["items"]
    flat = [{"change": each["change"], **each["rule"]} for each in found]
    columns = {"change": "change", **_COLUMNS}
    nothing = "no rule was ever changed"
    show_list(flat, output, columns, name=_name, nothing=nothing, numbers=["priority"])
