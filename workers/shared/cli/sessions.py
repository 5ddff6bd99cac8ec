"""`docflow session`: who is signed in to the pages, at a machine that has the database."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import UsageError, run
from workers.shared.cli.remote import Output, OutputOption, show_list

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
_COLUMNS = {
    "who": "subject",
    "name": "name",
    "by": "provider",
    "roles": "roles",
    "organisations": "organisations",
    "begun": "made_at",
    "last seen": "seen_at",
    "ends": "expires_at",
}


@app.command("list")
def list_sessions(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List who is signed in, and sign-in links that nobody has used.

    \b
    Example:
      docflow session list
    """
    run(_list(cli_context(context), output))


async def _list(cli: CliContext, output: Output) -> None:
    from adapters.database.sessions import SqlSessions
    from workers.shared.services.sessions import open_sessions
    from workers.shared.settings.sign_in import SignInSettings

    settings = SignInSettings.read(cli.environment)
    async with cli.tables() as database:
        found = await open_sessions(SqlSessions(database), settings)
    rows = [
        {
            **{name: value for name, value in asdict(each).items() if name in _COLUMNS.values()},
            "provider": "a link that nobody has used" if each.is_link else each.provider,
            "roles": sorted(
                {*each.roles, *(role for own in each.roles_in.values() for role in own)}
            ),
            "made_at": each.made_at and each.made_at.isoformat(),
            "seen_at": each.seen_at and each.seen_at.isoformat(),
            "expires_at": each.expires_at.isoformat(),
        }
        for each in found
    ]
    show_list(rows, output, _COLUMNS, name="subject", nothing="nobody is signed in")


@app.command()
def end(
    context: typer.Context,
    subject: Annotated[str, typer.Argument(metavar="WHO", help="As `session list` shows them.")],
) -> None:
    """End every session of a person, on all gateways at once.

    They can sign in again unless you take their groups or tokens away.

    \b
    Example:
      docflow session end entra:5f2c
    """
    run(_end(cli_context(context), subject))


async def _end(cli: CliContext, subject: str) -> None:
    from adapters.database.sessions import SqlSessions

    async with cli.tables() as database, cli.noted(database, "session end", subject):
        ended = await SqlSessions(database).end_all(subject)
    typer.echo(f"ended {ended} sessions of {subject}")


@app.command()
def link(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will sign in.")],
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="Give this role: viewer, mapper, operator or admin; may be repeated [admin].",
        ),
    ] = None,
    organisation: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="ID", help="Belong to this organisation; may be repeated."),
    ] = None,
    minutes: Annotated[
        int, typer.Option(min=1, max=24 * 60, help="End it after so many, used or not.")
    ] = 15,
) -> None:
    """Make a link that signs a person in once; it needs no identity provider.

    It makes the first admin of an installation. The roles count in each organisation, and for what
    belongs to the installation. Whoever opens the link first has the session: send it to nobody
    else.

    \b
    Example:
      docflow session link ada --organisation 1
    """
    run(_link(cli_context(context), name, role or ["admin"], organisation or [], minutes))


async def _link(
    cli: CliContext, name: str, roles: list[str], organisations: list[int], minutes: int
) -> None:
    from adapters.database.sessions import SqlSessions
    from workers.shared.services.identity import ROLES
    from workers.shared.services.sessions import make_link
    from workers.shared.settings.common import AddressSettings

    if unknown := sorted(set(roles) - set(ROLES)):
        raise UsageError(f"unknown role {unknown[0]!r}; known are {', '.join(ROLES)}")
    if not 0 < len(name) <= 100 or not name.isprintable():
        raise UsageError("NAME must have 1 to 100 printable characters")
    address = AddressSettings.read(cli.environment).public_url or "http://127.0.0.1:8000"
    async with cli.tables() as database, cli.noted(database, "session link", name) as act:
        act.after = {"roles": roles, "organisations": organisations, "minutes": minutes}
        secret = await make_link(
            SqlSessions(database), name, organisations, roles, name, timedelta(minutes=minutes)
        )
    typer.echo(f"{address}/sign-in#token={secret}")
