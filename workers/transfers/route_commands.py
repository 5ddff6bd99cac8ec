"""`docflow routes` and what transfers do by the clock."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import ExitCode, run
from workers.shared.cli.output import (
    JsonOption,
    console,
    moment,
    print_json,
    read_body,
    table,
    text,
)
from workflows.transfers.watches import EXPECTED_PREFIX, WATCH_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from rich.table import Table

    from workers.transfers.routes import UnmatchedEvents
    from workers.transfers.watch_commands import ClockService, ExpectedView, WatchView
    from workflows.transfers.routes import RouteRule


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Routes: rules that say which queue takes an event.",
)

QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
RuleArgument = Annotated[str, typer.Argument(metavar="RULE", help="Name of the rule.")]
_ANY = "Text that it equals; * stands for any characters."


@app.command("list")
def list_rules(
    context: typer.Context,
    queue: Annotated[str | None, typer.Option(help="Only those of a queue.")] = None,
    unmatched: Annotated[
        bool, typer.Option("--unmatched", help="Events that no rule has matched, instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rules by queue, with what is wrong with any of them.

    \b
    Examples:
      docflow routes list --queue jobstmsroute
      docflow routes list --unmatched
    """
    run(_list(cli_context(context), queue, unmatched=unmatched, as_json=as_json))


async def _list(cli: CliContext, queue: str | None, *, unmatched: bool, as_json: bool) -> None:
    from workers.transfers.factory import open_routes

    async with open_routes(cli.environment) as (service, who):
        if unmatched:
            _print_unmatched(await service.unmatched(who), as_json=as_json)
            return
        found = await service.listing(who, queue)
    if as_json:
        print_json(
            {
                "rules": [each.model_dump(mode="json") for each in found.rules],
                "unusable": [each.model_dump(mode="json") for each in found.unusable],
                "ties": [[_name(one), _name(other)] for one, other in found.ties],
            }
        )
        return
    if not found.rules and not found.unusable:
        typer.echo("there are no rules; `docflow routes add --help` makes one")
        return
    console().print(_rules_table(found.rules))
    for each in found.unusable:
        console(stderr=True).print(
            text(f"{each.queue}/{each.rule} never takes an event: {each.reason}", "bold yellow")
        )
    for one, other in found.ties:
        console(stderr=True).print(
            text(
                f"{_name(one)} and {_name(other)} could take the same event; {_name(one)} gets it",
                "bold yellow",
            )
        )


def _print_unmatched(found: "UnmatchedEvents", *, as_json: bool) -> None:
    if as_json:
        print_json([_event(each) for each in found.rows])
    elif not found.rows:
        typer.echo("every event was matched by a rule, or assigned by a person")
        return
    else:
        made = table("transfer", "since", "account", "source", "type", "subject")
        for each in found.rows:
            made.add_row(
                text(each.transfer_id[:12]),
                text(moment(each.at)),
                text(each.account_id),
                text(each.source),
                text(each.type),
                text(each.subject),
            )
        console().print(made)
    if found.total > len(found.rows):
        typer.echo(f"the newest {len(found.rows)} of {found.total:,} events", err=True)
    if not as_json:
        typer.echo("add a rule, then `docflow transfers reroute`", err=True)


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
        bool, typer.Option("--replace", help="The rule may be there already.")
    ] = False,
) -> None:
    """Add a rule; one that could win as well as another is refused.

    \b
    Examples:
      docflow routes add jobstmsroute --account TMS001 --source TMS.Route --type Succeeded
      docflow routes add jobs --source 'FTP.*' --priority -10
    """
    fields: dict[str, Any] = {
        "queue": queue,
        "account_id": account,
        "source": source,
        "type": type_,
        "subject": subject,
        "priority": priority,
    }
    if rule is not None:
        fields["rule"] = rule
    run(_add(cli_context(context), fields, replace=replace))


async def _add(cli: CliContext, fields: dict[str, Any], *, replace: bool) -> None:
    from workers.transfers.factory import open_routes

    queue = str(fields.get("queue", ""))
    async with open_routes(cli.environment, action="routes add", object=queue) as (service, who):
        made = await service.add(who, fields, replace=replace)
    typer.echo(f"rule {made.rule} of queue {made.queue} takes events from now on")


@app.command()
def test(
    context: typer.Context,
    event: Annotated[
        Path, typer.Argument(metavar="EVENT.json", help="File with the event as JSON.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Which rule takes an event, and why the nearest others do not.

    Exit codes: 0 one does, 1 none does, 2 it is not an event.

    \b
    Example:
      docflow routes test event.json
    """
    raise typer.Exit(run(_test(cli_context(context), event, as_json=as_json)))


async def _test(cli: CliContext, event: Path, *, as_json: bool) -> ExitCode:
    from workers.transfers.factory import open_routes
    from workers.transfers.routes import read_key

    key = read_key(read_body(event))
    async with open_routes(cli.environment) as (service, who):
        verdict = await service.test(who, key)
    matched = verdict.winner is not None
    code = ExitCode.DONE if matched else ExitCode.FAILED
    if as_json:
        print_json(verdict.model_dump(mode="json"))
        return code
    if verdict.winner is not None:
        typer.echo(f"{_name(verdict.winner)} takes it: queue {verdict.winner.queue}")
    else:
        typer.echo(f"none of {verdict.rules:,} rules takes it")
    if verdict.others:
        made = table("rule", "why not")
        for each in verdict.others:
            made.add_row(text(f"{each.queue}/{each.rule}"), text(each.reason))
        console().print(made)
    return code


@app.command()
def enable(context: typer.Context, queue: QueueArgument, rule: RuleArgument) -> None:
    """Have a rule take events again.

    \b
    Example:
      docflow routes enable jobs 4
    """
    run(_enable(cli_context(context), queue, rule, enabled=True))


@app.command()
def disable(context: typer.Context, queue: QueueArgument, rule: RuleArgument) -> None:
    """Have a rule take no events; it stays where it is.

    \b
    Example:
      docflow routes disable jobs 4
    """
    run(_enable(cli_context(context), queue, rule, enabled=False))


async def _enable(cli: CliContext, queue: str, rule: str, *, enabled: bool) -> None:
    from workers.transfers.factory import open_routes

    action = f"routes {'enable' if enabled else 'disable'}"
    opened = open_routes(cli.environment, action=action, object=f"{queue}/{rule}")
    async with opened as (service, who):
        await service.enable(who, queue, rule, enabled=enabled)
    typer.echo(f"rule {rule} of queue {queue} is {'enabled' if enabled else 'disabled'}")


@app.command()
def remove(context: typer.Context, queue: QueueArgument, rule: RuleArgument) -> None:
    """Remove a rule; what it was stays in the history.

    \b
    Example:
      docflow routes remove jobs 4
    """
    run(_remove(cli_context(context), queue, rule))


async def _remove(cli: CliContext, queue: str, rule: str) -> None:
    from workers.transfers.factory import open_routes

    opened = open_routes(cli.environment, action="routes remove", object=f"{queue}/{rule}")
    async with opened as (service, who):
        await service.remove(who, queue, rule)
    typer.echo(f"rule {rule} of queue {queue} is removed")


@app.command()
def history(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Changes of rules, the newest first, with who made them.

    \b
    Example:
      docflow routes history --limit 10
    """
    run(_history(cli_context(context), limit, as_json=as_json))


async def _history(cli: CliContext, limit: int, *, as_json: bool) -> None:
    from workers.transfers.factory import open_routes

    async with open_routes(cli.environment) as (service, who):
        found = await service.trail(who, limit)
    if as_json:
        print_json([{"change": change, **rule.model_dump(mode="json")} for rule, change in found])
        return
    if not found:
        typer.echo("no rule was ever changed")
        return
    made = _rules_table([rule for rule, _ in found], [change for _, change in found])
    console().print(made)


def _rules_table(rules: "Sequence[RouteRule]", changes: "Sequence[str] | None" = None) -> "Table":
    first = ("change",) if changes else ()
    made = table(
        *first,
        "queue",
        "rule",
        "account",
        "source",
        "type",
        "subject",
        "priority",
        "",
        "by",
        "changed",
        numbers=["priority"],
    )
    for number, each in enumerate(rules):
        made.add_row(
            *((text(changes[number]),) if changes else ()),
            text(each.queue),
            text(each.rule),
            text(each.account_id),
            text(each.source),
            text(each.type),
            text(each.subject),
            text(each.priority),
            text("" if each.enabled else "disabled", "yellow"),
            text(each.by),
            text(moment(each.changed_at)),
        )
    return made


def _name(rule: "RouteRule") -> str:
    return f"{rule.queue}/{rule.rule}"


def _event(row: Any) -> dict[str, Any]:
    return {
        "transfer_id": row.transfer_id,
        "since": row.at.isoformat(),
        "account_id": row.account_id,
        "source": row.source,
        "type": row.type,
        "subject": row.subject,
        "reason": row.reason,
    }


watches = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Watches: folders of partners that are listed by the clock.",
)
expected = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Expected files: how many have to come by when.",
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As the file of watches has it.")]
LimitOption = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]
NoteOption = Annotated[str, typer.Option(help="Why, for those who find it paused.")]


def _open(cli: CliContext) -> "AbstractAsyncContextManager[ClockService]":
    from workers.transfers.factory import open_clocks

    return open_clocks(cli.environment)


@watches.command("list")
def list_watches(context: typer.Context, as_json: JsonOption = False) -> None:
    """Watches, with what their last looks came to.

    \b
    Example:
      docflow transfers watches list
    """
    run(_list_watches(cli_context(context), as_json=as_json))


async def _list_watches(cli: CliContext, *, as_json: bool) -> None:
    async with _open(cli) as service:
        found = await service.watches()
    if as_json:
        print_json([_watch_json(each) for each in found])
        return
    if not found:
        typer.echo("no watch is declared")
        return
    columns = ("watch", "partner", "path", "state", "last look", "files", "settling", "returned")
    made = table(*columns, "problem")
    for each in found:
        state = each.state
        result = state and state.result
        made.add_row(
            text(each.watch.name),
            text(each.watch.partner),
            text(each.watch.path),
            text(each.schedule.state),
            text(moment(state and state.looked)),
            text(result.files if result else ""),
            text(result.settling if result else ""),
            text(result.returned if result else ""),
            text(_problem(each), "bold yellow"),
        )
    console().print(made)


def _problem(view: "WatchView") -> str:
    if view.state is None:
        return ""
    return view.state.problem or "; ".join(view.state.result.problems)


def _watch_json(view: "WatchView") -> dict[str, object]:
    return {
        "watch": view.watch.model_dump(mode="json"),
        "schedule": view.schedule.state,
        "next": view.schedule.next_run and view.schedule.next_run.isoformat(),
        "last": view.state and view.state.model_dump(mode="json"),
    }


@watches.command("files")
def files(
    context: typer.Context,
    name: NameArgument,
    unsent: Annotated[bool, typer.Option("--unsent", help="Only those without an event.")] = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """Files that a watch has seen, the newest first; those that vanished stay for 30 days.

    \b
    Example:
      docflow transfers watches files acme-orders --unsent
    """
    run(_files(cli_context(context), name, limit, unsent=unsent, as_json=as_json))


async def _files(cli: CliContext, name: str, limit: int, *, unsent: bool, as_json: bool) -> None:
    async with _open(cli) as service:
        found = await service.files(name, limit, unsent=unsent)
        transfers = {each.path: service.transfer_of(name, each) for each in found}
    if as_json:
        print_json(
            [{**each.model_dump(mode="json"), "transfer": transfers[each.path]} for each in found]
        )
        return
    if not found:
        typer.echo("no such file was seen")
        return
    made = table("path", "bytes", "changed", "since", "transfer", "vanished", numbers=["bytes"])
    for each in found:
        made.add_row(
            text(each.path),
            text(each.size),
            text(moment(each.changed)),
            text(moment(each.since)),
            text((transfers[each.path] or "")[:12] or each.problem or "not sent"),
            text(moment(each.vanished)),
        )
    console().print(made)


@expected.command("list")
def list_expected(context: typer.Context, as_json: JsonOption = False) -> None:
    """What is expected, with what has come for the newest day.

    \b
    Example:
      docflow transfers expected list
    """
    run(_list_expected(cli_context(context), as_json=as_json))


async def _list_expected(cli: CliContext, *, as_json: bool) -> None:
    async with _open(cli) as service:
        found = await service.expected()
    if as_json:
        print_json([_expected_json(each) for each in found])
        return
    if not found:
        typer.echo("nothing is declared as expected")
        return
    made = table("name", "queue", "files", "deadline", "schedule", "day", "came", "state")
    for each in found:
        wanted, day = each.expectation, each.day
        made.add_row(
            text(wanted.name),
            text(wanted.queue),
            text(wanted.count),
            text(f"{wanted.deadline:%H:%M} {wanted.zone}"),
            text(each.schedule.state),
            text(day.day if day else ""),
            text(day.count if day else ""),
            text(day.state if day else "not checked yet"),
        )
    console().print(made)


def _expected_json(view: "ExpectedView") -> dict[str, object]:
    return {
        "expected": view.expectation.model_dump(mode="json"),
        "schedule": view.schedule.state,
        "day": view.day and view.day.model_dump(mode="json"),
    }


@expected.command("days")
def days(
    context: typer.Context, name: NameArgument, limit: LimitOption = 31, as_json: JsonOption = False
) -> None:
    """What came for each day, the newest first.

    \b
    Example:
      docflow transfers expected days orders
    """
    run(_days(cli_context(context), name, limit, as_json=as_json))


async def _days(cli: CliContext, name: str, limit: int, *, as_json: bool) -> None:
    async with _open(cli) as service:
        found = await service.days(name, limit)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
        return
    made = table("day", "state", "came", "in time", "deadline", "closed by")
    for each in found:
        values = (each.day, each.state, each.count, each.in_time, moment(each.deadline), each.by)
        made.add_row(*map(text, values))
    console().print(made)


def _add_verbs(app: typer.Typer, prefix: str, group: str, example: str) -> None:
    """`run`, `pause` and `resume`, the same for both groups."""

    def now(context: typer.Context, name: NameArgument) -> None:
        run(_run(cli_context(context), prefix, name))

    def pause(context: typer.Context, name: NameArgument, note: NoteOption = "") -> None:
        run(_pause(cli_context(context), prefix, name, note, paused=True))

    def resume(context: typer.Context, name: NameArgument, note: NoteOption = "") -> None:
        run(_pause(cli_context(context), prefix, name, note, paused=False))

    helps = {
        "run": (now, "Have it done now, whatever the clock says."),
        "pause": (pause, "Stop it until it is resumed; workers that start change nothing."),
        "resume": (resume, "Let the clock start it again."),
    }
    for verb, (command, does) in helps.items():
        text = f"{does}\n\n\b\nExample:\n  docflow transfers {group} {verb} {example}"
        app.command(verb, help=text)(command)


async def _run(cli: CliContext, prefix: str, name: str) -> None:
    async with _open(cli) as service:
        await service.run(prefix, name)
    typer.echo(f"{name} is begun; `docflow transfers` shows what comes of it")


async def _pause(cli: CliContext, prefix: str, name: str, note: str, *, paused: bool) -> None:
    by = cli.user
    async with _open(cli) as service:
        await service.pause(prefix, name, f"{by}: {note}" if note else by, paused=paused)
    typer.echo(f"{name} is {'paused' if paused else 'resumed'}")


_add_verbs(watches, WATCH_PREFIX, "watches", "acme-orders")
_add_verbs(expected, EXPECTED_PREFIX, "expected", "orders")
