"""`docflow partner key`: host keys and OpenPGP keys."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from workers.shared.cli.errors import UsageError, stop
from workers.shared.cli.output import is_interactive, read_body
from workers.shared.cli.remote import (
    Column,
    Item,
    Output,
    OutputOption,
    ask,
    gateway,
    show_one,
)
from workers.shared.text import one_line

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the partner.")]
_PATH: Final = "/api/v1/partners/{}/keys"
_HOST_KEY: Final = "/api/v1/partners/{}/host-key"


def _kind(key: Item) -> str:
    if key["kind"] == "host":
        return f"host key {key['algorithm']}"
    return "our OpenPGP key" if key["is_ours"] else "OpenPGP key"


KEYS: Final[Mapping[str, Column]] = {
    "key": _kind,
    "fingerprint": "fingerprint",
    "from": "valid_from",
    "until": lambda key: key["valid_until"] or key["state"],
}


def _asked(name: str, shown: str) -> str:
    """The fingerprint, once a person has compared it."""
    if not is_interactive():
        stop(
            UsageError(
                f"{name} shows the host key {shown}; compare it with what the partner says, and "
                f"give it as --fingerprint {shown}"
            )
        )
    typer.echo(one_line(f"{name} shows the host key {shown}"))
    if not typer.confirm("Is it the one that the partner gave you?"):
        stop(UsageError("nothing is pinned"))
    return shown


@app.command()
def add(
    context: typer.Context,
    name: NameArgument,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            help="Of the host key, as the partner stated it: SHA256:...; or of the OpenPGP key, "
            "40 or 64 hex digits."
        ),
    ] = None,
    retire: Annotated[
        bool,
        typer.Option("--retire", help="Host keys that were pinned before are valid until today."),
    ] = False,
    public: Annotated[
        Path | None, typer.Option(help="File with the partner's armoured OpenPGP key.")
    ] = None,
    private: Annotated[
        str | None, typer.Option(help="Reference to our armoured OpenPGP key.")
    ] = None,
    passphrase: Annotated[str | None, typer.Option(help="Reference to its passphrase.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Pin the host key that a server shows; or add an OpenPGP key, with --public or --private.

    Runs that wait for the partner continue. Without --fingerprint the host key is shown, and pinned
    if you say that it is the partner's.

    \b
    Examples:
      docflow partner key add acme --fingerprint SHA256:Ab3...
      docflow partner key add acme --fingerprint 0123... --public acme.asc
      docflow partner key add acme --fingerprint 4567... --private file:/run/secrets/our.asc
    """
    if public is None and private is None:
        if passphrase is not None:
            stop(UsageError("--passphrase goes with --private"))
        _pin(context, name, fingerprint, output, retire=retire)
        return
    if fingerprint is None or retire:
        stop(UsageError("an OpenPGP key needs --fingerprint, and takes no --retire"))
    print_ = fingerprint.replace(" ", "").upper()
    with gateway(context) as connection:
        key = {
            "fingerprint": print_,
            "public": public and read_body(public).decode("ascii", "replace"),
            "private": private,
            "passphrase": passphrase,
        }
        done = ask(connection, "POST", _PATH, name, body=key)
    if output is Output.TABLE:
        typer.echo(one_line(f"the key {print_} of {name} is saved; {done['state']}"))
    else:
        show_one(done, output, {}, name=lambda done: print_)


def _pin(
    context: typer.Context, name: str, fingerprint: str | None, output: Output, *, retire: bool
) -> None:
    with gateway(context) as connection:
        expected = fingerprint
        if expected is None:
            expected = _asked(name, ask(connection, "GET", _HOST_KEY, name)["fingerprint"])
        body = {"fingerprint": expected, "retire": retire}
        done = ask(connection, "POST", _HOST_KEY, name, body=body)
    if output is Output.TABLE:
        typer.echo(one_line(f"the host key {done['fingerprint']} of {name} is pinned"))
    else:
        show_one(done, output, {}, name="fingerprint")


@app.command()
def remove(
    context: typer.Context,
    name: NameArgument,
    fingerprint: Annotated[str, typer.Argument(metavar="FINGERPRINT", help="Of the key.")],
) -> None:
    """Remove a host key or an OpenPGP key.

    \b
    Example:
      docflow partner key remove acme SHA256:Ab3...
    """
    with gateway(context) as connection:
        ask(connection, "DELETE", f"{_PATH}/{{}}", name, fingerprint)
    typer.echo(one_line(f"the key {fingerprint} of {name} is removed"))
