"""`docflow submit transfers`: an event is sent and its transfer followed to its end."""

import asyncio
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, ExitCode, run
from workers.shared.cli.output import JsonOption, print_json, read_body
from workers.shared.services.errors import NotFound
from workers.transfers.commands import open_service, print_transfer, transfer_json
from workflows.transfers.events import TransferStatus

if TYPE_CHECKING:
    from activities.transfers.records import Transfer
    from workers.shared.services.identity import Identity
    from workers.transfers.service import TransferService

_ENDED: Final = frozenset(
    {
        TransferStatus.INVALID,
        TransferStatus.GARBAGE,
        TransferStatus.SUCCEEDED,
        TransferStatus.FAILED,
    }
)
_UNTAKEN: Final = "no worker has taken it yet: see `docflow status`"
_MOST_LOOKS: Final = 10
"""Looks at a transfer that has no row yet."""
_SECONDS: Final = 0.5
"""Between two looks at the transfer."""

app = typer.Typer(rich_markup_mode=None)


@app.command()
def transfers(
    context: typer.Context,
    event: Annotated[
        Path, typer.Argument(metavar="EVENT.json", help="File with a CloudEvent as JSON.")
    ],
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="Send it, and do not wait.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Send an event, and follow its transfer until it has ended or waits for a person.

    The same event sent again starts nothing: its transfer is shown.

    Exit codes: 0 succeeded, 1 failed or no event, 2 wrong options, 4 it waits for a person: no rule
    matches, or an action has failed.

    \b
    Examples:
      docflow submit transfers event.json
      docflow submit transfers event.json --no-follow
    """
    work = _submit(cli_context(context), event, follow=not no_follow, as_json=as_json)
    raise typer.Exit(run(work))


async def _submit(cli: CliContext, event: Path, *, follow: bool, as_json: bool) -> ExitCode:
    from activities.transfers.cloud_events import head_of

    body = read_body(event).decode("utf-8-sig", errors="backslashreplace")
    async with open_service(cli) as (service, who):
        done = await service.submit(who, body)
        short = done.transfer_id[:12]
        if not done.created:
            typer.echo(f"the same event came before, as transfer {short}", err=True)
        if not follow:
            if as_json:
                print_json({"transfer_id": done.transfer_id, "created": done.created})
            else:
                typer.echo(f"sent as {short}; see `docflow transfers show {short}`")
            return ExitCode.DONE
        found = await _followed(service, who, done.transfer_id)
    if found.digest not in (None, head_of(body).digest):
        raise CommandError(
            f"another event came before with the source and id of this one, as transfer {short}: "
            "this one was not used (`docflow message list`); send it with another id"
        )
    if as_json:
        print_json(transfer_json(found))
    else:
        print_transfer(found)
    if found.status is TransferStatus.SUCCEEDED:
        return ExitCode.DONE
    return ExitCode.FAILED if found.status in _ENDED else ExitCode.PARKED


async def _followed(service: "TransferService", who: "Identity", transfer_id: str) -> "Transfer":
    """The transfer, when it has ended or waits for a person."""
    shown: str | None = None
    for look in count():
        try:
            found = await service.get(who, transfer_id)
        except NotFound:
            state = _UNTAKEN if look >= _MOST_LOOKS else None
        else:
            if found.status in _ENDED or found.is_parked:
                return found
            state = _state(found)
        if state is not None and state != shown:
            shown = state
            typer.echo(shown, err=True)
        await asyncio.sleep(_SECONDS)
    raise AssertionError("it is followed to its end")


def _state(found: "Transfer") -> str:
    waits = found.view and found.view.waiting_for
    where = f", queue {found.queue}" if found.queue else ""
    return f"{found.status}{where}{f', waits for {waits}' if waits else ''}"
