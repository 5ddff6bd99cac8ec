"""`docflow spreadsheets`: imports that pause for a person, from the terminal."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import UsageError, run
from workers.shared.cli.output import (
    JsonOption,
    console,
    moment,
    output_file,
    pairs,
    print_json,
    table,
    text,
)
from workers.spreadsheets import answer_commands
from workers.spreadsheets.answer_commands import (
    UuidArgument,
    open_access,
    open_statuses,
    parse_uuid,
    row_counts,
    spreadsheet_state,
)
from workers.spreadsheets.answer_commands import to_json as to_json
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.spreadsheets.runs import workflow_id

if TYPE_CHECKING:
    from activities.spreadsheets.records import SpreadsheetRow, UndoView


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Spreadsheets: imports that pause for a person.",
)
app.add_typer(answer_commands.app)


@app.command()
def submit(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The spreadsheet."),
    ],
    import_type: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="EVENT_PARTICIPANT, MEMBERSHIP, RESULT or a declared one.",
        ),
    ],
    organisation: Annotated[int, typer.Option(min=1, metavar="ID", help="Whose rows they are.")],
    belongs_to: Annotated[
        int | None,
        typer.Option(
            "--context", min=1, metavar="ID", help="Event, membership period or race of the rows."
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What all rows of a declared type share."),
    ] = None,
    auto_start: Annotated[
        bool, typer.Option("--auto-start", help="Go straight through when nothing is open.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check every row and write nothing.")
    ] = False,
    review: Annotated[
        bool,
        typer.Option("--review", help="Stop where rows can be corrected before any is written."),
    ] = False,
    sheet: Annotated[str | None, typer.Option(help="Sheet of a workbook.")] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Text encoding or code page; found out if absent.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between the fields of a text file; `tab` for a tab.")
    ] = None,
    header_line: Annotated[
        int | None, typer.Option(min=1, help="Line of the header; found out if absent.")
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option("--no-header", help="There is no header: columns are called by letters."),
    ] = False,
    notify: Annotated[str | None, typer.Option(metavar="MAIL", help="Where reminders go.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Upload a spreadsheet and start its import.

    \b
    Examples:
      docflow spreadsheets submit registrations.xlsx --type EVENT_PARTICIPANT \\
          --organisation 1 --context 7
      docflow spreadsheets submit members.csv --type MEMBERSHIP --organisation 1 --context 3 \\
          --auto-start --dry-run
      docflow spreadsheets submit tools.xlsx --type tools --organisation 1 \\
          --scope project_id=P1
    """
    fields = {
        "importType": import_type,
        "organisationId": str(organisation),
        "contextId": belongs_to,
        "autoStart": auto_start or None,
        "dryRun": dry_run or None,
        "review": review or None,
        "sheet": sheet,
        "encoding": encoding,
        "delimiter": delimiter,
        "headerLine": header_line,
        "noHeader": no_header or None,
    }
    given = {name: str(value) for name, value in fields.items() if value is not None}
    for each in scope or ():
        name, _, value = each.partition("=")
        given[f"scope.{name}"] = value
    run(_submit(cli_context(context), file, given, organisation, notify, as_json=as_json))


async def _submit(
    cli: CliContext,
    file: Path,
    fields: Mapping[str, str],
    organisation: int,
    notify: str | None,
    *,
    as_json: bool,
) -> None:
    from workers.spreadsheets.answer_commands import LocalUpload

    with _opened(file) as content:
        async with open_access(cli, organisation=organisation, email=notify) as access:
            upload = LocalUpload(file.name, content, fields)
            row = await access.service.create(access.who, upload)
    if as_json:
        print_json(to_json(row))
        return
    typer.echo(f"{row.filename} is import {row.uuid}; see `docflow spreadsheets show {row.uuid}`")


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


@app.command("list")
def list_spreadsheets(
    context: typer.Context,
    organisation: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Only imports of this one.")
    ] = None,
    state: Annotated[
        SpreadsheetState | None, typer.Option(help="Only imports in this state.")
    ] = None,
    import_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only imports of this type.")
    ] = None,
    page: Annotated[int, typer.Option(min=0, help="From 0.")] = 0,
    size: Annotated[int, typer.Option(min=1, max=200, help="Imports of a page.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List spreadsheet imports, the newest first.

    \b
    Examples:
      docflow spreadsheets list --state CELL_MAPPING
      docflow spreadsheets list --organisation 1 --json
    """
    run(_list(cli_context(context), organisation, state, import_type, page, size, as_json=as_json))


async def _list(
    cli: CliContext,
    organisation: int | None,
    state: SpreadsheetState | None,
    import_type: str | None,
    page: int,
    size: int,
    *,
    as_json: bool,
) -> None:
    from activities.spreadsheets.records import ImportFilter

    wanted = ImportFilter(state=state, import_type=import_type)
    async with open_statuses(cli, organisation=organisation) as (statuses, who):
        found = await statuses.list(who, wanted, page=page, size=size)
    if as_json:
        print_json([to_json(row) for row in found.items])
        return
    if not found.items:
        typer.echo("no spreadsheets; `docflow spreadsheets submit FILE ...` starts one")
        return
    made = table("state", "import", "type", "file", "rows", "waits for", "since", numbers=["rows"])
    for row in found.items:
        made.add_row(
            spreadsheet_state(row.state),
            text(row.uuid),
            text(row.import_type),
            text(row.filename),
            text(f"{row.counts.done:,} of {row.total:,}" if row.total is not None else None),
            text(row.assignee if row.waiting_since else None),
            text(moment(row.waiting_since or row.updated_at)),
        )
    console().print(made)
    if len(found.items) < found.total:
        total = f"more than {found.total:,}" if found.has_more else f"{found.total:,}"
        typer.echo(f"{len(found.items):,} of {total}; --page shows the others", err=True)


@app.command()
def show(context: typer.Context, uuid: UuidArgument, as_json: JsonOption = False) -> None:
    """Show one import in full.

    \b
    Example:
      docflow spreadsheets show 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1
    """
    run(_show(cli_context(context), uuid, as_json=as_json))


async def _show(cli: CliContext, text: str, *, as_json: bool) -> None:
    async with open_statuses(cli) as (statuses, who):
        row = await statuses.get(who, parse_uuid(text))
        undo = await statuses.undo_view(who, row.uuid)
    if as_json:
        print_json({"import": to_json(row), "undo": undo and to_json(undo)})
        return
    console().print(pairs([*_facts(row), *_undo_facts(undo)]))


def _facts(row: "SpreadsheetRow") -> list[tuple[str, object]]:
    return [
        ("import", row.uuid),
        ("type", row.import_type + (", dry run" if row.dry_run else "")),
        ("file", row.filename),
        ("organisation", row.organisation_id),
        ("context", row.context_id),
        ("state", spreadsheet_state(row.state)),
        ("step", row.step or None),
        ("reason", row.reason),
        ("waits for", row.assignee if row.waiting_since else None),
        ("since", moment(row.waiting_since)),
        (
            "open values",
            f"{row.open_values:,} of {row.values_total:,}" if row.open_values else None,
        ),
        ("rows", f"{row.total:,}" if row.total is not None else None),
        ("outcome", row_counts(row.counts)),
        ("parked rows", f"{row.parked:,}" if row.parked else None),
        ("created", moment(row.created_at)),
        ("finished", moment(row.finished_at)),
        ("removed", moment(row.purged_at)),
        ("report", row.report and f"`docflow spreadsheets report {row.uuid}`"),
        ("run", workflow_id(row.uuid)),
    ]


def _undo_facts(undo: "UndoView | None") -> list[tuple[str, object]]:
    if undo is None:
        return []
    done = f"{undo.deleted:,} deleted, {undo.restored:,} restored, "
    return [("undo", f"{undo.state}: {done}{undo.left_alone:,} left alone")]


@app.command()
def report(
    context: typer.Context,
    uuid: UuidArgument,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File to write [FILE-errors.xlsx].")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Save the spreadsheet of the rows that did not go in, with comments on what is wrong.

    \b
    Example:
      docflow spreadsheets report 0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1 --out to-correct.xlsx
    """
    run(_report(cli_context(context), uuid, out, force=force))


async def _report(cli: CliContext, uuid: str, out: Path | None, *, force: bool) -> None:
    async with open_access(cli) as access:
        found = await access.service.report(access.who, parse_uuid(uuid))
    target = out or Path(Path(found.filename).name)
    try:
        with output_file(target, force=force) as partial:
            shutil.copyfile(found.path, partial)
    finally:
        found.path.unlink(missing_ok=True)
    typer.echo(f"saved {target}; correct the rows and submit it as a new import")
