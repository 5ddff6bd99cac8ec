"""`docflow db`: the schema, and removal of rows that are no longer kept."""

import typer

from workers.shared.cli import retention
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import run

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(retention.app)


@app.command("upgrade")
def upgrade_schema(context: typer.Context) -> None:
    """Bring the schema of DATABASE_URL to this release; run it before the workers start.

    \b
    Example:
      DATABASE_URL=postgresql://docflow@db/docflow docflow db upgrade
    """
    run(_upgrade(cli_context(context)))


async def _upgrade(cli: CliContext) -> None:
    from adapters.database.schema import current, upgrade
    from workers.shared.settings.common import DatabaseSettings

    settings = DatabaseSettings.read(cli.environment)
    before = await upgrade(settings.url, settings.options)
    after = await current(settings.url, settings.options)
    typer.echo(
        f"the schema is at {after}"
        + (" already" if before == after else f", was {before or 'empty'}")
    )


@app.command("current")
def current_schema(context: typer.Context) -> None:
    """Print the schema revision of DATABASE_URL.

    \b
    Example:
      docflow db current
    """
    run(_current(cli_context(context)))


async def _current(cli: CliContext) -> None:
    from adapters.database.schema import current
    from workers.shared.settings.common import DatabaseSettings

    settings = DatabaseSettings.read(cli.environment)
    revision = await current(settings.url, settings.options)
    typer.echo(revision or "empty: run `docflow db upgrade`")
