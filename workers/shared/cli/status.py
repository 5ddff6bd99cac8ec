"""`docflow status`: what is up, and what waits for a person, of every pipeline."""

import typer

from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import run
from workers.shared.cli.output import JsonOption

app = typer.Typer(rich_markup_mode=None)


@app.command()
def status(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show what is up, what cannot be used, and what waits for you.

    Exit code 1 when something is down, or an outage is open.

    \b
    Examples:
      docflow status
      docflow status --json
    """
    # The registers of all pipelines take longer than the help.
    from workers.shared.cli.installation import show_status

    run(show_status(cli_context(context), as_json=as_json))
