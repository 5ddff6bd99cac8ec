"""`docflow db clean`: removal of rows that are no longer kept."""

from typing import Annotated

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import run
from workers.shared.cli.output import JsonOption, console, print_json, table, text

app = typer.Typer(rich_markup_mode=None)


@app.command("clean")
def clean(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove rows that are no longer kept, as schedules do every night.

    How long rows are kept is set by DOCFLOW_KEEP_STATUS_DAYS, DOCFLOW_KEEP_PROBLEMS_DAYS,
    DOCFLOW_KEEP_RESUBMITTED_DAYS and DOCFLOW_KEEP_DOCUMENTS_DAYS of the workers, which do it. Rows
    of a declared type are kept as long as its `retention` says.

    \b
    Example:
      docflow db clean --dry-run
    """
    run(_clean(cli_context(context), dry_run=dry_run, as_json=as_json))


async def _clean(cli: CliContext, *, dry_run: bool, as_json: bool) -> None:
    from workers.shared.services.retention import clean, cleaned

    removed = [
        kind
        for pipeline in cleaned(cli.environment)
        for kind in await clean(cli.environment, pipeline, dry_run=dry_run)
    ]
    if as_json:
        print_json([kind.model_dump(mode="json") for kind in removed])
        return
    what = "would be removed" if dry_run else "removed"
    made = table("what", "kept for", what, "blobs", numbers=[what, "blobs"])
    for kind in removed:
        days = "ever" if kind.days is None else f"{kind.days} day{'s' * (kind.days != 1)}"
        rows = f"{kind.rows:,}{' or more' if kind.more else ''}"
        made.add_row(*map(text, (kind.what, days, rows, f"{kind.blobs:,}")))
    console().print(made)
