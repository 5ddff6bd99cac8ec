"""A person's answers to an import as a whole."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.spreadsheets import MappingsAnswer
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import run
from workers.cli.output import JsonOption, print_json
from workers.cli.spreadsheets.context import UuidArgument, open_access, parse_uuid
from workers.text import one_line

if TYPE_CHECKING:
    from workers.services.identity import Identity
    from workers.services.spreadsheets.service import SpreadsheetService

ReasonOption = Annotated[str | None, typer.Option(help="The reason, kept with the decisions.")]
Action = Callable[["SpreadsheetService", "Identity", str], Awaitable[MappingsAnswer]]

app = typer.Typer(rich_markup_mode=None)


@app.command("confirm-columns")
def confirm_columns(
    context: typer.Context, uuid: UuidArgument, as_json: JsonOption = False
) -> None:
    """Confirm what columns mean; the values are collected next.

    \b
    Example:
      docflow spreadsheets confirm-columns 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    def action(
        service: "SpreadsheetService", who: "Identity", id: str
    ) -> Awaitable[MappingsAnswer]:
        return service.confirm_columns(who, id)

    run(_answer(cli_context(context), uuid, action, as_json=as_json))


@app.command("confirm-values")
def confirm_values(context: typer.Context, uuid: UuidArgument, as_json: JsonOption = False) -> None:
    """Confirm what values mean; the rows are processed next.

    \b
    Example:
      docflow spreadsheets confirm-values 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    def action(
        service: "SpreadsheetService", who: "Identity", id: str
    ) -> Awaitable[MappingsAnswer]:
        return service.confirm_cells(who, id)

    run(_answer(cli_context(context), uuid, action, as_json=as_json))


@app.command("start")
def start(context: typer.Context, uuid: UuidArgument, as_json: JsonOption = False) -> None:
    """Confirm all that matched by itself, and process the rows.

    \b
    Example:
      docflow spreadsheets start 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    def action(
        service: "SpreadsheetService", who: "Identity", id: str
    ) -> Awaitable[MappingsAnswer]:
        return service.start(who, id)

    run(_answer(cli_context(context), uuid, action, as_json=as_json))


@app.command()
def cancel(
    context: typer.Context,
    uuid: UuidArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """End an import; rows that are in stay in, and can be undone.

    \b
    Example:
      docflow spreadsheets cancel 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --reason "wrong file"
    """

    def action(
        service: "SpreadsheetService", who: "Identity", id: str
    ) -> Awaitable[MappingsAnswer]:
        return service.cancel(who, id, reason)

    run(_answer(cli_context(context), uuid, action, as_json=as_json))


@app.command()
def retry(
    context: typer.Context,
    uuid: UuidArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try the step again that an import is parked at.

    \b
    Example:
      docflow spreadsheets retry 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """

    def action(
        service: "SpreadsheetService", who: "Identity", id: str
    ) -> Awaitable[MappingsAnswer]:
        return service.retry(who, id, reason)

    run(_answer(cli_context(context), uuid, action, as_json=as_json))


@app.command()
def reassign(
    context: typer.Context,
    uuid: UuidArgument,
    to: Annotated[str, typer.Option(help="Who has to answer from now on.")],
    notify: Annotated[str | None, typer.Option(metavar="MAIL", help="Their address.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Assign an import to another person.

    \b
    Example:
      docflow spreadsheets reassign 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --to grace
    """

    def action(
        service: "SpreadsheetService", who: "Identity", id: str
    ) -> Awaitable[MappingsAnswer]:
        return service.reassign(who, id, to, notify)

    run(_answer(cli_context(context), uuid, action, as_json=as_json))


async def _answer(cli: CliContext, text: str, action: Action, *, as_json: bool) -> None:
    uuid = parse_uuid(text)
    async with open_access(cli) as access:
        answer = await action(access.service, access.who, uuid)
    show_answer(uuid, answer, as_json=as_json)


@dataclass(frozen=True)
class LostField:
    """A column whose field was given to another one."""

    id: int
    header: str
    field: str


def show_answer(
    uuid: str, answer: MappingsAnswer, *, as_json: bool, lost: Sequence[LostField] | None = None
) -> None:
    """Show what an answer changed; `lost` is of answers about columns."""
    if as_json:
        fields = {} if lost is None else {"lost_fields": [asdict(each) for each in lost]}
        print_json({"uuid": uuid, **answer.model_dump(mode="json"), **fields})
        return
    typer.echo(f"accepted; {uuid} is {answer.state}")
    for each in lost or ():
        typer.echo(one_line(f"column {each.id} {each.header!r} is no longer {each.field}"))
    if answer.missing_fields:
        typer.echo(f"no column yet for {', '.join(answer.missing_fields)}")
    if answer.cells.open:
        typer.echo(
            f"{answer.cells.open:,} values without a meaning: `docflow spreadsheets values {uuid}`"
        )


@app.command()
def undo(
    context: typer.Context,
    uuid: UuidArgument,
    preview: Annotated[
        bool, typer.Option("--preview", help="Say what would be taken back, and change nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Take the rows of an import back; records that were changed since are left alone.

    \b
    Examples:
      docflow spreadsheets undo 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --preview
      docflow spreadsheets undo 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """
    action = _preview_undo if preview else _undo
    run(action(cli_context(context), parse_uuid(uuid), as_json=as_json))


async def _preview_undo(cli: CliContext, uuid: str, *, as_json: bool) -> None:
    async with open_access(cli) as access:
        found, conflicts = await access.service.preview_undo(access.who, uuid)
    counts = found.counts
    if as_json:
        left = [
            {"line": each.line, "record": each.record, "reason": each.reason} for each in conflicts
        ]
        print_json({"uuid": uuid, **counts.model_dump(mode="json"), "conflicts": left})
        return
    typer.echo(
        f"{counts.deleted:,} records would be deleted, {counts.restored:,} would get their values "
        f"back, {counts.left_alone:,} rows would be left alone; nothing was changed"
    )
    for each in conflicts:
        typer.echo(one_line(f"row {each.line}: {each.record.lower()} {each.reason}"))
    if len(conflicts) < counts.left_alone:
        typer.echo(f"the first {len(conflicts):,} of {counts.left_alone:,}", err=True)


async def _undo(cli: CliContext, uuid: str, *, as_json: bool) -> None:
    async with open_access(cli) as access:
        await access.service.undo(access.who, uuid)
    if as_json:
        print_json({"uuid": uuid, "undo": "RUNNING"})
        return
    typer.echo(f"undoing {uuid}; see `docflow spreadsheets show {uuid}`")
