"""`docflow spreadsheets submit`: a file goes in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, run
from workers.cli.output import JsonOption, print_json
from workers.cli.spreadsheets.context import open_access
from workers.cli.spreadsheets.output import as_json as to_json

app = typer.Typer(rich_markup_mode=None)


@app.command()
def submit(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The spreadsheet."),
    ],
    import_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="EVENT_PARTICIPANT, MEMBERSHIP, RESULT.")
    ],
    organisation: Annotated[int, typer.Option(min=1, metavar="ID", help="Whose rows they are.")],
    belongs_to: Annotated[
        int | None,
        typer.Option(
            "--context", min=1, metavar="ID", help="Event, membership period or race of the rows."
        ),
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
    from workers.cli.spreadsheets.local import LocalUpload

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
