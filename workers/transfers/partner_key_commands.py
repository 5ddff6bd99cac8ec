"""`docflow partners keys`: host keys and OpenPGP keys."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import UsageError, run
from workers.shared.cli.output import (
    JsonOption,
    console,
    is_interactive,
    print_json,
    read_body,
    table,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workflows.transfers.partners import Partner

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Keys of a partner: of its server, and OpenPGP.",
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the partner.")]


@app.command("list")
def list_keys(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Keys of a partner, with their days.

    \b
    Example:
      docflow partners keys list acme
    """
    run(_list(cli_context(context), name, as_json=as_json))


async def _list(cli: CliContext, name: str, *, as_json: bool) -> None:
    from workers.transfers.factory import open_partners

    async with open_partners(cli.environment) as (service, who):
        partner = await service.get(who, name)
        lives = dict[str, str]() if as_json else await service.key_lives(partner)
    if as_json:
        chosen = partner.model_dump(mode="json", include={"host_keys", "keys"})
        print_json(chosen)
        return
    if not print_keys(partner, lives):
        typer.echo(f"{name} has no keys")


@app.command()
def accept(
    context: typer.Context,
    name: NameArgument,
    fingerprint: Annotated[
        str | None, typer.Option(help="Of the key, as the partner stated it: SHA256:...")
    ] = None,
    retire: Annotated[
        bool, typer.Option("--retire", help="Keys that were pinned before are valid until today.")
    ] = False,
) -> None:
    """Pin the host key that a server shows; runs that wait for the partner continue.

    Without --fingerprint the key is shown, and pinned when you type its fingerprint's last
    characters.

    \b
    Example:
      docflow partners keys accept acme --fingerprint SHA256:Ab3...
    """
    run(_accept(cli_context(context), name, fingerprint, retire=retire))


async def _accept(cli: CliContext, name: str, given: str | None, *, retire: bool) -> None:
    from workers.transfers.factory import open_partners

    opened = open_partners(cli.environment, action="partners keys accept", object=name)
    async with opened as (service, who):
        expected = given or _asked(name, await service.shown_key(who, name))
        await service.accept(who, name, expected, retire=retire)
    typer.echo(f"the host key {expected} of {name} is pinned")


def _asked(name: str, shown: str) -> str:
    """The fingerprint, once a person has compared it."""
    if not is_interactive():
        raise UsageError(
            f"{name} shows the host key {shown}; compare it with what the partner says, and give "
            f"it as --fingerprint {shown}"
        )
    typer.echo(f"{name} shows the host key {shown}")
    if not typer.confirm("Is it the one that the partner gave you?"):
        raise UsageError("nothing is pinned")
    return shown


@app.command()
def add(
    context: typer.Context,
    name: NameArgument,
    fingerprint: Annotated[str, typer.Option(help="Of the OpenPGP key, 40 or 64 hex digits.")],
    public: Annotated[Path | None, typer.Option(help="File with the armoured public key.")] = None,
    private: Annotated[
        str | None, typer.Option(help="Reference to our armoured private key.")
    ] = None,
    passphrase: Annotated[str | None, typer.Option(help="Reference to its passphrase.")] = None,
) -> None:
    """Add an OpenPGP key: the partner's with --public, ours with --private.

    \b
    Examples:
      docflow partners keys add acme --fingerprint 0123... --public acme.asc
      docflow partners keys add acme --fingerprint 4567... --private file:/run/secrets/our.asc
    """
    key: dict[str, Any] = {
        "fingerprint": fingerprint.replace(" ", "").upper(),
        "private": private,
        "passphrase": passphrase,
        "own": private is not None,
    }
    run(_add(cli_context(context), name, key, public))


async def _add(cli: CliContext, name: str, key: dict[str, Any], public: Path | None) -> None:
    from workers.transfers.factory import open_partners

    if (public is None) == (key["private"] is None):
        raise UsageError("give --public for a key of the partner, or --private for one of ours")
    if public is not None:
        key["public"] = read_body(public).decode("ascii", "replace")
    opened = open_partners(cli.environment, action="partners keys add", object=name)
    async with opened as (service, who):
        known = await service.add_key(who, name, key)
    typer.echo(f"the key {key['fingerprint']} of {name} is saved; {known}")


@app.command()
def remove(
    context: typer.Context,
    name: NameArgument,
    fingerprint: Annotated[str, typer.Argument(metavar="FINGERPRINT", help="Of the key.")],
) -> None:
    """Remove a host key or an OpenPGP key.

    \b
    Example:
      docflow partners keys remove acme SHA256:Ab3...
    """
    run(_remove(cli_context(context), name, fingerprint))


async def _remove(cli: CliContext, name: str, fingerprint: str) -> None:
    from workers.transfers.factory import open_partners

    opened = open_partners(cli.environment, action="partners keys remove", object=name)
    async with opened as (service, who):
        await service.forget(who, name, fingerprint)
    typer.echo(f"the key {fingerprint} of {name} is removed")


def print_keys(partner: "Partner", lives: "Mapping[str, str]") -> bool:
    """The keys of a partner as a table; whether there are any.

    Args:
        partner: Whose.
        lives: How long OpenPGP keys last, by fingerprint.
    """
    from workflows.transfers.partners import fingerprint

    if not partner.host_keys and not partner.keys:
        return False
    made = table("key", "fingerprint", "from", "until")
    for host_key in partner.host_keys:
        made.add_row(
            text(f"host key {host_key.key.partition(' ')[0]}"),
            text(fingerprint(host_key)),
            text(host_key.valid_from),
            text(host_key.valid_until),
        )
    for key in partner.keys:
        made.add_row(
            text("our OpenPGP key" if key.own else "OpenPGP key"),
            text(key.fingerprint),
            text(""),
            text(lives.get(key.fingerprint, "")),
        )
    console().print(made)
    return True
