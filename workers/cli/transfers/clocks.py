"""`docflow transfers watches|expected`: what happens by the clock."""

from typing import TYPE_CHECKING, Annotated

import typer

from contracts.transfers.watches import EXPECTED_PREFIX, WATCH_PREFIX
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import run
from workers.cli.output import JsonOption, console, moment, print_json, table, text

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from workers.services.transfers.clocks import ClockService, ExpectedView, WatchView

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
    from workers.services.transfers.factory import open_clocks

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
    by = cli.user or "operator"
    async with _open(cli) as service:
        await service.pause(prefix, name, f"{by}: {note}" if note else by, paused=paused)
    typer.echo(f"{name} is {'paused' if paused else 'resumed'}")


_add_verbs(watches, WATCH_PREFIX, "watches", "acme-orders")
_add_verbs(expected, EXPECTED_PREFIX, "expected", "orders")
