"""`docflow transfers list|show|assign|reroute|resend|redrive`: events and their jobs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.transfers import FILE_EVENT, FILE_JOB, TransferStatus
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, run
from workers.cli.output import JsonOption, console, moment, pairs, print_json, table, text

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from adapters.ports.transfers import StatusRow
    from workers.pipelines.base import Run
    from workers.services.identity import Identity
    from workers.services.transfers.service import TransferDetails, TransferService

app = typer.Typer(rich_markup_mode=None)

TransferArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the transfer, or its first 8 characters.")
]


def open_service(
    cli: CliContext,
) -> "AbstractAsyncContextManager[tuple[TransferService, Identity]]":
    """The service of transfers, and who uses it."""
    from workers.services.transfers.factory import open_transfers

    return open_transfers(cli.environment, cli.user)


@app.command("list")
def list_transfers(
    context: typer.Context,
    status: Annotated[
        TransferStatus | None, typer.Option(help="Only those of this status.")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Only those of a queue.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those of an account.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Transfers, the newest change first.

    \b
    Example:
      docflow transfers list --status NoAssigned
    """
    run(_list(cli_context(context), status, queue, account, limit, as_json=as_json))


async def _list(
    cli: CliContext,
    status: TransferStatus | None,
    queue: str | None,
    account: str | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    async with open_service(cli) as (service, who):
        rows = await service.list(who, status=status, queue=queue, account_id=account, limit=limit)
    if as_json:
        print_json([_fields(row) for row in rows])
        return
    if not rows:
        typer.echo("no such transfers")
        return
    made = table("transfer", "status", "changed", "account", "queue", "job", "file", "reason")
    for row in rows:
        made.add_row(
            text(row.transfer_id[:12]),
            text(row.status.value),
            text(moment(row.at)),
            *map(text, (row.account_id, row.queue, row.job, row.file, row.reason)),
        )
    console().print(made)


@app.command()
def show(context: typer.Context, transfer: TransferArgument, as_json: JsonOption = False) -> None:
    """A transfer: its actions, and every state that it was in.

    \b
    Example:
      docflow transfers show 5eed5eed
    """
    run(_show(cli_context(context), transfer, as_json=as_json))


async def _show(cli: CliContext, transfer: str, *, as_json: bool) -> None:
    async with open_service(cli) as (service, who):
        found = await service.get(who, transfer)
    if as_json:
        print_json(details_json(found))
        return
    print_transfer(found)


async def show_run(cli: CliContext, known: "Run", *, as_json: bool) -> None:
    """`docflow show` of an event or its job; of a run without a row, as Temporal has it."""
    from workers.cli.runs import show_in_temporal
    from workers.services.errors import NotFound

    if known.kind.workflow in (FILE_EVENT, FILE_JOB):
        try:
            await _show(cli, known.key, as_json=as_json)
        except NotFound:
            pass
        else:
            return
    await show_in_temporal(cli, known, as_json=as_json)


def details_json(found: "TransferDetails") -> dict[str, Any]:
    """A transfer as JSON."""
    return {
        **_fields(found.row),
        "trail": [_fields(row) for row in found.trail],
        "run": found.view and found.view.model_dump(mode="json"),
        "link": found.link,
    }


def _answers(found: "TransferDetails") -> str | None:
    """The commands that answer a run which waits for a person; None: it waits for none."""
    from workers.services.transfers.offers import Offer, offers

    id = found.row.transfer_id[:12]
    commands = {
        Offer.ASSIGN: f"docflow transfers assign {id} QUEUE",
        Offer.REROUTE: f"docflow transfers reroute {id}",
        Offer.RETRY: f"docflow retry {id}",
        Offer.SKIP: f"docflow skip {id}",
        Offer.FAIL: f"docflow fail {id}",
    }
    offered = offers(found)
    if Offer.FAIL not in offered:
        return None
    return "\n".join(commands[each] for each in offered if each in commands)


def print_transfer(found: "TransferDetails") -> None:
    """A transfer, its actions, and every state that it was in."""
    row, view = found.row, found.view
    shown: list[tuple[str, object]] = [
        ("transfer", row.transfer_id),
        ("status", row.status.value),
        ("since", moment(row.at)),
        ("event", f"{row.source} {row.event_id}"),
        ("account", row.account_id),
        ("type", row.type),
        ("subject", row.subject),
        ("queue", row.queue),
        ("job", row.job),
        ("file", row.file),
        ("reason", (view and view.reason) or row.reason),
        ("waits for", view and view.waiting_for),
        ("answers", _answers(found)),
        ("by", row.by),
        ("link", found.link),
    ]
    console().print(pairs(shown))
    if view is not None and view.actions:
        made = table("action", "state", "files", "bytes", "note", numbers=["files", "bytes"])
        for each in view.actions:
            counts = (f"{each.files:,}", f"{each.bytes:,}")
            made.add_row(*map(text, (each.action, each.state, *counts, each.note)))
        console().print(made)
    made = table("state", "at", "queue", "by", "reason", title="States")
    for each in found.trail:
        made.add_row(
            text(each.status.value),
            text(moment(each.at)),
            *map(text, (each.queue, each.by, each.reason)),
        )
    console().print(made)


@app.command()
def assign(
    context: typer.Context,
    transfer: TransferArgument,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="Whose jobs carry it out.")],
    reason: Annotated[str | None, typer.Option(help="Why, for its trail.")] = None,
) -> None:
    """Name the queue of an event that no rule matches, or another one for a job that fits none.

    \b
    Example:
      docflow transfers assign 5eed5eed jobstmsroute
    """
    run(_assign(cli_context(context), transfer, queue, reason))


async def _assign(cli: CliContext, transfer: str, queue: str, reason: str | None) -> None:
    async with open_service(cli) as (service, who):
        row = await service.assign(who, transfer, queue, reason)
    typer.echo(
        f"{row.transfer_id[:12]} goes to {queue}; "
        f"see `docflow transfers show {row.transfer_id[:12]}`"
    )


@app.command()
def reroute(
    context: typer.Context,
    transfer: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Id of the transfer [all that wait for a queue]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look at the rules again, after one was added.

    \b
    Examples:
      docflow transfers reroute
      docflow transfers reroute 5eed5eed
    """
    run(_reroute(cli_context(context), transfer, as_json=as_json))


async def _reroute(cli: CliContext, transfer: str | None, *, as_json: bool) -> None:
    async with open_service(cli) as (service, who):
        done = await service.reroute(who, transfer)
    if as_json:
        print_json([{"transfer_id": each.transfer_id, "problem": each.problem} for each in done])
    elif not done:
        typer.echo("no event waits for a queue")
    for each in done if not as_json else ():
        typer.echo(f"{each.transfer_id[:12]}: {each.problem or 'the rules are looked at again'}")
    if any(each.problem for each in done):
        raise CommandError("not all of them: see above")


@app.command()
def resend(
    context: typer.Context,
    transfer: TransferArgument,
    to: Annotated[
        str | None, typer.Option(help="A partner [as the settings of the job say].")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Send what was written again, from the copy that is kept of it.

    It is a transfer of its own, whose receipt names the first one.

    \b
    Examples:
      docflow transfers resend 5eed5eed
      docflow transfers resend 5eed5eed --to acme-backup
    """
    run(_resend(cli_context(context), transfer, to, as_json=as_json))


async def _resend(cli: CliContext, transfer: str, to: str | None, *, as_json: bool) -> None:
    async with open_service(cli) as (service, who):
        done = await service.resend(who, transfer, to)
    if as_json:
        print_json({"transfer_id": done.transfer_id, "workflow_id": done.workflow_id})
        return
    typer.echo(
        f"sent again as {done.transfer_id[:12]}; "
        f"see `docflow transfers show {done.transfer_id[:12]}`"
    )


@app.command()
def redrive(
    context: typer.Context,
    transfer: TransferArgument,
    from_action: Annotated[
        int | None,
        typer.Option(min=1, help="The action to begin with, from 1 [the one that failed]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Carry out a failed transfer anew, from the action that failed.

    Its files are read, decrypted and scanned again; what it has written, sent or called before that
    action is not repeated. It is a transfer of its own, whose receipt names the failed one.

    \b
    Examples:
      docflow transfers redrive 5eed5eed
      docflow transfers redrive 5eed5eed --from-action 2
    """
    run(_redrive(cli_context(context), transfer, from_action, as_json=as_json))


async def _redrive(
    cli: CliContext, transfer: str, from_action: int | None, *, as_json: bool
) -> None:
    from workers.services.transfers.factory import open_redrives

    async with open_redrives(cli.environment, cli.user) as (redrives, who):
        done = await redrives.redrive(who, transfer, from_action)
    id = done.started.transfer_id
    if as_json:
        print_json(
            {
                "transfer_id": id,
                "workflow_id": done.started.workflow_id,
                "from_action": done.from_action,
                "done_before": list(done.done_before),
            }
        )
        return
    typer.echo(f"redriven from action {done.from_action} as {id[:12]}")
    if done.done_before:
        typer.echo(
            f"done before: {', '.join(done.done_before)}; not repeated, unless the settings that "
            "it reads now send elsewhere in their place"
        )
    typer.echo(f"see `docflow transfers show {id[:12]}`")


def _fields(row: "StatusRow") -> dict[str, Any]:
    return {
        "transfer_id": row.transfer_id,
        "status": row.status.value,
        "at": row.at.isoformat(),
        "source": row.source,
        "event_id": row.event_id,
        "account_id": row.account_id,
        "type": row.type,
        "subject": row.subject,
        "queue": row.queue,
        "job": row.job,
        "file": row.file,
        "reason": row.reason,
        "by": row.by,
        "receipt": row.receipt and row.receipt.model_dump(mode="json"),
    }
