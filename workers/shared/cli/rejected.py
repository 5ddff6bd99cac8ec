"""`docflow rejected`: messages that were rejected."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.shared.cli.answers import read_body
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, UsageError, run
from workers.shared.cli.output import JsonOption, console, moment, pairs, print_json, table, text

if TYPE_CHECKING:
    from adapters.ports.records import RejectedMessage, RejectedMessages

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Messages that were rejected.",
)

NumberArgument = Annotated[int, typer.Argument(metavar="N", help="Number in `rejected list`.")]


@app.command("list")
def list_rejected(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List rejected messages, the newest first.

    \b
    Example:
      docflow rejected list --limit 10
    """
    run(_list(cli_context(context), limit, as_json=as_json))


async def _list(cli: CliContext, limit: int, *, as_json: bool) -> None:
    async with cli.rejected() as rejected:
        found = await rejected.list(limit)
    if as_json:
        print_json([message.model_dump(mode="json") for message in found])
        return
    if not found:
        typer.echo("no message was rejected")
        return
    made = table(
        "N", "received", "message id", "reason", "description", "resubmitted", numbers=["N"]
    )
    for message in found:
        made.add_row(
            text(message.id),
            text(moment(message.received_at)),
            text(message.message_id),
            text(message.reason),
            text(message.description),
            text(moment(message.resubmitted_at)),
        )
    console().print(made)


@app.command()
def show(context: typer.Context, number: NumberArgument, as_json: JsonOption = False) -> None:
    """Show one rejected message with its body.

    \b
    Example:
      docflow rejected show 7
    """
    run(_show(cli_context(context), number, as_json=as_json))


async def _show(cli: CliContext, number: int, *, as_json: bool) -> None:
    async with cli.rejected() as rejected:
        message = await _get(rejected, number)
    if as_json:
        print_json(message.model_dump(mode="json"))
        return
    out = console()
    out.print(
        pairs(
            [
                ("number", message.id),
                ("queue", message.queue),
                ("message id", message.message_id),
                ("received", moment(message.received_at)),
                ("resubmitted", moment(message.resubmitted_at)),
                ("dismissed", moment(message.dismissed_at)),
                ("reason", message.reason),
                ("description", message.description),
                ("body", "cut off: it was longer than what is kept" if message.truncated else None),
            ]
        )
    )
    out.print(text(message.body), soft_wrap=True)


@app.command()
def resubmit(
    context: typer.Context,
    number: NumberArgument,
    body: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="Corrected message to send instead."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Send although it is not valid, or was sent again before."),
    ] = False,
    bridge: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What rejected it, where two queues have one name."),
    ] = None,
) -> None:
    """Send a rejected message to its queue again, as it was or corrected.

    The original stays in the dead letter queue until the queue's own owner removes it.

    \b
    Examples:
      docflow rejected show 7 --json
      docflow rejected resubmit 7 --body corrected.json
    """
    run(_resubmit(cli_context(context), number, body, bridge, force=force))


async def _resubmit(
    cli: CliContext, number: int, file: Path | None, bridge: str | None, *, force: bool
) -> None:
    from workers.shared.services.resubmission import InVain, body_of, origin_of, send_again

    async with cli.rejected() as rejected:
        message = await _get(rejected, number)
        origin = origin_of(message.queue, cli.environment, bridge)
        for remark in origin.remarks:
            typer.echo(f"docflow: {remark}", err=True)
        if file is None and message.truncated:
            raise UsageError(
                f"only the beginning of message {number} was kept; give the whole of it with --body"
            )
        body = body_of(message, None if file is None else read_body(file))
        try:
            await send_again(rejected, cli.environment, origin, message, body, force=force)
        except InVain as refused:
            raise CommandError(refused.said("--body FILE", "add --force")) from refused
    typer.echo(f"sent message {number} to queue {message.queue} again")


async def _get(rejected: "RejectedMessages", number: int) -> "RejectedMessage":
    message = await rejected.get(number)
    if message is None:
        raise CommandError(
            f"there is no rejected message {number}; `docflow rejected list` shows them"
        )
    return message
