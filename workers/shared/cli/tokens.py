"""`docflow token` and `docflow audit`: who may ask a gateway, and who has done what."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import failures_in_one_line
from workers.shared.cli.remote import (
    LimitOption,
    Output,
    OutputOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
audit_app = typer.Typer(rich_markup_mode=None)
_PATH = "/api/v1/tokens"
RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Give this role: viewer, mapper, operator or admin; may be repeated [mapper].",
    ),
]
_COLUMNS = {
    "id": "id",
    "name": "name",
    "begins with": "beginning",
    "organisation": "organisation_id",
    "roles": "roles",
    "made by": "made_by",
    "last used": "last_used_at",
    "expires": "expires_at",
    "revoked": "revoked_at",
}


@app.command("list")
def list_tokens(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List the tokens of programs, also those that are no longer valid.

    \b
    Example:
      docflow token list
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", _PATH)["items"]
        show_list(found, output, _COLUMNS, name="id", nothing="no program has a token")


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What will use it.")],
    organisation: Annotated[
        int | None,
        typer.Option(min=1, metavar="ID", help="Let the roles count in this organisation [all]."),
    ] = None,
    role: RoleOption = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=3660, help="End it after so many days [never].")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a token for a program; its text is shown this once.

    \b
    Example:
      docflow token create "nightly import" --organisation 3 --role operator --days 365
    """
    given = {
        "name": name,
        "organisation_id": organisation,
        "roles": role or ["mapper"],
        "expires_at": None if days is None else (datetime.now(UTC) + timedelta(days)).isoformat(),
    }
    with gateway(context) as connection:
        made = ask(connection, "POST", _PATH, body=given)
        show_one(made, output, {**_COLUMNS, "token": "token"}, name="token")


@app.command()
def revoke(
    context: typer.Context,
    id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Number in `token list`.")],
) -> None:
    """Revoke a token: within seconds no gateway accepts it.

    \b
    Example:
      docflow token revoke 7
    """
    with gateway(context) as connection:
        ask(connection, "DELETE", f"{_PATH}/{{}}", id)
    typer.echo(f"revoked token {id}")


@app.command()
def sign(
    context: typer.Context,
    subject: Annotated[str, typer.Option(help="Sign for this person.")],
    organisation: Annotated[
        list[int],
        typer.Option(min=1, metavar="ID", help="Sign for this organisation; may be repeated."),
    ],
    role: RoleOption = None,
    name: Annotated[str | None, typer.Option(help="Show this name on pages.")] = None,
    email: Annotated[str | None, typer.Option(help="Send reminders here.")] = None,
    hours: Annotated[int, typer.Option(min=1, max=24 * 366, help="End it after so many.")] = 12,
) -> None:
    """Sign a token with DOCFLOW_JWT_KEY, on a machine that has the key of the gateway.

    The roles count in each organisation, and for what belongs to the installation. To make a token
    whose roles count in one organisation alone, use `docflow token create`.

    If an identity provider signs tokens (DOCFLOW_JWT_JWKS_URL), get one from there.

    \b
    Example:
      docflow token sign --subject ada --organisation 1 --role mapper
    """
    with failures_in_one_line():
        from workers.shared.gateway.http.auth import mint_token
        from workers.shared.settings.gateway import TokenSettings

        minted = mint_token(
            TokenSettings.read(cli_context(context).environment),
            subject=subject,
            organisations=organisation,
            roles=role or ["mapper"],
            name=name,
            email=email,
            lasts=timedelta(hours=hours),
        )
    typer.echo(minted)


@audit_app.command()
def audit(
    context: typer.Context,
    who: Annotated[str | None, typer.Option(help="Show only what this person did.")] = None,
    action: Annotated[
        str | None, typer.Option(help="Show only this operation, page or command.")
    ] = None,
    object: Annotated[
        str | None, typer.Option(metavar="ID", help="Show only what was done to this.")
    ] = None,
    organisation: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Show only this organisation.")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Show only what was begun then or later, in UTC.")
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List who has changed what, the newest first.

    \b
    Examples:
      docflow audit --who ada
      docflow audit --action revokeToken -o json
    """
    query = {
        "who": who,
        "action": action,
        "object": object,
        "organisation": organisation,
        "since": since and since.replace(tzinfo=UTC),
    }
    with gateway(context) as connection:
        found = listed(connection, "/api/v1/audit", limit, **query)
        columns = {
            "at": "at",
            "who": "who",
            "what": "action",
            "of": "object",
            "status": "status",
            "reason": "reason",
            "from": "from_where",
        }
        show_list(found, output, columns, name="id", nothing="nothing was changed")
