"""`docflow message`: messages that a bridge has rejected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from workers.shared.cli.errors import UsageError, stop
from workers.shared.cli.output import read_body
from workers.shared.cli.remote import (
    Column,
    LimitOption,
    Output,
    OutputOption,
    ReasonOption,
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
_PATH = "/api/v1/rejected-messages"
NumberArgument = Annotated[
    int, typer.Argument(metavar="N", min=1, help="Number in `message list`.")
]
BodyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="Send this corrected message instead."
    ),
]
BridgeOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name what receives, if two queues share a name."),
]


def corrected(file: Path | None) -> str | None:
    """The text of a corrected message; a file that holds none ends the command."""
    if file is None:
        return None
    try:
        return read_body(file).decode()
    except UnicodeDecodeError as error:
        stop(UsageError(f"{file} is not UTF-8: {error.reason} at byte {error.start}"))
    except UsageError as error:
        stop(error)


@app.command("list")
def list_messages(
    context: typer.Context,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only those of this queue.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(metavar="WORD", help="Show only those rejected for this reason.")
    ] = None,
    open_only: Annotated[
        bool, typer.Option("--open", help="Show only those neither sent again nor dismissed.")
    ] = False,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List rejected messages, the newest first.

    \b
    Examples:
      docflow message list --open
      docflow message list --queue documents -o json
    """
    with gateway(context) as connection:
        found = listed(connection, _PATH, limit, queue=queue, reason=reason, open=open_only or None)
        columns = {
            "N": "id",
            "queue": "queue",
            "received": "received_at",
            "message id": "message_id",
            "reason": "reason",
            "description": "description",
            "sent again": "resubmitted_at",
            "dismissed": "dismissed_at",
        }
        nothing = "no message was rejected"
        show_list(found, output, columns, name="id", nothing=nothing, numbers=["N"])


@app.command()
def show(
    context: typer.Context, number: NumberArgument, output: OutputOption = Output.TABLE
) -> None:
    """Show one rejected message with its body.

    \b
    Example:
      docflow message show 7
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", f"{_PATH}/{{}}", number)
        rows: Mapping[str, Column] = {
            "number": "id",
            "queue": "queue",
            "message id": "message_id",
            "received": "received_at",
            "sent again": "resubmitted_at",
            "dismissed": "dismissed_at",
            "by": "by",
            "note": "note",
            "reason": "reason",
            "description": "description",
            "cut off": lambda each: each["truncated"] and "the body is longer than what is kept",
        }
        show_one(found, output, rows, name="id", body=found["body"])


@app.command()
def retry(
    context: typer.Context,
    number: NumberArgument,
    body: BodyOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Send it although it is not valid, or was sent before.")
    ] = False,
    bridge: BridgeOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send a rejected message to its queue again, as it was or corrected.

    A worker of its pipeline sends it. The original stays in the dead letter queue until the owner
    of the queue removes it.

    \b
    Examples:
      docflow message show 7 -o json
      docflow message retry 7 --body corrected.json
    """
    with gateway(context) as connection:
        given = {"body": corrected(body), "force": force, "bridge": bridge}
        done = ask(connection, "POST", f"{_PATH}/{{}}/retry", number, body=given)
        for remark in done["remarks"]:
            typer.echo(one_line(f"docflow: {remark}"), err=True)
        message = done["message"]
        if output is not Output.TABLE:
            show_one(message, output, {}, name="id")
            return
    typer.echo(one_line(f"sent message {number} to queue {message['queue']} again"))


@app.command()
def dismiss(context: typer.Context, number: NumberArgument, reason: ReasonOption = None) -> None:
    """Dismiss a rejected message that needs no more work; it stays in the record.

    \b
    Example:
      docflow message dismiss 7 --reason "the sender sent it again"
    """
    with gateway(context) as connection:
        ask(connection, "POST", f"{_PATH}/{{}}/dismiss", number, body={"reason": reason})
    typer.echo(f"dismissed message {number}")
