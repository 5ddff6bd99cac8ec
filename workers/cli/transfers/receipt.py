"""`docflow transfers receipt`: what was done with files of a transfer, and whether that stands."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, UsageError, run
from workers.cli.output import JsonOption, console, print_json, table, text

app = typer.Typer(rich_markup_mode=None)

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
    from domain.transfers import receipts

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
        others = receipts.unchained(parsed)
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
    from adapters.database.transfers.store import SqlTransferStore
    from adapters.ports import BlobNotFound
    from domain.transfers.standing import standing
    from workers.resources.blobs import open_blobs
    from workers.resources.tables import open_tables
    from workers.settings.blobs import BlobSettings

    blobs = open_blobs(BlobSettings.read(cli.environment))
    async with open_tables(cli.environment) as database:
        rows = await SqlTransferStore(database).find(transfer)
    if not rows:
        raise CommandError(f"there is no transfer {transfer}")
    if len(rows) > 1:
        raise CommandError(f"several transfers begin with {transfer}: use more of the id")
    (row,) = rows
    if row.receipt is None:
        said = standing(row.status)
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
