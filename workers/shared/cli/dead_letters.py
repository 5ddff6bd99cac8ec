"""`docflow dead-letters`: messages that a queue itself has given up."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.shared.cli.answers import read_body
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, Failure, UsageError, attempt, run, stop
from workers.shared.cli.output import JsonOption, console, moment, pairs, print_json, table, text

if TYPE_CHECKING:
    from workers.shared.services.service_bus import DeadLetter

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Messages that a queue itself has given up.",
)

QueueOption = Annotated[
    str | None, typer.Option("--queue", metavar="NAME", help="The queue, where there are several.")
]
BridgeOption = Annotated[
    str | None,
    typer.Option(
        "--bridge", metavar="NAME", help="What receives from the queue, if two share a name."
    ),
]
Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="[N]...", help="Numbers in `dead-letters list`.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Every dead letter of the queue.")]


@app.command("list")
def list_dead_letters(
    context: typer.Context,
    queue: QueueOption = None,
    bridge: BridgeOption = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List the dead letters of every queue, or of one, the oldest first; none is taken.

    \b
    Example:
      docflow dead-letters list
    """
    run(_list(cli_context(context), queue, bridge, limit, as_json=as_json))


@app.command()
def show(
    context: typer.Context,
    number: Annotated[int, typer.Argument(metavar="N", help="Number in `dead-letters list`.")],
    queue: QueueOption = None,
    bridge: BridgeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one dead letter with its body.

    \b
    Example:
      docflow dead-letters show 7
    """
    run(_show(cli_context(context), number, queue, bridge, as_json=as_json))


@app.command()
def resubmit(
    context: typer.Context,
    numbers: Numbers = None,
    every: AllOption = False,
    queue: QueueOption = None,
    bridge: BridgeOption = None,
    body: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Corrected message to send instead of the one dead letter that is named.",
        ),
    ] = None,
) -> None:
    """Send dead letters to their queue again; each is removed once it is there.

    A message of a task that has run is answered from that run, so that nothing is done twice. One
    that docflow had rejected is noted as sent again in `docflow rejected list`.

    \b
    Examples:
      docflow dead-letters resubmit 7
      docflow dead-letters resubmit --all
      docflow dead-letters resubmit 7 --body corrected.json
    """
    wanted = _wanted(numbers or (), every)
    if body is not None and (wanted is None or len(wanted) != 1):
        stop(UsageError("--body goes with one number"))
    run(_resubmit(cli_context(context), wanted, queue, bridge, body))


@app.command()
def purge(
    context: typer.Context,
    numbers: Numbers = None,
    every: AllOption = False,
    queue: QueueOption = None,
    bridge: BridgeOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove dead letters for ever.

    \b
    Examples:
      docflow dead-letters purge 7
      docflow dead-letters purge --all --yes
    """
    wanted = _wanted(numbers or (), every)
    if not yes:
        what = "all dead letters" if wanted is None else f"{len(wanted)} of them"
        typer.confirm(f"Remove {what} for ever?", abort=True)
    run(_purge(cli_context(context), wanted, queue, bridge))


def _wanted(numbers: Sequence[int], every: bool) -> Sequence[int] | None:
    """The numbers; None: all."""
    if every == bool(numbers):
        stop(UsageError("name the numbers of dead letters, or --all"))
    return None if every else numbers


async def _list(
    cli: CliContext, queue: str | None, bridge: str | None, limit: int, *, as_json: bool
) -> None:
    from workers.shared.services.dead_letters import open_dead_letters, queues

    named = [(each.name, each.bridge) for each in queues(cli.environment, queue, bridge)]
    if not named and (queue, bridge) != (None, None):
        named = [(queue, bridge)]  # Opening it says what there is.
    found: list[DeadLetter] = []
    for name, receiver in named:
        async with open_dead_letters(cli.environment, name, receiver) as letters:
            found += await letters.list(limit)
    if as_json:
        print_json([_as_json(each) for each in found])
        return
    if not found:
        typer.echo("there are no dead letters")
        return
    made = table(
        *("N", "queue", "sent", "message id", "reason", "description", "deliveries"),
        numbers=["N", "deliveries"],
    )
    for each in found:
        made.add_row(
            text(each.number),
            text(each.queue),
            text(moment(each.sent_at)),
            text(each.message_id),
            text(each.reason),
            text(each.description),
            text(each.deliveries),
        )
    console().print(made)


async def _show(
    cli: CliContext, number: int, queue: str | None, bridge: str | None, *, as_json: bool
) -> None:
    from workers.shared.services.dead_letters import letter_in, open_dead_letters

    async with open_dead_letters(cli.environment, queue, bridge) as letters:
        found = await letter_in(letters, number)
    if as_json:
        print_json(_as_json(found))
        return
    out = console()
    out.print(
        pairs(
            [
                ("number", found.number),
                ("queue", found.queue),
                ("message id", found.message_id),
                ("sent", moment(found.sent_at)),
                ("deliveries", found.deliveries),
                ("reason", found.reason),
                ("description", found.description),
            ]
        )
    )
    out.print(text(_readable(found.body)), soft_wrap=True)


async def _resubmit(
    cli: CliContext,
    numbers: Sequence[int] | None,
    queue: str | None,
    bridge: str | None,
    body: Path | None,
) -> None:
    from workers.shared.services.dead_letters import open_dead_letters

    corrected = None if body is None else read_body(body)
    async with open_dead_letters(cli.environment, queue, bridge) as letters:
        done = await letters.resubmit(numbers, corrected)
        noted = await attempt(_note(cli, done))
        if isinstance(noted, Failure) and done:
            typer.echo(f"docflow: not noted in `docflow rejected list`: {noted.reason}", err=True)
        _report("sent again", done, numbers, letters.queue)


async def _note(cli: CliContext, sent: "Sequence[DeadLetter]") -> None:
    """Note in the record of those that docflow had rejected that they were sent again."""
    from workers.shared.services.dead_letters import note_sent

    async with cli.rejected() as rejected:
        await note_sent(rejected, sent)


async def _purge(
    cli: CliContext, numbers: Sequence[int] | None, queue: str | None, bridge: str | None
) -> None:
    from workers.shared.services.dead_letters import open_dead_letters

    async with open_dead_letters(cli.environment, queue, bridge) as letters:
        done = await letters.purge(numbers)
        _report("removed", done, numbers, letters.queue)


def _report(
    what: str, done: "Sequence[DeadLetter]", wanted: Sequence[int] | None, queue: str
) -> None:
    plural = "" if len(done) == 1 else "s"
    typer.echo(f"{len(done)} dead letter{plural} of queue {queue} {what}")
    if missing := sorted(set(wanted or ()) - {each.number for each in done}):
        raise CommandError(f"not there: {', '.join(map(str, missing))}")


def _as_json(letter: "DeadLetter") -> dict[str, Any]:
    return {
        "queue": letter.queue,
        "number": letter.number,
        "message_id": letter.message_id,
        "reason": letter.reason,
        "description": letter.description,
        "deliveries": letter.deliveries,
        "sent_at": letter.sent_at and letter.sent_at.isoformat(),
        "body": _readable(letter.body),
    }


def _readable(body: bytes) -> str:
    return body.decode("utf-8", "backslashreplace")
