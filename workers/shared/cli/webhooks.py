"""`docflow webhook`: addresses that docflow reports runs to, and what it has sent."""

import time
from typing import Annotated, Any

import typer

from workers.shared.cli.errors import CommandError
from workers.shared.cli.remote import (
    Item,
    LimitOption,
    Output,
    OutputOption,
    YesOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
    when,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/webhooks"
_ONE = f"{_PATH}/{{}}"
Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="Number in `webhook list`.")]
EventOption = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        metavar="EVENT",
        help="Tell this: run.ended, run.needs_attention or rows.rejected; may be repeated [all].",
    ),
]
PipelineOption = Annotated[
    list[str] | None,
    typer.Option("--pipeline", metavar="NAME", help="Tell of runs of this; may be repeated [all]."),
]


def _whose(webhook: Item) -> object:
    return webhook["organisation_id"] or "all"


def _pipelines(webhook: Item) -> object:
    return ", ".join(webhook["pipelines"]) or "all"


def _state(webhook: Item) -> object:
    return "enabled" if webhook["enabled"] else "disabled"


_COLUMNS = {
    "id": "id",
    "address": "url",
    "organisation": _whose,
    "events": "events",
    "pipelines": _pipelines,
    "state": _state,
    "problem": "problem",
}
_ALL = {**_COLUMNS, "made by": "made_by", "made": "made_at"}


def _outcome(message: Item) -> object:
    if message["delivered_at"] is not None and message["problem"] is None:
        return "delivered"
    if message["due_at"] is None:
        return "failed"
    return "waits" if message["attempts"] == 0 else f"again {when(message['due_at'])}"


_MESSAGE = {
    "number": "id",
    "made": "made_at",
    "event": "event",
    "run": "run_id",
    "state": _outcome,
    "attempts": "attempts",
    "status": "status_code",
    "problem": "problem",
}


@app.command("list")
def list_webhooks(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List the webhooks, the newest first.

    \b
    Example:
      docflow webhook list
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", _PATH)["items"]
        show_list(found, output, _COLUMNS, name="id", nothing="there are no webhooks")


@app.command()
def add(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where messages go.")],
    organisation: Annotated[
        int | None,
        typer.Option(min=1, metavar="ID", help="Tell of its runs alone [all runs]."),
    ] = None,
    event: EventOption = None,
    pipeline: PipelineOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Add a receiver; its secret is shown this once.

    \b
    Examples:
      docflow webhook add https://erp.example.com/docflow
      docflow webhook add https://club.example.org/hook --organisation 3 --event run.ended
    """
    given: dict[str, Any] = {
        "url": url,
        "organisation_id": organisation,
        "pipelines": pipeline or [],
        **({"events": event} if event else {}),
    }
    with gateway(context) as connection:
        made = ask(connection, "POST", _PATH, body=given)
        show_one(made, output, {**_ALL, "secret": "secret"}, name="id")


@app.command()
def show(context: typer.Context, id: Id, output: OutputOption = Output.TABLE) -> None:
    """Show a webhook.

    \b
    Example:
      docflow webhook show 7
    """
    with gateway(context) as connection:
        show_one(ask(connection, "GET", _ONE, id), output, _ALL, name="id")


@app.command()
def change(
    context: typer.Context,
    id: Id,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Send messages there.")] = None,
    event: EventOption = None,
    pipeline: PipelineOption = None,
    all_pipelines: Annotated[
        bool, typer.Option("--all-pipelines", help="Tell of runs of every pipeline.")
    ] = False,
    enable: Annotated[
        bool | None,
        typer.Option("--enable/--disable", help="Send messages, or let them wait."),
    ] = None,
    new_secret: Annotated[
        bool,
        typer.Option(
            "--new-secret",
            help="Make a new secret, shown this once; the former one signs as well for a day.",
        ),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change a webhook; what is not given stays.

    \b
    Examples:
      docflow webhook change 7 --event run.ended --event rows.rejected
      docflow webhook change 7 --enable
      docflow webhook change 7 --new-secret
    """
    given = {
        "url": url,
        "events": event or None,
        "pipelines": [] if all_pipelines else pipeline or None,
        "enabled": enable,
    }
    with gateway(context) as connection:
        body = {name: value for name, value in given.items() if value is not None}
        if body or not new_secret:
            changed = ask(connection, "PATCH", _ONE, id, body=body)
            if not new_secret:
                show_one(changed, output, _ALL, name="id")
                return
        changed = ask(connection, "POST", f"{_ONE}/rotate", id)
        show_one(changed, output, {**_ALL, "secret": "secret"}, name="secret")


@app.command()
def remove(context: typer.Context, id: Id, yes: YesOption = False) -> None:
    """Remove a webhook with the messages that were sent, or wait.

    \b
    Example:
      docflow webhook remove 7
    """
    if not yes:
        typer.confirm(f"Remove webhook {id} with its messages?", abort=True)
    with gateway(context) as connection:
        ask(connection, "DELETE", _ONE, id)
    typer.echo(f"removed webhook {id}")


@app.command()
def test(
    context: typer.Context,
    id: Id,
    wait: Annotated[
        int, typer.Option(min=0, max=600, metavar="SECONDS", help="Wait so long for the answer.")
    ] = 90,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send a message that is about no run, and wait for the answer of the receiver.

    \b
    Example:
      docflow webhook test 7
    """
    with gateway(context) as connection:
        sent = ask(connection, "POST", f"{_ONE}/test", id)
        ends = time.monotonic() + wait
        while sent["attempts"] == 0 and time.monotonic() < ends:
            time.sleep(1)
            sent = ask(connection, "GET", f"{_ONE}/messages/{{}}", id, sent["id"])
        show_one(sent, output, _MESSAGE, name="id")
        if sent["problem"] is not None:
            raise CommandError(f"the receiver did not accept it: {sent['problem']}")
        if sent["attempts"] == 0:
            raise CommandError("it was not sent yet: see run-webhooks in `docflow schedule list`")


@app.command()
def messages(
    context: typer.Context,
    id: Id,
    retry: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Send this one again, under its id: the receiver knows it."
        ),
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List what a receiver was sent, the newest first, or send a message again.

    \b
    Examples:
      docflow webhook messages 7
      docflow webhook messages 7 --retry 12
    """
    with gateway(context) as connection:
        if retry is not None:
            again = ask(connection, "POST", f"{_ONE}/messages/{{}}/resend", id, retry)
            show_one(again, output, _MESSAGE, name="id")
            return
        found = listed(connection, f"{_PATH}/{id}/messages", limit)
        show_list(found, output, _MESSAGE, name="id", nothing="nothing was sent")
