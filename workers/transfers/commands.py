"""`docflow transfers`: events, the jobs that they start, answers and receipts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, ExitCode, UsageError, failures_in_one_line, run
from workers.shared.cli.output import (
    JsonOption,
    console,
    is_interactive,
    moment,
    pairs,
    print_json,
    table,
    text,
)
from workers.shared.text import one_line
from workers.transfers import route_commands
from workflows.transfers.events import TransferStatus

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from activities.transfers.records import Transfer
    from workers.shared.services.identity import Identity
    from workers.transfers.redrive import ParkedGroup
    from workers.transfers.service import TransferService


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Transfers: list, show, answer, assign, reroute, resend; receipts, watches, job settings.",
)
app.add_typer(route_commands.watches, name="watches")
app.add_typer(route_commands.expected, name="expected")


@app.command("check")
def check(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A jobsettings.json.", dir_okay=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """What is wrong with a file of job settings, and which of its keys nothing reads.

    Queues are those of DOCFLOW_TRANSFERS_QUEUES, watches those of DOCFLOW_TRANSFERS_WATCHES: jobs
    that write into a folder whose watch starts them again are named. Neither Temporal nor the
    database is needed. The exit code is 2 where the file, or a job of it, would be refused.

    \b
    Example:
      docflow transfers check jobsettings.json
    """
    with failures_in_one_line():
        _check(cli_context(context).environment, file, as_json=as_json)


def _check(environment: Mapping[str, str], file: Path, *, as_json: bool) -> None:
    from workers.transfers.settings import TransferFileSettings, queues_of, watches_of
    from workflows.transfers.settings_check import check_settings

    try:
        text = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    keeps_copies = TransferFileSettings.read(environment).staging_key is not None
    queues, watches = queues_of(environment), watches_of(environment)
    found = check_settings(text, queues, watches, keeps_copies=keeps_copies)
    if as_json:
        parts = {"problems": found.problems, "unused": found.unused, "loops": found.loops}
        print_json({name: list(part) for name, part in parts.items()})
    else:
        for problem in found.problems:
            typer.echo(f"refused: {problem}")
        for key in found.unused:
            typer.echo(f"nothing reads the key {key}")
        for loop in found.loops:
            typer.echo(f"a loop: {loop}")
        if found.partners:
            typer.echo(f"not checked: whether there are partners {', '.join(found.partners)}")
        typer.echo(f"{file}: {found.jobs} jobs, {len(found.problems)} problems")
    if found.problems:
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def parked(context: typer.Context, as_json: JsonOption = False) -> None:
    """Transfers that wait for a person, by queue and cause, the largest group first.

    \b
    Example:
      docflow transfers parked
    """
    run(_parked(cli_context(context), as_json=as_json))


async def _parked(cli: CliContext, *, as_json: bool) -> None:
    from workers.transfers.redrive import ParkedGroups

    async with open_service(cli) as (service, who):
        found = await ParkedGroups(service).all(who)
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
    from workers.transfers.redrive import ParkedGroups
    from workflows.shared.parking import Decision

    if decision not in tuple(Decision):
        raise UsageError(f"{decision} is no answer; there are {', '.join(Decision)}")
    if reason is not None and decision == Decision.RETRY:
        raise UsageError("a retry takes no --reason: it would not be kept")
    if not yes and (as_json or not is_interactive()):
        raise UsageError("there is no terminal to ask at: add --yes")
    async with open_service(cli) as (service, who):
        groups = ParkedGroups(service)
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


_LONGEST: Final = 256 << 20
_SHOWN: Final = 12


@dataclass(frozen=True)
class _Receipt:
    """A receipt, and what else is known of it."""

    content: bytes
    recorded: str | None = None
    """SHA-256 of it, as the row of the transfer says; None: no row was asked."""


@app.command("receipt")
def receipt(
    context: typer.Context,
    transfer: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Id of the transfer, or its first 8 characters."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="See whether a step was changed.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(help="The receipt as a file: nothing else is read.", dir_okay=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What was done with the files of a transfer, step by step.

    With --verify it is seen whether the steps are as they were written; the exit code is 1 where
    one is not. With --file neither docflow nor its database is needed.

    \b
    Examples:
      docflow transfers receipt 4b1f9a70 --verify
      docflow transfers receipt 4b1f9a70 --json > receipt.json
      docflow transfers receipt --file receipt.json --verify
    """
    run(_receipt(cli_context(context), transfer, file, verify=verify, as_json=as_json))


async def _receipt(
    cli: CliContext, transfer: str | None, file: Path | None, *, verify: bool, as_json: bool
) -> None:
    from workflows.transfers import receipts

    if file is None and transfer is None:
        raise UsageError("name the transfer, or the file with --file")
    found = _read(file) if file is not None else await _stored(cli, transfer or "")
    parsed = _parsed(found.content)
    if not str(parsed.get("transfer_id", "")).startswith((transfer or "").lower()):
        raise CommandError(f"{file} is not the receipt of {transfer}")
    if verify:
        finding = receipts.verify(parsed)
        if not finding.whole:
            raise CommandError(f"the receipt is not as it was written: {finding.problem}")
        if found.recorded is not None and found.recorded != _digest(found.content):
            raise CommandError(
                "the receipt holds together and is not the one of this transfer: it was written "
                f"anew (the transfer has recorded {found.recorded})"
            )
    if as_json:
        print_json(parsed)
        return
    _show(parsed)
    if verify:
        against = "" if found.recorded is None else ", and as the transfer has recorded it"
        typer.echo(f"whole: {len(parsed['steps'])} steps, each as it was written{against}")
        others = receipts.unhashed_fields(parsed)
        if found.recorded is None and others:
            typer.echo(
                f"not covered by the hashes of the steps: {', '.join(others)}; without --file, the "
                "whole receipt is compared with the row of its transfer"
            )


def _read(file: Path) -> _Receipt:
    try:
        if file.stat().st_size > _LONGEST:
            raise CommandError(f"{file} is too long for a receipt")
        return _Receipt(file.read_bytes())
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error


async def _stored(cli: CliContext, transfer: str) -> _Receipt:
    from activities.transfers.store import SqlTransferStore
    from adapters.ports.errors import BlobNotFound
    from workers.shared.settings.common import BlobSettings
    from workers.shared.tables import open_blobs, open_tables
    from workflows.transfers.runs import status_label

    blobs = open_blobs(BlobSettings.read(cli.environment))
    async with open_tables(cli.environment) as database:
        rows = await SqlTransferStore(database).find(transfer)
    if not rows:
        raise CommandError(f"there is no transfer {transfer}")
    if len(rows) > 1:
        raise CommandError(f"several transfers begin with {transfer}: use more of the id")
    (row,) = rows
    if row.receipt is None:
        said = status_label(row.status)
        raise CommandError(f"transfer {row.transfer_id[:_SHOWN]} has no receipt: it {said}")
    try:
        content = b"".join([piece async for piece in blobs.read(row.receipt.name)])
    except BlobNotFound as error:
        raise CommandError(f"the receipt is gone: {error}") from error
    return _Receipt(content, row.receipt.sha256)


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        parsed: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CommandError("this is not a receipt: it is not JSON") from error
    if isinstance(parsed, dict):
        found = cast(dict[str, Any], parsed)
        if isinstance(found.get("steps"), list):
            return found
    raise CommandError("this is not a receipt: it has no steps")


def _digest(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def _show(parsed: dict[str, Any]) -> None:
    made = table("step", "file", "bytes", "before", "after", "what is known of it")
    for step in parsed["steps"]:
        action = f"{step.get('index', 0) + 1}. {step.get('action', '?')}"
        files: list[dict[str, Any]] = step.get("files") or [{}]
        for file in files:
            details = [file.get(name) for name in ("place", "verdict", "guarantee")]
            made.add_row(
                text(action),
                text(str(file.get("name", ""))),
                text(str(file.get("size", ""))),
                text(str(file.get("sha256_before") or "")[:_SHOWN]),
                text(str(file.get("sha256_after") or "")[:_SHOWN]),
                text("; ".join(str(each) for each in details if each)),
            )
            action = ""
        if step.get("outcome"):
            who = f", decided by {step['decided_by']}" if step.get("decided_by") else ""
            details = f"{step['outcome']}{who}: {step.get('reason') or ''}"
            made.add_row("", text(details), "", "", "", "")
        if step.get("configured_by"):
            made.add_row("", text(f"configured by {step['configured_by']}"), "", "", "", "")
        for remark in step.get("remarks") or ():
            made.add_row("", text(f"remark: {remark}"), "", "", "", "")
    console().print(made)


TransferArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the transfer, or its first 8 characters.")
]


def open_service(
    cli: CliContext,
) -> "AbstractAsyncContextManager[tuple[TransferService, Identity]]":
    """The service of transfers, and who uses it."""
    from workers.transfers.factory import open_transfers

    return open_transfers(cli.environment)


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
        print_json([transfer_json(row) for row in rows])
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
    run(_show_transfer(cli_context(context), transfer, as_json=as_json))


async def _show_transfer(cli: CliContext, transfer: str, *, as_json: bool) -> None:
    async with open_service(cli) as (service, who):
        found = await service.get(who, transfer)
    if as_json:
        print_json(transfer_json(found))
        return
    print_transfer(found)


def transfer_json(found: "Transfer") -> dict[str, Any]:
    """A transfer as the API has it, and what else an operator sees."""
    return {
        **found.model_dump(mode="json", by_alias=True),
        "by": found.by,
        "receipt": found.receipt and found.receipt.model_dump(mode="json"),
        "link": found.link,
    }


def _answers(found: "Transfer") -> str | None:
    """The commands that answer a run which waits for a person; None: it waits for none."""
    from workers.transfers.service import Offer, offers

    id = found.transfer_id[:12]
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


def print_transfer(found: "Transfer") -> None:
    """A transfer, its actions, and every state that it was in."""
    view = found.view
    shown: list[tuple[str, object]] = [
        ("transfer", found.transfer_id),
        ("status", found.status.value),
        ("since", moment(found.at)),
        ("event", f"{found.source} {found.event_id}"),
        ("account", found.account_id),
        ("type", found.type),
        ("subject", found.subject),
        ("queue", found.queue),
        ("job", found.job),
        ("file", found.file),
        ("reason", (view and view.reason) or found.reason),
        ("waits for", view and view.waiting_for),
        ("answers", _answers(found)),
        ("by", found.by),
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
    from workers.transfers.factory import open_redrives

    async with open_redrives(cli.environment) as (redrives, who):
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
