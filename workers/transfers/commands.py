"""`docflow transfer`: events, the jobs that they start, and their receipts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import (
    CommandError,
    ExitCode,
    UsageError,
    failures_in_one_line,
    stop,
)
from workers.shared.cli.output import console, read_object, table, text
from workers.shared.cli.remote import (
    Column,
    Item,
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
from workflows.transfers.events import TransferStatus

if TYPE_CHECKING:
    from docflow.client.synchronous import Connection

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
TransferArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the transfer, or its first 8 characters.")
]
EventArgument = Annotated[
    Path, typer.Argument(metavar="EVENT.json", help="File with a CloudEvent as JSON.")
]
_PATH: Final = "/api/v1/transfers"
_ONE: Final = "/api/v1/transfers/{}"
_SHOWN: Final = 12
"""Characters of an id or of a digest, for people."""


def _short(transfer: Item) -> str:
    return transfer["transfer_id"][:_SHOWN]


_COLUMNS: Final[Mapping[str, Column]] = {
    "transfer": _short,
    "status": "status",
    "changed": "at",
    "account": "account_id",
    "queue": "queue",
    "job": "job",
    "file": "file",
    "reason": "reason",
}
_NEXT: Final = {
    "assign": "docflow transfer assign {} QUEUE",
    "reroute": "docflow transfer assign {}",
    "retry": "docflow retry {}",
    "skip": "docflow skip {}",
    "fail": "docflow fail {}",
    "cancel": "docflow cancel {}",
    "resend": "docflow transfer resend {}",
    "redrive": "docflow transfer redrive {}",
}
"""What a person can have done, to the command that does it."""
_ROWS: Final[Mapping[str, Column]] = {
    "transfer": "transfer_id",
    "status": "status",
    "since": "at",
    "event": lambda found: f"{found['source']} {found['event_id']}",
    "account": "account_id",
    "type": "type",
    "subject": "subject",
    "queue": "queue",
    "job": "job",
    "file": "file",
    "reason": lambda found: _of_run(found, "reason") or found["reason"],
    "waits for": lambda found: _of_run(found, "waiting_for"),
    "next step": lambda found: _next(found),
    "by": "by",
}
_STATES: Final[Mapping[str, Column]] = {
    "state": "status",
    "at": "at",
    "queue": "queue",
    "by": "by",
    "reason": "reason",
}
_COUNTS: Final = ("files", "bytes")


def _of_run(found: Item, name: str) -> object:
    return found["run"] and found["run"][name]


def _next(found: Item) -> str | None:
    commands = (_NEXT[each] for each in found.get("offers", ()) if each in _NEXT)
    return "\n".join(each.format(_short(found)) for each in commands) or None


@app.command("list")
def list_transfers(
    context: typer.Context,
    state: Annotated[TransferStatus | None, typer.Option(help="Only those in this state.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only those of a queue.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those of an account.")] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List transfers, the newest change first.

    \b
    Example:
      docflow transfer list --state NoAssigned
    """
    with gateway(context) as connection:
        given = {"status": state, "queue": queue, "account_id": account}
        found = listed(connection, _PATH, limit, **given)
    show_list(found, output, _COLUMNS, name="transfer_id", nothing="no such transfers")
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the newest {limit}; --limit shows more", err=True)


@app.command()
def show(
    context: typer.Context, transfer: TransferArgument, output: OutputOption = Output.TABLE
) -> None:
    """Show one transfer: its actions, and every state that it was in.

    \b
    Example:
      docflow transfer show 5eed5eed
    """
    with gateway(context) as connection:
        _show(connection, transfer, output)


def _show(connection: "Connection", transfer: str, output: Output) -> None:
    found = ask(connection, "GET", _ONE, transfer)
    show_one(found, output, _ROWS, name="transfer_id")
    if output is not Output.TABLE:
        return
    if found["run"] and found["run"]["actions"]:
        actions: Mapping[str, Column] = {"action": "action", "state": "state"}
        counted = {name: _counted(name) for name in _COUNTS}
        columns = {**actions, **counted, "note": "note"}
        rows = found["run"]["actions"]
        show_list(rows, output, columns, name="action", nothing="", numbers=_COUNTS)
    show_list(found["trail"], output, _STATES, name="status", nothing="no worker has checked it")


def _counted(name: str) -> Column:
    def shown(action: Item) -> str:
        return f"{action[name]:,}"

    return shown


@app.command()
def send(
    context: typer.Context,
    event: EventArgument,
    organisation: Annotated[
        int | None,
        typer.Option(min=1, metavar="ID", help="Whose transfer it is [as the event says]."),
    ] = None,
    no_follow: Annotated[
        bool, typer.Option("--no-follow", help="Send it, and do not wait.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send an event, and follow its transfer until it has ended or waits for a person.

    If the event came before, nothing starts: its transfer is shown.

    Exit codes: 0 succeeded, 1 failed, 2 it is not an event, 4 it waits for a person: no rule
    matches, or an action has failed.

    \b
    Examples:
      docflow transfer send event.json
      docflow transfer send event.json --no-follow
    """
    with gateway(context) as connection:
        whose = {"organisation_id": organisation}
        sent = ask(connection, "POST", _PATH, body=read_object(event), query=whose)
        if not sent["is_new"]:
            typer.echo(f"the same event came before, as transfer {_short(sent)}", err=True)
        if no_follow:
            _started(sent, output, "sent as")
            return
        run = connection.wait(sent["id"])
        _show(connection, sent["transfer_id"], output)
    if run.needs_attention:
        raise typer.Exit(ExitCode.PARKED)
    if run.own_state != TransferStatus.SUCCEEDED:
        raise typer.Exit(ExitCode.FAILED)


def _started(sent: Item, output: Output, how: str) -> None:
    if output is Output.TABLE:
        typer.echo(f"{how} {_short(sent)}; see `docflow transfer show {_short(sent)}`")
    else:
        show_one(sent, output, {}, name="transfer_id")


@app.command()
def assign(
    context: typer.Context,
    transfer: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Id of the transfer [all that wait for a queue]."),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Argument(metavar="QUEUE", help="Whose jobs carry it out [as the rules say now]."),
    ] = None,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Name the queue of an event that no rule matches, or another one for a job that fits none.

    Without QUEUE, the rules are looked at again, after one was added.

    \b
    Examples:
      docflow transfer assign 5eed5eed jobstmsroute
      docflow transfer assign 5eed5eed
      docflow transfer assign
    """
    if queue is None:
        if reason is not None:
            stop(UsageError("--reason goes with a queue"))
        _reroute(context, transfer, output)
        return
    with gateway(context) as connection:
        body = {"queue": queue, "reason": reason}
        done = ask(connection, "POST", f"{_ONE}/assign", transfer, body=body)
    if output is Output.TABLE:
        short = _short(done)
        typer.echo(one_line(f"{short} goes to {queue}; see `docflow transfer show {short}`"))
    else:
        show_one(done, output, {}, name="transfer_id")


def _reroute(context: typer.Context, transfer: str | None, output: Output) -> None:
    with gateway(context) as connection:
        if transfer is None:
            done = ask(connection, "POST", "/api/v1/routes/reroute")["items"]
        else:
            done = [ask(connection, "POST", f"{_ONE}/reroute", transfer)]
    columns: Mapping[str, Column] = {
        "transfer": _short,
        "": lambda each: each["problem"] or "the rules are looked at again",
    }
    show_list(done, output, columns, name="transfer_id", nothing="no event waits for a queue")
    if any(each["problem"] for each in done):
        stop(CommandError("not all of them: see above"))


@app.command()
def resend(
    context: typer.Context,
    transfer: TransferArgument,
    to: Annotated[
        str | None, typer.Option(help="A partner [as the settings of the job say].")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send what was written again, from the copy that is kept of it.

    It is a transfer of its own, whose receipt names the first one.

    \b
    Examples:
      docflow transfer resend 5eed5eed
      docflow transfer resend 5eed5eed --to acme-backup
    """
    with gateway(context) as connection:
        done = ask(connection, "POST", f"{_ONE}/resend", transfer, body={"partner": to})
    _started(done, output, "sent again as")


@app.command()
def redrive(
    context: typer.Context,
    transfer: TransferArgument,
    from_action: Annotated[
        int | None,
        typer.Option(min=1, help="The action to begin with, from 1 [the one that failed]."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Carry out a failed transfer anew, from the action that failed.

    Its files are read, decrypted and scanned again; what it has written, sent or called before that
    action is not repeated. It is a transfer of its own, whose receipt names the failed one.

    \b
    Examples:
      docflow transfer redrive 5eed5eed
      docflow transfer redrive 5eed5eed --from-action 2
    """
    with gateway(context) as connection:
        body = {"from_action": from_action}
        done = ask(connection, "POST", f"{_ONE}/redrive", transfer, body=body)
    if done["done_before"] and output is Output.TABLE:
        typer.echo(
            f"done before: {', '.join(done['done_before'])}; not repeated, unless the settings "
            "that it reads now send elsewhere in their place"
        )
    _started(done, output, f"redriven from action {done['from_action']} as")


@app.command()
def receipt(
    context: typer.Context,
    transfer: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Id of the transfer, or its first 8 characters."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="See whether a step was changed.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(help="The receipt as a file: no gateway is asked.", dir_okay=False),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what was done with the files of a transfer, step by step.

    With --verify, the command checks that the steps are as they were written; the exit code is 1 if
    one is not. With --file, it needs no gateway.

    \b
    Examples:
      docflow transfer receipt 4b1f9a70 --verify
      docflow transfer receipt 4b1f9a70 -o json > receipt.json
      docflow transfer receipt --file receipt.json --verify
    """
    if (transfer is None) == (file is None):
        stop(UsageError("name the transfer, or the file with --file"))
    found: Any
    recorded: str | None = None
    if file is not None:
        with failures_in_one_line():
            found = _read(file)
    else:
        with gateway(context) as connection:
            found = ask(connection, "GET", f"{_ONE}/receipt", transfer)
            recorded = ask(connection, "GET", _ONE, transfer)["receipt"]["sha256"]
    found = _with_steps(found)
    if verify:
        _verify(found, recorded)
    if output is Output.TABLE:
        _show_steps(found)
    else:
        show_one(found, output, {}, name="transfer_id")
    if verify and output is Output.TABLE:
        _say_whole(found, recorded)


def _with_steps(found: Any) -> Item:
    receipt: Item = cast("Item", found) if isinstance(found, dict) else {}
    if not isinstance(receipt.get("steps"), list):
        stop(CommandError("this is not a receipt: it has no steps"))
    return receipt


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CommandError("this is not a receipt: it is not JSON") from error


def _verify(found: Item, recorded: str | None) -> None:
    """Refuse a receipt that is not as it was written.

    Args:
        found: The receipt.
        recorded: SHA-256 of it, as the row of the transfer has it; None: no row was asked.
    """
    from workflows.transfers import receipts

    finding = receipts.verify(found)
    if not finding.whole:
        stop(CommandError(f"the receipt is not as it was written: {finding.problem}"))
    if recorded not in (None, hashlib.sha256(receipts.canonical(found)).hexdigest()):
        stop(
            CommandError(
                "the receipt holds together and is not the one of this transfer: it was written "
                f"anew (the transfer has recorded {recorded})"
            )
        )


def _say_whole(found: Item, recorded: str | None) -> None:
    from workflows.transfers import receipts

    against = "" if recorded is None else ", and as the transfer has recorded it"
    typer.echo(f"whole: {len(found['steps'])} steps, each as it was written{against}")
    others = receipts.unhashed_fields(found)
    if recorded is None and others:
        typer.echo(
            f"not covered by the hashes of the steps: {', '.join(others)}; without --file, the "
            "whole receipt is compared with the row of its transfer"
        )


def _show_steps(found: Item) -> None:
    made = table("step", "file", "bytes", "before", "after", "what is known of it")
    for step in found["steps"]:
        action = f"{step.get('index', 0) + 1}. {step.get('action', '?')}"
        files: Sequence[Item] = step.get("files") or [{}]
        for file in files:
            details = [file.get(name) for name in ("place", "verdict", "guarantee")]
            made.add_row(
                text(action),
                text(file.get("name")),
                text(file.get("size")),
                text((file.get("sha256_before") or "")[:_SHOWN]),
                text((file.get("sha256_after") or "")[:_SHOWN]),
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


@app.command("check")
def check(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A jobsettings.json.", dir_okay=False)
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Check a file of job settings before it is deployed; no gateway is asked.

    Every problem and every key that nothing reads is listed. Queues are those of
    DOCFLOW_TRANSFERS_QUEUES, watches those of DOCFLOW_TRANSFERS_WATCHES: jobs that write into a
    folder whose watch starts them again are named. The exit code is 2 if the file, or a job of it,
    would be refused.

    \b
    Example:
      docflow transfer check jobsettings.json
    """
    with failures_in_one_line():
        _check(cli_context(context).environment, file, output)


def _check(environment: Mapping[str, str], file: Path, output: Output) -> None:
    from workers.transfers.settings import TransferFileSettings, queues_of, watches_of
    from workflows.transfers.settings_check import check_settings

    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    keeps_copies = TransferFileSettings.read(environment).staging_key is not None
    queues, watches = queues_of(environment), watches_of(environment)
    found = check_settings(content, queues, watches, keeps_copies=keeps_copies)
    if output is Output.TABLE:
        for problem in found.problems:
            typer.echo(f"refused: {problem}")
        for key in found.unused:
            typer.echo(f"nothing reads the key {key}")
        for loop in found.loops:
            typer.echo(f"a loop: {loop}")
        if found.partners:
            typer.echo(f"not checked: whether there are partners {', '.join(found.partners)}")
        typer.echo(f"{file}: {found.jobs} jobs, {len(found.problems)} problems")
    else:
        parts = {"problems": found.problems, "unused": found.unused, "loops": found.loops}
        lists = {name: list(part) for name, part in parts.items()}
        show_one(lists, output, {}, name=lambda _: str(file))
    if found.problems:
        raise typer.Exit(ExitCode.USAGE)
