"""`docflow transfers check`: what is wrong with a file of job settings, before it is deployed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from workers.cli.context import cli_context
from workers.cli.errors import ExitCode, UsageError, failures_in_one_line
from workers.cli.output import JsonOption, print_json

app = typer.Typer(rich_markup_mode=None)


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
    from domain.transfers.settings_check import check_settings
    from workers.settings.transfer_watches import watches_of
    from workers.settings.transfers import TransferFileSettings, queues_of

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
