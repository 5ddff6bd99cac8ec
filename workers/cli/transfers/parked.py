"""`docflow transfers parked|answer`: transfers that wait for one cause, and one answer for them."""

from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, UsageError, run
from workers.cli.output import (
    JsonOption,
    console,
    is_interactive,
    moment,
    print_json,
    table,
    text,
)
from workers.text import one_line

if TYPE_CHECKING:
    from workers.services.transfers.parked_groups import ParkedGroup

app = typer.Typer(rich_markup_mode=None)


@app.command()
def parked(context: typer.Context, as_json: JsonOption = False) -> None:
    """Transfers that wait for a person, by queue and cause, the largest group first.

    \b
    Example:
      docflow transfers parked
    """
    run(_parked(cli_context(context), as_json=as_json))


async def _parked(cli: CliContext, *, as_json: bool) -> None:
    from workers.services.transfers.factory import open_groups

    async with open_groups(cli.environment, cli.user) as (groups, who):
        found = await groups.all(who)
    if as_json:
        print_json(
            [
                {
                    "group": each.key,
                    "queue": each.kind,
                    "cause": each.cause,
                    "since": each.since.isoformat(),
                    "transfers": [row.transfer_id for row in each.rows],
                }
                for each in found
            ]
        )
        return
    if not found:
        typer.echo("no transfer waits for a person")
        return
    made = table("group", "transfers", "queue", "since", "cause", numbers=["transfers"])
    for each in found:
        made.add_row(
            text(each.key),
            text(f"{len(each.rows):,}"),
            *map(text, (each.kind, moment(each.since), each.cause)),
        )
    console().print(made)
    typer.echo("all of a group: docflow transfers answer GROUP retry")


@app.command()
def answer(
    context: typer.Context,
    group: Annotated[
        str, typer.Argument(metavar="GROUP", help="As `docflow transfers parked` names it.")
    ],
    decision: Annotated[str, typer.Argument(metavar="ANSWER", help="`retry`, `skip` or `fail`.")],
    reason: Annotated[
        str | None, typer.Option(help="Why, for their trails; a retry has none.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Give all transfers that wait for one cause the same answer.

    It says first how many there are, and asks.

    \b
    Examples:
      docflow transfers answer 5eed5eed5eed5eed retry
      docflow transfers answer 5eed5eed5eed5eed fail --reason "sent again by mail" --yes
    """
    run(_answer(cli_context(context), group, decision, reason, yes=yes, as_json=as_json))


async def _answer(
    cli: CliContext, key: str, decision: str, reason: str | None, *, yes: bool, as_json: bool
) -> None:
    from workers.services.transfers.factory import open_groups
    from workflows.parking import Decision

    if decision not in tuple(Decision):
        raise UsageError(f"{decision} is no answer; there are {', '.join(Decision)}")
    if reason is not None and decision == Decision.RETRY:
        raise UsageError("a retry takes no --reason: it would not be kept")
    if not yes and (as_json or not is_interactive()):
        raise UsageError("there is no terminal to ask at: add --yes")
    async with open_groups(cli.environment, cli.user) as (groups, who):
        if not yes:
            found = await groups.get(who, key)
            typer.confirm(f"{decision} {_numbered(found)}: {one_line(found.cause)}?", abort=True)
        done = await groups.answer(who, key, Decision(decision), reason)
    problems = [each for each in done if each.problem is not None]
    if as_json:
        print_json([{"transfer_id": each.transfer_id, "problem": each.problem} for each in done])
    else:
        for each in problems:
            typer.echo(one_line(f"{each.transfer_id[:12]}: {each.problem}"), err=True)
        typer.echo(f"{len(done) - len(problems)} answered, {len(problems)} not")
    if problems:
        raise CommandError(f"{len(problems)} of {len(done)} were not answered")


def _numbered(group: "ParkedGroup") -> str:
    count = len(group.rows)
    return f"{count:,} transfer{'' if count == 1 else 's'} of {group.kind}"
